"""Layers of convolution by themselves: results, gradients of images and of filters, by every kernel that is installed.

    python benchmarks/layers.py [--rounds 9] [--operator] [--own-formats] [--one-thread] [layer ...]

Each of opencntk's kernels, those of plugins included, and PyTorch (where it is installed; as it stands, and with channels last) gets the
same arrays of float32 in turns; opencntk and PyTorch have a process each, so that the threads of neither wait for work of the other.
A number is GFLOP/s by the fastest tenth of the calls, and in brackets by the median.  *step* is all three of a training step.  The fastest
is in bold.  With --one-thread it is the processor time of one thread that counts, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any, NamedTuple

import machine
import numpy as np

from cntk.core.common.threads import set_max_threads

SECONDS, WARM_UP, LEAST = 0.05, 2, 3
"""Seconds in which a kernel is timed in a round, calls before that, and the fewest calls that are timed."""

WHAT = "results", "images", "filters", "step"

Call = Callable[[], object]
Calls = Iterator[tuple[str, dict[str, Call]]]
"""Who computes, and a call for each of the four."""


class Layer(NamedTuple):
    """Images, channels, side of the images, filters, their side, stride, and whether there is padding."""

    rows: int
    channels: int
    side: int
    maps: int
    kernel: int
    stride: int = 1
    padded: bool = True

    @property
    def flop(self) -> int:
        """Operations to compute the results, or one of the gradients."""
        out = -(-(self.side if self.padded else self.side - self.kernel + 1) // self.stride)
        return 2 * self.rows * out**2 * self.maps * self.channels * self.kernel**2

    def arrays(self) -> tuple[Any, Any]:
        """Images and filters."""
        random = np.random.default_rng(0)
        images = random.normal(size=(self.rows, self.channels, self.side, self.side))
        filters = random.normal(size=(self.maps, self.channels, self.kernel, self.kernel))
        return images.astype(np.float32), filters.astype(np.float32)


LAYERS = {
    "resnet 3x32x32, 16 3x3": Layer(64, 3, 32, 16, 3),
    "resnet 16x32x32, 16 3x3": Layer(64, 16, 32, 16, 3),
    "resnet 16x32x32, 32 3x3 / 2": Layer(64, 16, 32, 32, 3, 2),
    "resnet 16x32x32, 32 1x1 / 2": Layer(64, 16, 32, 32, 1, 2),
    "resnet 32x16x16, 32 3x3": Layer(64, 32, 16, 32, 3),
    "resnet 32x16x16, 64 3x3 / 2": Layer(64, 32, 16, 64, 3, 2),
    "resnet 32x16x16, 64 1x1 / 2": Layer(64, 32, 16, 64, 1, 2),
    "resnet 64x8x8, 64 3x3": Layer(64, 64, 8, 64, 3),
    "tour 1x28x28, 32 5x5": Layer(256, 1, 28, 32, 5),
    "tour 32x13x13, 48 3x3": Layer(256, 32, 13, 48, 3, padded=False),
    "tour 48x5x5, 64 3x3": Layer(256, 48, 5, 64, 3, padded=False),
    "vgg 64x56x56, 64 3x3": Layer(8, 64, 56, 64, 3),
    "wide 64x28x28, 64 1x1": Layer(16, 64, 28, 64, 1),
    "few 8x32x32, 8 3x3": Layer(64, 8, 32, 8, 3),
    "odd 20x32x32, 20 3x3": Layer(64, 20, 32, 20, 3),
    "resnet50 3x224x224, 64 7x7 / 2": Layer(8, 3, 224, 64, 7, 2),
    "resnet50 64x56x56, 64 1x1": Layer(8, 64, 56, 64, 1),
    "resnet50 64x56x56, 64 3x3": Layer(8, 64, 56, 64, 3),
    "resnet50 64x56x56, 256 1x1": Layer(8, 64, 56, 256, 1),
    "resnet50 256x56x56, 64 1x1": Layer(8, 256, 56, 64, 1),
    "resnet50 256x56x56, 128 1x1": Layer(8, 256, 56, 128, 1),
    "resnet50 128x56x56, 128 3x3 / 2": Layer(8, 128, 56, 128, 3, 2),
    "resnet50 256x56x56, 512 1x1 / 2": Layer(8, 256, 56, 512, 1, 2),
    "resnet50 128x28x28, 128 3x3": Layer(8, 128, 28, 128, 3),
    "resnet50 128x28x28, 512 1x1": Layer(8, 128, 28, 512, 1),
    "resnet50 512x28x28, 128 1x1": Layer(8, 512, 28, 128, 1),
    "resnet50 512x28x28, 256 1x1": Layer(8, 512, 28, 256, 1),
    "resnet50 256x28x28, 256 3x3 / 2": Layer(8, 256, 28, 256, 3, 2),
    "resnet50 512x28x28, 1024 1x1 / 2": Layer(8, 512, 28, 1024, 1, 2),
    "resnet50 256x14x14, 256 3x3": Layer(8, 256, 14, 256, 3),
    "resnet50 256x14x14, 1024 1x1": Layer(8, 256, 14, 1024, 1),
    "resnet50 1024x14x14, 256 1x1": Layer(8, 1024, 14, 256, 1),
    "resnet50 1024x14x14, 512 1x1": Layer(8, 1024, 14, 512, 1),
    "resnet50 512x14x14, 512 3x3 / 2": Layer(8, 512, 14, 512, 3, 2),
    "resnet50 1024x14x14, 2048 1x1 / 2": Layer(8, 1024, 14, 2048, 1, 2),
    "resnet50 512x7x7, 512 3x3": Layer(8, 512, 7, 512, 3),
    "resnet50 512x7x7, 2048 1x1": Layer(8, 512, 7, 2048, 1),
    "resnet50 2048x7x7, 512 1x1": Layer(8, 2048, 7, 512, 1),
}


def _all(*calls: Call) -> None:
    for call in calls:
        call()


# ---- opencntk ----


def cntk_kernels(with_operator: bool, layer: Layer) -> Calls:
    """What each kernel computes, the foremost first, then perhaps the operator itself."""
    import cntk as C
    from cntk.core.extension import plugins
    from cntk.core.extension.device import backend_named
    from cntk.core.types.context import Context
    from cntk.core.types.layout import Layout

    images, filters = layer.arrays()
    x, w = C.input_variable(images.shape[1:]), C.parameter(init=filters)
    z = C.convolution(w, x, strides=layer.stride, auto_padding=(False, layer.padded, layer.padded))
    op, result = z.root_function.op, np.empty((layer.rows, *z.shape), np.float32)
    gradient = np.random.default_rng(1).normal(size=result.shape).astype(np.float32)
    images_gradient, filters_gradient = np.empty_like(images), np.empty_like(filters)

    def calls(forward: Any, backward: Any) -> dict[str, Call]:
        ctx = Context(backend_named("numpy"), training=True)
        ctx.layouts, ctx.layout = [None, Layout(layer.rows)], Layout(layer.rows)
        results = partial(forward, ctx, result, filters, images)
        wanted = (None, images_gradient), (filters_gradient, None), (filters_gradient, images_gradient)
        of_images, of_filters, both = (partial(backward, ctx, gradient, grads, result, filters, images) for grads in wanted)
        return {"results": results, "images": of_images, "filters": of_filters, "step": partial(_all, results, both)}

    place = plugins.kernel_place(type(op), "numpy")
    kernel = None if place is None else plugins.kernels.get(place)
    while kernel is not None:
        yield kernel.__module__.removesuffix(".convolution"), calls(partial(kernel.forward, op), partial(kernel.backward, op))
        kernel = plugins.kernels.behind(place, kernel)
    if with_operator:
        yield "operator", calls(op.forward, op.backward)


def onednn_formats(layer: Layer) -> Calls:
    """oneDNN's primitives alone, on arrays that are in their formats already, whether the plugin would use them or not."""
    from cntk_onednn.correlation import Plan
    from cntk_onednn.primitives import threads_of_calls

    import cntk as C
    from cntk.core.extension.device import backend_named
    from cntk.core.types.context import Context

    images, filters = layer.arrays()
    z = C.convolution(filters, C.input_variable(images.shape[1:]), strides=layer.stride, auto_padding=(False, layer.padded, layer.padded))
    g = z.root_function.op.geometry(filters.shape, images.shape[1:])
    arrays = images, filters, np.zeros((layer.rows, *z.shape), np.float32)
    with threads_of_calls() as threads:
        plan = Plan(g, layer.rows, threads)
        parts = plan.forward, plan.images, plan.filters

    def run(part: Any, inner: list[Any], ctx: Context) -> None:
        with threads_of_calls():
            part.primitive(ctx, *inner)

    calls: dict[str, Call] = {}
    for what, part in zip(WHAT, parts, strict=False):
        ctx = Context(backend_named("numpy"), training=True)
        inner = [border.inside(ctx, str(i), array) for i, (border, array) in enumerate(zip(part.borders, arrays, strict=True))]
        for array in inner:
            array.fill(0)
        calls[what] = partial(run, part, inner, ctx)
    yield "oneDNN in its formats", {**calls, "step": partial(_all, *calls.values())}


# ---- PyTorch ----


def torch_formats(layer: Layer) -> Calls:
    """What PyTorch computes, as it stands and with channels last."""
    import torch

    convolve, differentiate = torch.ops.aten.convolution, torch.ops.aten.convolution_backward
    stride, padding = [layer.stride] * 2, [layer.kernel // 2 if layer.padded else 0] * 2
    for name, format in (("PyTorch", torch.contiguous_format), ("channels last", torch.channels_last)):
        images, filters = (torch.from_numpy(array).contiguous(memory_format=format) for array in layer.arrays())
        forward = partial(convolve, images, filters, None, stride, padding, [1, 1], False, [0, 0], 1)
        gradient = torch.randn_like(forward())
        backward = partial(differentiate, gradient, images, filters, None, stride, padding, [1, 1], False, [0, 0], 1)
        wanted = [True, False, False], [False, True, False], [True, True, False]
        calls = forward, *(partial(backward, gradients) for gradients in wanted)
        yield name, dict(zip(WHAT, (*calls[:3], partial(_all, forward, calls[3])), strict=True))


# ---- timing ----


def seconds_of(contestants: list[Callable[[Layer], Calls]], layer: Layer) -> dict[tuple[str, str], list[float]]:
    """Seconds of calls, by what is computed and by whom."""
    found = {}
    for contestant in contestants:
        for name, calls in contestant(layer):
            for what in WHAT:
                found[what, name] = timed(calls[what])
    return found


clock = time.perf_counter


def use_one_thread() -> None:
    """Leave the work to one thread, and count the time for which it has a processor."""
    global clock
    clock = time.thread_time
    set_max_threads(1)
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)


def timed(call: Call) -> list[float]:
    """Seconds of each of the calls that fit into some time."""
    for _ in range(WARM_UP):
        call()
    times: list[float] = []
    end = clock() + SECONDS
    while clock() < end or len(times) < LEAST:
        start = clock()
        call()
        times.append(clock() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layers", nargs="*", metavar="layer", help="begin of the names of the layers to time; all if there is none")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--operator", action="store_true", help="time the operator's own method, too")
    parser.add_argument("--own-formats", action="store_true", help="time oneDNN without bringing arrays to its formats and back")
    parser.add_argument("--one-thread", action="store_true", help="use one thread, and count its processor time")
    given = parser.parse_args()
    cntk: list[Any] = [partial(cntk_kernels, given.operator), *([onednn_formats] if given.own_formats else [])]
    groups = [cntk, *([[torch_formats]] if find_spec("torch") else [])]
    layers = {name: layer for name, layer in LAYERS.items() if name.startswith(tuple(given.layers or [""]))}
    os.environ.update({"OPENBLAS_NUM_THREADS": "1"} if given.one_thread else {})
    processes = [ProcessPoolExecutor(1, get_context("spawn"), use_one_thread if given.one_thread else None) for _ in groups]
    times: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for _ in range(given.rounds):
        for name, layer in layers.items():
            for process, group in zip(processes, groups, strict=True):
                for (what, who), seconds in process.submit(seconds_of, group, layer).result().items():
                    times[name, what, who] += seconds
    show(layers, list(dict.fromkeys(who for _, _, who in times)), times)


def show(layers: dict[str, Layer], contestants: list[str], times: dict[tuple[str, str, str], list[float]]) -> None:
    """Print the table."""
    print(f"{machine.description()}; products at {machine.multiplication_rate() / 1e9:.0f} GFLOP/s\n")
    print("| layer | MFLOP | " + " | ".join(contestants) + " |\n| --- |" + " --- |" * (len(contestants) + 1))
    for name, layer in layers.items():
        for what in WHAT:
            flop = layer.flop * (3 if what == "step" else 1)
            rates = [flop / np.percentile(times[name, what, who], [10, 50]) / 1e9 for who in contestants]
            best = max(fast for fast, _ in rates)
            cells = [f"**{fast:.0f}** ({usual:.0f})" if fast == best else f"{fast:.0f} ({usual:.0f})" for fast, usual in rates]
            print(f"| {name}: {what} | {flop / 1e6:.0f} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
