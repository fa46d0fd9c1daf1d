"""Maxima of windows in compiled loops over planes: samples, or channels of them.

The maxima of all windows, wherever they begin, are found on flat memory, one axis after the other: long runs, which fill vector registers,
are worth more than what is thrown away.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np

from ...core.context import Context
from ...core.shape import size_of
from ...core.threads import max_threads
from ...core.windows import Windows
from .loops import Loop, compiled
from .pieces import copy, writable


@numba.njit(error_model="numpy")
def _greater_of(best: Any, numbers: Any, held: Any, held_numbers: Any, met: Any, met_numbers: Any, tap: Any) -> None:
    """The greater of what is held and what is met, with its number; NaN is greater than anything.

    Numbers are of the values' type, so that the compiler makes vectors of equal length.
    """
    for i in range(best.size):
        one, other, number, other_number = held[i], met[i], held_numbers[i], met_numbers[i] + tap
        is_greater = (other > one) | (other != other)
        best[i] = other if is_greater else one
        numbers[i] = other_number if is_greater else number


@numba.njit(error_model="numpy")
def _take_greater(best: Any, numbers: Any, met: Any, met_numbers: Any, tap: Any) -> None:
    """The same, of the best so far: an array that is read and written keeps the compiler from making vectors."""
    for i in range(best.size):
        one, other, number, other_number = best[i], met[i], numbers[i], met_numbers[i] + tap
        is_greater = (other > one) | (other != other)
        best[i] = other if is_greater else one
        numbers[i] = other_number if is_greater else number


@compiled
def _slide(work: Any, numbers: Any, at: int, axes: Any, store: int) -> int:
    """Find the maximum of the window that begins at each element of a plane, axis by axis; tell where in *work* they are.

    Results of windows that reach over the end of a line mean nothing.
    """
    size, weight = store, 1
    for axis in range(len(axes)):
        kernel, step = axes[axis]
        size -= (kernel - 1) * step
        to = at + store
        best, best_numbers = work[to : to + size], numbers[to : to + size]
        for tap in range(1, kernel):
            there, number = at + tap * step, work.dtype.type(tap * weight)
            met, met_numbers = work[there : there + size], numbers[there : there + size]
            if tap == 1:
                _greater_of(best, best_numbers, work[at : at + size], numbers[at : at + size], met, met_numbers, number)
            else:
                _take_greater(best, best_numbers, met, met_numbers, number)
        at, weight = to, weight * kernel
    return at


@Loop
def _find(
    threads: int, work: Any, numbers: Any, x: Any, out: Any, taps: Any, firsts: Any, first_taps: Any, axes: Any, lines: Any, size: int
) -> None:
    """Find the maximum of each window of each plane, and the number of the first element that has it.

    Args:
        work, numbers: flat space, for values and the numbers of the window elements they come from.
        size: elements of a plane of x.
    """
    positions, planes, space = len(firsts), len(x) // size, len(work) // threads
    store = space // (len(axes) + 1)
    for thread in numba.prange(threads):
        begin = thread * space
        work[begin : begin + store] = -np.inf
        numbers[begin : begin + store] = 0
        for plane in range(planes * thread // threads, planes * (thread + 1) // threads):
            for line in range(len(lines)):
                to, of, length = lines[line]
                copy(work, begin + to, x, plane * size + of, length)
            found, first = _slide(work, numbers, begin, axes, store), plane * positions
            for i in range(positions):
                best = work[found + firsts[i]]
                out[first + i], taps[first + i] = best, np.uint8(numbers[found + firsts[i]])
                if best == -np.inf:
                    taps[first + i] = first_taps[i]


@Loop
def _send_back(threads: int, dx: Any, grad: Any, taps: Any, starts: Any, offsets: Any, size: int) -> None:
    positions, planes = len(starts), len(dx) // size
    for thread in numba.prange(threads):
        for plane in range(planes * thread // threads, planes * (thread + 1) // threads):
            target = dx[plane * size : (plane + 1) * size]
            sent, places = grad[plane * positions : (plane + 1) * positions], taps[plane * positions : (plane + 1) * positions]
            target[:] = 0
            for i in range(positions):
                target[starts[i] + offsets[places[i]]] += sent[i]


def find_maxima(ctx: Context, out: Any, taps: Any, planes: Any, w: Windows) -> None:
    """Write the maximum of each window into *out* and the number of the first window element that has it into *taps*."""
    t, threads = _tables(w), min(max_threads(), len(planes))
    space = threads * (len(t.axes) + 1) * size_of(w.padded)
    work, numbers = ctx.scratch("work", (space,), planes.dtype), ctx.scratch("numbers", (space,), planes.dtype)
    planes = writable(ctx, "planes", planes).reshape(-1)
    tables = t.firsts, t.first_taps, t.axes, t.lines
    _find.run(True, threads, work, numbers, planes, out.reshape(-1), taps.reshape(-1), *tables, size_of(w.dims))


def send_back(ctx: Context, dx: Any, grad: Any, taps: Any, w: Windows) -> None:
    """Write the gradient of the planes, which goes to the maxima, into *dx*."""
    t = _tables(w)
    grad = writable(ctx, "gradient", grad).reshape(-1)
    _send_back.run(True, min(max_threads(), len(dx)), dx.reshape(-1), grad, taps.reshape(-1), t.starts, t.offsets, size_of(w.dims))


class _Tables(NamedTuple):
    """What the loops are given for windows of one geometry.

    Attributes:
        starts, offsets: where each window begins in a plane, and how far from there its elements are.
        firsts, first_taps: where each window begins in a padded plane, and its first element that is not padding.
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
def _tables(w: Windows) -> _Tables:
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
    return _Tables(starts, offsets, firsts, is_inside.argmax(axis=1).astype(np.uint8), np.array(axes).reshape(-1, 2), _lines(w))


def _lines(w: Windows) -> Any:
    """The copies from a plane to a padded one: all of it at once where there is no padding."""
    if not w.is_padded:
        return np.array([[0, 0, size_of(w.dims)]])
    to, of = (np.arange(size_of(shape)).reshape(shape) for shape in (w.padded, w.dims))
    targets, sources = to[w.inside], of[w.seen]
    lengths = np.full(targets[..., 0].size, targets.shape[-1])
    return np.stack([targets[..., 0].reshape(-1), sources[..., 0].reshape(-1), lengths], axis=1)
