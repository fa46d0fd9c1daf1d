"""Maxima of windows in compiled loops over planes: samples, or channels of them.

The maxima of all windows, wherever they begin, are found on flat memory, one axis after the other: long runs, which fill vector registers,
save more time than the unused results cost.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.common.shape import size_of
from ...core.common.threads import max_threads
from ...core.common.thresholds import thresholds
from ...core.common.windows import Windows
from ...core.machine.language import jittable, prange, slot
from ...core.machine.loops import loop
from ...core.types.context import Context
from .pieces import copy, writable


@jittable
def _greater(one: Any, number: Any, other: Any, other_number: Any) -> Any:
    """The greater of two values with its number; NaN is greater than anything."""
    is_greater = (other > one) | (other != other)
    return (other if is_greater else one), (other_number if is_greater else number)


@jittable
def _greatest_of_three(
    best: Any, numbers: Any, first: Any, first_numbers: Any, second: Any, second_numbers: Any, third: Any, third_numbers: Any,
    tap: Any, last: Any,
) -> None:  # fmt: skip
    """The greatest of three arrays and its number, to which those of the second add *tap*, those of the third *last*.

    Numbers are of the values' type, so that the compiler uses vectors of equal length.
    """
    for i in range(best.size):
        value, number = _greater(first[i], first_numbers[i], second[i], second_numbers[i] + tap)
        best[i], numbers[i] = _greater(value, number, third[i], third_numbers[i] + last)


@jittable
def _take_greater(best: Any, numbers: Any, met: Any, met_numbers: Any, tap: Any) -> None:
    """The greater of an array and the best so far, which needs a loop of its own: arrays that may be the same are gone through singly."""
    for i in range(best.size):
        best[i], numbers[i] = _greater(best[i], numbers[i], met[i], met_numbers[i] + tap)


@jittable
def _slide(work: Any, numbers: Any, at: int, axes: Any, store: int) -> int:
    """Find the maximum of the window that begins at each element of a plane, axis by axis; tell where in *work* they are.

    Results of windows that reach over the end of a line are meaningless.
    """
    size, weight = store, 1
    for axis in range(len(axes)):
        kernel, step = axes[axis]
        size -= (kernel - 1) * step
        to, last = at + store, min(2, kernel - 1)
        best, best_numbers = work[to : to + size], numbers[to : to + size]
        first, first_numbers = work[at : at + size], numbers[at : at + size]
        there = at + step
        second, second_numbers = work[there : there + size], numbers[there : there + size]
        there = at + last * step
        third, third_numbers = work[there : there + size], numbers[there : there + size]
        added = work.dtype.type(weight), work.dtype.type(last * weight)
        _greatest_of_three(best, best_numbers, first, first_numbers, second, second_numbers, third, third_numbers, *added)
        for tap in range(3, kernel):
            there = at + tap * step
            _take_greater(best, best_numbers, work[there : there + size], numbers[there : there + size], work.dtype.type(tap * weight))
        at, weight = to, weight * kernel
    return at


@loop("q R1 R1 R1 R1 B1 U1 B1 I2 I2 q ?")
def _find(
    threads: int, work: Any, numbers: Any, x: Any, out: Any, taps: Any, firsts: Any, first_taps: Any, axes: Any, lines: Any, size: int,
    rectify: bool,
) -> None:  # fmt: skip
    """Find the maximum of each window of each plane, and the number of the first element that has it.

    Args:
        threads: for how many there is space.
        work, numbers: flat space, for values and the numbers of the window elements they come from.
        size: elements of a plane of x.
        rectify: whether negative maxima become zero.
    """
    zero = work.dtype.type(0)
    positions, planes, space = len(firsts), len(x) // size, len(work) // threads
    store = space // (len(axes) + 1)
    begin, is_clear = slot() * space, False
    for plane in prange(planes):
        if not is_clear:
            work[begin : begin + store], numbers[begin : begin + store], is_clear = -np.inf, 0, True
        for line in range(len(lines)):
            to, of, length = lines[line]
            copy(work, begin + to, x, plane * size + of, length)
        found, first = np.uintp(_slide(work, numbers, begin, axes, store)), plane * positions
        for i in range(positions):
            best = work[found + firsts[i]]
            out[first + i], taps[first + i] = (zero if rectify and best < zero else best), np.uint8(numbers[found + firsts[i]])
            if best == -np.inf:
                taps[first + i] = first_taps[i]


@loop("R1 R1 R1 B1 I1 I1 q ?")
def _send_back(dx: Any, grad: Any, out: Any, taps: Any, starts: Any, offsets: Any, size: int, rectify: bool) -> None:
    """Add up gradients where the maxima of their windows are; where results were rectified, those of positive ones."""
    positions, planes, zero, one = len(starts), len(dx) // size, dx.dtype.type(0), dx.dtype.type(1)
    for plane in prange(planes):
        target = dx[plane * size : (plane + 1) * size]
        of_plane = slice(plane * positions, (plane + 1) * positions)
        sent, results, places = grad[of_plane], out[of_plane], taps[of_plane]
        target[:] = 0
        for i in range(positions):
            passes = one if not rectify or results[i] > 0 else zero
            target[starts[i] + offsets[places[i]]] += sent[i] * passes


def find_maxima(ctx: Context, out: Any, taps: Any, planes: Any, w: Windows, rectify: bool) -> None:
    """Write the maximum of each window into *out* and the number of the first window element that has it into *taps*.

    Args:
        rectify: whether negative maxima become zero.
    """
    t, threads = tables_for(w), min(max_threads(), len(planes))
    space = threads * (len(t.axes) + 1) * size_of(w.padded)
    work, numbers = ctx.scratch("work", (space,), planes.dtype), ctx.scratch("numbers", (space,), planes.dtype)
    is_shared, planes = are_many(w, planes), writable(ctx, "planes", planes).reshape(-1)
    tables = t.firsts, t.first_taps, t.axes, t.lines
    _find.run(is_shared, threads, work, numbers, planes, out.reshape(-1), taps.reshape(-1), *tables, size_of(w.dims), rectify, most=threads)


def send_back(ctx: Context, dx: Any, grad: Any, out: Any, taps: Any, w: Windows) -> None:
    """Write the gradient of the planes, which goes to the maxima, into *dx*.

    Args:
        out: the maxima, with zeros in place of negative ones; None where these remained.
    """
    t, grad = tables_for(w), writable(ctx, "gradient", grad).reshape(-1)
    result = grad if out is None else writable(ctx, "result", out).reshape(-1)
    tables = taps.reshape(-1), t.starts, t.offsets, size_of(w.dims)
    _send_back.run(are_many(w, dx), dx.reshape(-1), grad, result, *tables, out is not None)


def are_many(w: Windows, planes: Any) -> bool:
    """Whether threads share the windows of these planes."""
    return len(planes) * size_of(w.out) * size_of(w.kernel) >= thresholds.pooling_shared


class Tables(NamedTuple):
    """The arguments of the loops for windows of one geometry.

    Attributes:
        starts, offsets: where each window begins in a plane, and how far from there its elements are.
        firsts, first_taps: where each window begins in a padded plane, unsigned, and its first element that is not padding.
        axes: elements of a window along each axis, the last axis first, and the distance between two of them in a padded plane.
        lines: copies from a plane to a padded one: where to, where from, how many elements.
    """

    starts: Any
    offsets: Any
    firsts: Any
    first_taps: Any
    axes: Any
    lines: Any


@lru_cache(maxsize=256)
def tables_for(w: Windows) -> Tables:
    is_inside = np.ones((1, 1), np.bool_)
    starts = offsets = firsts = np.zeros(1, np.int64)
    for dim, padded, out, stride, lower, kernel in zip(w.dims, w.padded, w.out, w.strides, w.lower, w.kernel, strict=True):
        places, steps = np.arange(out) * stride, np.arange(kernel)
        inside = np.add.outer(places - lower, steps)
        inside = (inside >= 0) & (inside < dim)
        is_inside = (is_inside[:, None, :, None] & inside[None, :, None, :]).reshape(len(is_inside) * out, -1)
        starts, offsets = np.add.outer(starts * dim, places - lower).reshape(-1), np.add.outer(offsets * dim, steps).reshape(-1)
        firsts = np.add.outer(firsts * padded, places).reshape(-1)
    axes = [(kernel, step) for kernel, step in zip(w.kernel, w.steps, strict=True) if kernel > 1][::-1]
    first_taps = is_inside.argmax(axis=1).astype(np.uint8)
    return Tables(starts, offsets, firsts.astype(np.uintp), first_taps, np.array(axes).reshape(-1, 2), _lines(w))


def _lines(w: Windows) -> Any:
    """The copies from a plane to a padded one: all of it at once where there is no padding."""
    if not w.is_padded:
        return np.array([[0, 0, size_of(w.dims)]])
    to, of = (np.arange(size_of(shape)).reshape(shape) for shape in (w.padded, w.dims))
    targets, sources = to[w.inside], of[w.seen]
    lengths = np.full(targets[..., 0].size, targets.shape[-1])
    return np.stack([targets[..., 0].reshape(-1), sources[..., 0].reshape(-1), lengths], axis=1)
