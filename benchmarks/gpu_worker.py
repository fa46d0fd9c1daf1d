"""Takes measurements on a GPU and writes them: ``python gpu_worker.py WORKLOAD,… WAY,… FILE SECONDS``.

Data is fed from the host in each step, as in training: from pinned memory in PyTorch.  The time of a step is that between two events on the
stream that has its work, after :data:`WARM_UP` steps; the median of :data:`MEASURED` counts, or of those that fit into the time.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpu_plan import COMPILED, GRAPH, GRAPH_FAST, OURS, OURS_FAST
from torch_mode import EAGER as EAGER_MODE
from torch_mode import REDUCED_OVERHEAD

WARM_UP, MEASURED = 20, 100
"""Steps before, and steps that are timed."""

TIMES_EACH = 3
"""So often each minibatch comes here before steps are timed: from the third time on a size is recorded."""

COMPARED, COUNTED = 6, 5
"""Steps after which replayed and eager training are compared, and over which kernels are counted."""

MARKS = ("Optimizer.", "ProfilerStep")
"""How the profiler names spans of time that it shows beside kernels, and that are none."""

LONGEST, NAMED = 12, 80
"""So many kernels are named, with so many characters: those that take longest."""

Step = Callable[..., Any]


def main(workloads: str, ways: str, file: str, seconds: str) -> None:
    ends = time.monotonic() + float(seconds)
    measurements = measurements_of(workloads, ways)
    found: list[dict[str, Any]] = []
    for number, (workload, way) in enumerate(measurements):
        now = time.monotonic()
        until = now + (ends - now) / (len(measurements) - number)
        try:
            found.append(ours(workload, until, is_fast=way == OURS_FAST) if way in (OURS, OURS_FAST) else torch_s(workload, way, until))
        except Exception:  # others may do better
            found.append({"left_out": f"it failed: {traceback.format_exc()[-2000:]}"})
        Path(file).write_text(json.dumps(found), encoding="utf-8")  # what comes may fail, and take the process along


def measurements_of(workloads: str, ways: str) -> list[tuple[str, str]]:
    """The workloads, each with the ways in which it is run, of their names with commas between."""
    return list(itertools.product(workloads.split(","), ways.split(",")))


def module_of(workload: str) -> tuple[Any, Sequence[str]]:
    """A workload's module, and what its steps are made with."""
    module, _, name = workload.partition(":")
    return importlib.import_module(module), [name] if name else []


# ---- opencntk ----


def ours(workload: str, ends: float, device: Any = None, is_fast: bool = False) -> dict[str, Any]:
    """Time of a step here, and whether replayed steps compute what eager ones do."""
    import cntk as C
    from cntk.core.extension.device import default_device

    C.device.set_math("tf32" if is_fast else "ieee")
    C.device.set_benchmark(is_fast)
    device = C.device.gpu(0) if device is None else device
    backend = device.backend
    with default_device(device):
        compared = replay_is_equal(workload, backend)
        step, data = our_workload(workload, backend)
        with backend.guard():
            times = timed(step, data, clock_of(backend), ends, TIMES_EACH)
            kernels = counted(step, data, backend.synchronize)
    return {**summary(times), **kernels, **compared}


def our_workload(workload: str, backend: Any) -> tuple[Step, list[Any]]:
    """A new step, the same each time, and its minibatches."""
    import cntk as C

    module, made_with = module_of(workload)
    C.cntk_py.set_fixed_random_seed(1)
    step, data = module.cntk_step(*made_with), module.cntk_data(*made_with)
    if made_with:  # learners by themselves take gradients, which are on the device
        data = [tuple(backend.asarray(array, array.dtype) for array in minibatch) for minibatch in data]
    return step, data


def replay_is_equal(workload: str, backend: Any) -> dict[str, Any]:
    """Whether training by recorded steps gives the bits that it gives step by step, where the backend records."""
    if not hasattr(backend, "record"):
        return {"replay": "this backend records nothing"}
    replayed, eager = parameters_after(workload, backend), []
    with not_recording(backend):
        eager = parameters_after(workload, backend)
    if not replayed:
        return {"replay": "there are no parameters to compare"}
    return {"replay": "equal to the bit" if all(map(same_bits, replayed, eager)) else "DIFFERENT"}


def parameters_after(workload: str, backend: Any) -> list[Any]:
    """The values of all parameters of the step after some minibatches."""
    from cntk.core.graph.variable import Parameter

    made: list[Any] = []
    build = Parameter.__init__

    def noted(self: Any, *arguments: Any, **named: Any) -> None:
        made.append(self)
        build(self, *arguments, **named)

    Parameter.__init__ = noted  # type: ignore[method-assign]
    try:
        step, data = our_workload(workload, backend)
    finally:
        Parameter.__init__ = build  # type: ignore[method-assign]
    with backend.guard():
        for minibatch in itertools.islice(itertools.cycle(data), COMPARED):
            step(*minibatch)
    return [parameter.value for parameter in made]


def same_bits(one: Any, other: Any) -> bool:
    return bool(one.shape == other.shape and one.tobytes() == other.tobytes())


@contextmanager
def not_recording(backend: Any) -> Iterator[None]:
    """Have a backend record nothing for a while."""
    backend.record = lambda steps: None
    try:
        yield
    finally:
        del backend.record


# ---- PyTorch ----


def torch_s(workload: str, way: str, ends: float, device: str = "cuda") -> dict[str, Any]:
    """Time of a step in PyTorch."""
    import torch

    os.environ["TORCH_MODE"] = REDUCED_OVERHEAD if way == COMPILED else EAGER_MODE
    torch.set_default_device("cpu")
    module, made_with = module_of(workload)
    data = [pinned(minibatch, device) for minibatch in module.torch_data(*made_with)]
    torch.set_default_device(device)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = way == GRAPH_FAST
    on_host = getattr(module, "ON_HOST", ())
    if made_with:  # learners by themselves take gradients, which are on the device
        data = [tuple(part.to(device) for part in minibatch) for minibatch in data]
    if way in (GRAPH, GRAPH_FAST):
        try:
            with capturable_learners():
                fed = captured(module.torch_step(*made_with), data, device, on_host)
        except Exception as error:  # what cannot be captured says so in many ways
            return {"left_out": f"no graph can be made: {type(error).__name__}: {str(error)[:300]}"}
    else:
        fed = partial(feed, module.torch_step(*made_with), device, on_host)
    clock = TorchClock() if device == "cuda" else HostClock()
    times = timed(fed, data, clock, ends)
    return {**summary(times), **counted(fed, data, torch.cuda.synchronize if device == "cuda" else lambda: None)}


def pinned(minibatch: Sequence[Any], device: str) -> tuple[Any, ...]:
    """A minibatch in memory that is copied from at full speed."""
    return tuple(part.pin_memory() if device == "cuda" and hasattr(part, "pin_memory") else part for part in minibatch)


@contextmanager
def capturable_learners() -> Iterator[None]:
    """Have PyTorch's learners keep on the GPU what changes from step to step, as graphs want it."""
    import torch

    before = {name: getattr(torch.optim, name) for name in ("Adam", "Adamax", "RMSprop", "Adadelta", "Adagrad")}
    for name, rule in before.items():
        setattr(torch.optim, name, partial(rule, capturable=True))
    try:
        yield
    finally:
        for name, rule in before.items():
            setattr(torch.optim, name, rule)


def feed(step: Step, device: str, on_host: Sequence[int], *minibatch: Any) -> None:
    """Take a step on a minibatch of the host's; some parts of it stay there."""
    moved = [part if i in on_host or not hasattr(part, "to") else part.to(device, non_blocking=True) for i, part in enumerate(minibatch)]
    step(*moved)


def captured(step: Step, data: Sequence[Any], device: str, on_host: Sequence[int]) -> Step:
    """A step as a CUDA graph, made by hand as PyTorch's documentation says.

    Raises:
        ValueError: minibatches differ in shape.
    """
    import torch

    shapes = {tuple(tuple(part.shape) for part in minibatch) for minibatch in data}
    if len(shapes) > 1 or on_host:
        raise ValueError("minibatches differ in shape")
    static = [part.to(device) for part in data[0]]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(*static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(*static)

    def replay(*minibatch: Any) -> None:
        for own, given in zip(static, minibatch, strict=True):
            own.copy_(given, non_blocking=True)
        graph.replay()

    return replay


# ---- clocks ----


class HostClock:
    """The host's clock, for devices whose work is done when a call returns."""

    def mark(self) -> Any:
        """Note this instant of the work."""
        return time.perf_counter()

    def milliseconds(self, marks: Sequence[Any]) -> list[float]:
        """Times between instants."""
        return [1e3 * (after - before) for before, after in itertools.pairwise(marks)]


class TorchClock:
    """Events on PyTorch's current stream."""

    def mark(self) -> Any:
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def milliseconds(self, marks: Sequence[Any]) -> list[float]:
        marks[-1].synchronize()
        return [before.elapsed_time(after) for before, after in itertools.pairwise(marks)]


class CupyClock:
    """Events on CuPy's current stream, that of the backend within its guard."""

    def mark(self) -> Any:
        import cupy

        event = cupy.cuda.Event()
        event.record()
        return event

    def milliseconds(self, marks: Sequence[Any]) -> list[float]:
        import cupy

        marks[-1].synchronize()
        return [cupy.cuda.get_elapsed_time(before, after) for before, after in itertools.pairwise(marks)]


def clock_of(backend: Any) -> Any:
    """What takes the time of a backend's work."""
    return CupyClock() if int(backend.kind) else HostClock()


# ---- measuring ----


def timed(step: Step, data: Sequence[Any], clock: Any, ends: float, times_each: int = 1) -> list[float]:
    """Milliseconds of steps; fewer than :data:`MEASURED` where the time is over before."""
    minibatches = itertools.cycle(data)
    for minibatch in itertools.islice(minibatches, max(WARM_UP, times_each * len(data))):
        step(*minibatch)
    marks = [clock.mark()]
    while len(marks) <= MEASURED and (len(marks) < 3 or time.monotonic() < ends):
        step(*next(minibatches))
        marks.append(clock.mark())
    times: list[float] = clock.milliseconds(marks)
    return times


def summary(times: Sequence[float]) -> dict[str, Any]:
    """What is told of times."""
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    return {"median_ms": statistics.median(times), "fastest_tenth_ms": tenths[0], "slowest_tenth_ms": tenths[-1], "steps": len(times)}


def counted(step: Step, data: Sequence[Any], synchronize: Callable[[], Any]) -> dict[str, Any]:
    """Kernels, copies and fills of a step, and the microseconds that they keep the device busy: PyTorch's profiler sees those of the whole
    process, whoever launches them."""
    if find_spec("torch") is None:
        return {"kernels": None, "kernels_why_not": "PyTorch's profiler, which counts them, is not installed"}
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    if not torch.cuda.is_available():
        return {"kernels": None, "kernels_why_not": "PyTorch, whose profiler counts them, sees no GPU"}
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for minibatch in itertools.islice(itertools.cycle(data), COUNTED):
            step(*minibatch)
        synchronize()
    events = [event for event in seen.events() if event.device_type == DeviceType.CUDA and not event.name.startswith(MARKS)]
    times: Counter[str] = Counter()
    for event in events:
        times[event.name[:NAMED]] += event.device_time
    copies = sum(event.name.startswith(("Memcpy", "Memset")) for event in events)
    return {
        "kernels": (len(events) - copies) / COUNTED,
        "copies": copies / COUNTED,
        "busy_us": sum(times.values()) / COUNTED,
        "longest_us": {name: time / COUNTED for name, time in times.most_common(LONGEST)},
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
