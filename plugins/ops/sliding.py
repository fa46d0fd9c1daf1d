"""Maxima and sums over sliding windows, one axis after the other.

All windows, wherever they start, are computed on flat memory: along an axis whose elements lie *step* apart, the maximum of three
is ``max(x[i], x[i + step], x[i + 2 * step])`` for every i at once.  Results that straddle two lines mean nothing and are never read.
Long runs that fill vector registers are worth more than the results thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.context import Context
from ...core.shape import size_of
from ...core.windows import Windows

BLOCK_BYTES = 1 << 18
"""Size that the planes of a block should not exceed, so that they stay in the cache from one axis to the next."""


def blocks(w: Windows, rows: int, itemsize: int) -> Iterator[slice]:
    """Cut the rows into blocks of planes that fit the cache."""
    step = max(1, BLOCK_BYTES // max(size_of(w.padded) * itemsize, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def padded_planes(ctx: Context, x: Any, w: Windows, dtype: Any, fill: float) -> Any:
    """The operand in the type to compute in, with padding of value *fill*: an array of shape (rows, *w.padded)."""
    if not w.is_padded and x.dtype == dtype and x.flags.c_contiguous:
        return x
    planes = ctx.scratch("planes", (len(x), *w.padded), dtype)
    if w.is_padded:
        planes.fill(fill)
    ctx.xp.copyto(planes[(..., *w.inside)], x)
    return planes


def _first_elements(ctx: Context, flat: Any, rows: int, w: Windows) -> Any:
    """What a flat array over planes holds at the first element of each window: a view of shape (rows, *w.out)."""
    size = flat.itemsize
    steps = [step * stride * size for step, stride in zip(_steps(w), w.strides, strict=True)]
    return ctx.xp.lib.stride_tricks.as_strided(flat, (rows, *w.out), (size_of(w.padded) * size, *steps))


def slide(ctx: Context, combine: Any, planes: Any, w: Windows) -> Any:
    """The elements of each window combined by a ufunc: an array of shape (rows, *w.out)."""
    if w.kernel == w.padded:
        return combine.reduce(planes, axis=tuple(range(1, planes.ndim)), keepdims=True)
    current = planes.reshape(-1)
    for axis in reversed(range(len(w.kernel))):
        kernel, step = w.kernel[axis], _steps(w)[axis]
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
    current = planes.reshape(-1)
    numbers = None
    weight = 1
    for axis in reversed(range(len(w.kernel))):
        if w.kernel[axis] > 1 or numbers is None:
            current, numbers = _first_maximum_along(ctx, current, numbers, axis, weight, w)
            weight *= w.kernel[axis]
    return _first_elements(ctx, current, len(planes), w), _first_elements(ctx, numbers, len(planes), w)


def _first_maximum_along(ctx: Context, flat: Any, numbers: Any, axis: int, weight: int, w: Windows) -> tuple[Any, Any]:
    """Maxima along one axis; *weight* is what a step along it adds to the *numbers* of elements, None before the first axis."""
    xp = ctx.xp
    kernel, step = w.kernel[axis], _steps(w)[axis]
    size = flat.size - (kernel - 1) * step
    best = ctx.scratch(f"slide {axis}", (size,), flat.dtype)
    best_number = ctx.scratch(f"number {axis}", (size,), tap_type(w))
    greater = ctx.scratch("greater", (size,), np.bool_)
    number = ctx.scratch("number", (size,), tap_type(w))
    xp.copyto(best, flat[:size])
    xp.copyto(best_number, 0 if numbers is None else numbers[:size])
    for tap in range(1, kernel):
        window = slice(tap * step, tap * step + size)
        xp.greater(flat[window], best, out=greater)
        xp.maximum(flat[window], best, out=best)
        if numbers is None:
            xp.multiply(_as_number(greater, number), tap * weight, out=number)
        else:
            xp.add(numbers[window], tap * weight, out=number)
            xp.multiply(number, _as_number(greater, number), out=number)
        # Elements further on have larger numbers: where this one is greater, the larger number is its own.
        xp.maximum(best_number, number, out=best_number)
    return best, best_number


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
            behind = result[tap * _steps(w)[axis] :]
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
    for axis, step in enumerate((size_of(w.padded), *(step * stride for step, stride in zip(_steps(w), w.strides, strict=True)))):
        starts = xp.arange((rows, *w.out)[axis]) * step
        xp.add(place, starts.reshape(-1, *(1,) * (rank - axis)), out=place)
    return place


def _steps(w: Windows) -> tuple[int, ...]:
    """Distances in memory between neighbours along each axis of the planes."""
    padded = w.padded
    return tuple(size_of(padded[axis + 1 :]) for axis in range(len(padded)))


def _tap_offsets(w: Windows) -> Any:
    """Distance in memory from the first element of a window to each."""
    offsets = np.zeros((), np.intp)
    for kernel, step in zip(w.kernel, _steps(w), strict=True):
        offsets = np.add.outer(offsets, np.arange(kernel) * step)
    return offsets.reshape(-1)


def _as_number(mask: Any, like: Any) -> Any:
    """Truth values as 0 and 1, without a conversion where numbers are as small."""
    return mask.view(like.dtype) if like.itemsize == 1 else mask
