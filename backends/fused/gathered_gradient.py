"""The gradient of filters whose strides skip elements, or that have many weights: what each weight meets is gathered, for products with
the results' gradient.

Threads share the gathering, image by image and channel by channel.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.common.thresholds import thresholds
from ...core.common.windows import Correlation, Windows
from ...core.machine.language import prange
from ...core.machine.loops import loop
from ...core.types.context import Context
from .pieces import copy_lines, writable
from .pointwise import is_one_product, sum_up

GATHERED_BYTES, FILTERS = 16 << 20, 4
"""Bytes of what weights meet in images that are multiplied at a time, or as many times what the filters take if that is more."""

LARGEST_IMAGE = 64 << 20
"""Bytes of what weights meet in one image, of which more are not gathered."""


@loop("R1 R1 I2 I2 (7)")
def _gather(columns: Any, x: Any, taps: Any, lines: Any, sizes: Any) -> None:
    """Copy what each weight of a filter meets in each image.

    Args:
        taps: for each weight of a channel its first line, and the one behind its last.
        lines: copies from a channel's elements to the places of a result: where to, where from, how many elements.
        sizes: images and channels; elements of a channel; places of a result; how many elements lie between two of x, and between images
            and weights in *columns*.
    """
    images, channels, size, places, stride, image_step, weight_step = sizes
    for number in prange(images * channels):
        image, channel = number // channels, number % channels
        for tap in range(len(taps)):
            at = image * image_step + (channel * len(taps) + tap) * weight_step
            first, last = taps[tap]
            columns[at : at + places] = 0
            copy_lines(columns, at, 1, x, number * size, stride, lines[first:last])


def fits(g: Correlation, itemsize: int) -> bool:
    """Whether gradients of such filters are computed here."""
    return g.groups == 1 and not g.over_channels and _bytes(g, itemsize) <= LARGEST_IMAGE


def _bytes(g: Correlation, itemsize: int) -> int:
    """Of what weights meet in one image."""
    return itemsize * g.weights[2] * size_of(g.windows.out)


def correlate_backward(ctx: Context, grad: Any, filters_grad: Any, operand_grad: None, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the gradient of filters alone; see :func:`.correlation.correlate_backward`."""
    seen, places = g.weights[2], size_of(g.windows.out)
    target, grad = filters_grad.reshape(g.maps, seen), grad.reshape(len(grad), g.maps, places)
    blocks = min(len(grad), -(-_bytes(g, grad.itemsize) * len(grad) // max(GATHERED_BYTES, FILTERS * filters_grad.nbytes)))
    parts = ctx.scratch("parts of blocks", (blocks, *target.shape), grad.dtype) if blocks > 1 else target[None]
    x = writable(ctx, "images", operand).reshape(len(operand), -1)
    for block in range(blocks):
        images = slice(len(grad) * block // blocks, len(grad) * (block + 1) // blocks)
        count = images.stop - images.start
        flat = ctx.scratch("columns", (count * seen * places,), grad.dtype)
        columns = flat.reshape(count, seen, places)
        if is_one_product(g.maps, seen, places):
            columns = flat.reshape(seen, count, places).swapaxes(0, 1)
        steps = [stride // flat.itemsize for stride in columns.strides[:2]]
        sizes = count, g.channels, size_of(g.windows.dims), places, g.windows.strides[-1], *steps
        _gather.run(flat.size >= thresholds.elements_shared, flat, x[images].reshape(-1), *_tables(g.windows), sizes)
        sum_up(ctx, parts[block], grad[images], columns)
    if blocks > 1:
        ctx.sum_to(parts, filters_grad.reshape(1, *target.shape))


@lru_cache(maxsize=256)
def _tables(w: Windows) -> tuple[Any, Any]:
    """The tables *taps* and *lines* of windows."""
    tables = [_lines(w, tap) for tap in product(*map(range, w.kernel))]
    ends = np.cumsum([len(lines) for lines in tables])
    return np.stack([ends - [len(lines) for lines in tables], ends], axis=1), np.concatenate(tables)


def _lines(w: Windows, tap: tuple[int, ...]) -> Any:
    """The copies of what one weight meets."""
    to = of = np.zeros(1, np.int64)
    length = 0
    for axis, (number, dim, stride, dilation, lower, out) in enumerate(
        zip(tap, w.dims, w.strides, w.dilation, w.lower, w.out, strict=True)
    ):
        met = np.arange(out) * stride + number * dilation - lower
        (places,) = np.nonzero((met >= 0) & (met < dim))
        if axis == len(w.out) - 1:
            length, places = len(places), places[:1]
        to, of = np.add.outer(to * out, places).reshape(-1), np.add.outer(of * dim, met[places]).reshape(-1)
    return np.stack([to, of, np.full(len(to), length)], axis=1)
