"""Maxima and sums over sliding windows, one axis after the other.

All windows, wherever they start, are computed on flat memory: along an axis whose elements lie *step* apart, the maximum of three
is ``max(x[i], x[i + step], x[i + 2 * step])`` for every i at once.  Results that straddle two lines mean nothing and are never read.
Long runs that fill vector registers are worth more than the results thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.common.windows import Windows
from ...core.types.context import Context
from .planes import cut

BLOCK_BYTES = 1 << 20
"""Size that the planes of a block should not exceed, so that they stay in the cache from one axis to the next."""


def blocks(w: Windows, rows: int, itemsize: int) -> Iterator[slice]:
    """Cut the rows into blocks of planes that fit the cache."""
    return cut(rows, size_of(w.padded) * itemsize, BLOCK_BYTES)


def _first_elements(ctx: Context, flat: Any, rows: int, w: Windows) -> Any:
    """What a flat array over planes holds at the first element of each window: a view of shape (rows, *w.out)."""
    size = flat.itemsize
    steps = [step * stride * size for step, stride in zip(w.steps, w.strides, strict=True)]
    return ctx.xp.lib.stride_tricks.as_strided(flat, (rows, *w.out), (size_of(w.padded) * size, *steps))


def slide(ctx: Context, combine: Any, planes: Any, w: Windows) -> Any:
    """The elements of each window combined by a ufunc: an array of shape (rows, *w.out)."""
    if w.kernel == w.padded:
        return combine.reduce(planes, axis=tuple(range(1, planes.ndim)), keepdims=True)
    current = planes.reshape(-1)
    for axis in reversed(range(len(w.kernel))):
        kernel, step = w.kernel[axis], w.steps[axis]
        if kernel == 1:
            continue
        size = current.size - (kernel - 1) * step
        result = ctx.scratch(f"slide {axis}", (size,), current.dtype)
        combine(current[:size], current[step : step + size], out=result)
        for tap in range(2, kernel):
            combine(result, current[tap * step : tap * step + size], out=result)
        current = result
    return _first_elements(ctx, current, len(planes), w)


def slide_first_maximum(ctx: Context, planes: Any, w: Windows) -> tuple[Any, Any]:
    """The maximum of each window and the number of the first window element that has it: arrays of shape (rows, *w.out)."""
    flat, numbers = planes.reshape(-1), None
    weight = 1
    for axis in reversed(range(len(w.kernel))):
        if w.kernel[axis] > 1:
            flat, numbers = _first_maximum_along(ctx, flat, numbers, axis, weight, w)
            weight *= w.kernel[axis]
    if numbers is None:
        numbers = ctx.scratch("number", flat.shape, tap_type(w))
        numbers.fill(0)
    return _first_elements(ctx, flat, len(planes), w), _first_elements(ctx, numbers, len(planes), w)


def _first_maximum_along(ctx: Context, flat: Any, numbers: Any, axis: int, weight: int, w: Windows) -> tuple[Any, Any]:
    """Maxima along one axis; *weight* is what a step along it adds to the *numbers* of elements, None before the first axis."""
    xp = ctx.xp
    step = w.steps[axis]
    size = flat.size - (w.kernel[axis] - 1) * step
    best, best_numbers = flat[:size], None if numbers is None else numbers[:size]
    maximum = ctx.scratch(f"slide {axis}", (size,), flat.dtype)
    maximum_numbers = ctx.scratch(f"number {axis}", (size,), tap_type(w))
    candidates = ctx.scratch("number", (size,), tap_type(w))
    greater = ctx.scratch("greater", (size,), np.bool_)
    is_greater = greater.view(candidates.dtype) if candidates.itemsize == 1 else greater
    for tap in range(1, w.kernel[axis]):
        window = slice(tap * step, tap * step + size)
        xp.greater(flat[window], best, out=greater)
        xp.maximum(flat[window], best, out=maximum)
        if numbers is None:
            xp.multiply(is_greater, candidates.dtype.type(tap * weight), out=candidates)
        else:
            xp.add(numbers[window], tap * weight, out=candidates)
            xp.multiply(candidates, is_greater, out=candidates)
        # Elements further on have larger numbers: where this one is greater, the larger number is its own.
        if best_numbers is None:
            xp.copyto(maximum_numbers, candidates)
        else:
            xp.maximum(best_numbers, candidates, out=maximum_numbers)
        best, best_numbers = maximum, maximum_numbers
    return best, best_numbers


def tap_type(w: Windows) -> Any:
    """The smallest integer type that numbers the elements of a window."""
    return np.min_scalar_type(size_of(w.kernel) - 1)


def spread_sum(ctx: Context, firsts: Any, w: Windows) -> Any:
    """Give each element the sum of *firsts*, of shape (rows, *w.out), over the windows it is in: an array of shape (rows, *w.padded)."""
    xp = ctx.xp
    rows = len(firsts)
    if w.kernel == w.padded:
        return xp.broadcast_to(firsts, (rows, *w.padded))
    current = ctx.scratch("spread", (rows * size_of(w.padded),), firsts.dtype)
    current.fill(0)
    xp.copyto(_first_elements(ctx, current, rows, w), firsts)
    for axis, kernel in enumerate(w.kernel):
        if kernel == 1:
            continue
        result = ctx.scratch(f"slide {axis}", current.shape, current.dtype)
        xp.copyto(result, current)
        for tap in range(1, kernel):
            behind = result[tap * w.steps[axis] :]
            xp.add(behind, current[: behind.size], out=behind)
        current = result
    return current.reshape(rows, *w.padded)


def positions(ctx: Context, taps: Any, w: Windows) -> Any:
    """Places in the flat padded planes of the window elements numbered by *taps*, of shape (rows, *w.out)."""
    xp = ctx.xp
    rows = len(taps)
    rank = len(w.kernel)
    place = ctx.scratch("positions", taps.shape, np.intp)
    xp.take(xp.asarray(_tap_offsets(w)), taps, out=place, mode="clip")
    for axis, step in enumerate((size_of(w.padded), *(step * stride for step, stride in zip(w.steps, w.strides, strict=True)))):
        starts = xp.arange((rows, *w.out)[axis]) * step
        xp.add(place, starts.reshape(-1, *(1,) * (rank - axis)), out=place)
    return place


def _tap_offsets(w: Windows) -> Any:
    """Distance in memory from the first element of a window to each."""
    offsets = np.zeros((), np.intp)
    for kernel, step in zip(w.kernel, w.steps, strict=True):
        offsets = np.add.outer(offsets, np.arange(kernel) * step)
    return offsets.reshape(-1)
