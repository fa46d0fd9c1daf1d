"""Maxima of windows, without their places, in compiled loops over planes: for evaluation.

One axis after the other is gone through, the first one first: along it only the lines that windows begin with are computed, as vectors of
all that lies behind.  Along the last axis the maxima of all windows, wherever they begin, are found on flat memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.common.threads import max_threads
from ...core.common.windows import Windows
from ...core.machine.language import jittable, lowered_in, prange, slot
from ...core.machine.loops import loop
from ...core.types.context import Context
from .pieces import address, copy
from .pools import are_many, tables_for
from .tile import VECTOR_BYTES, take_alternate


@lowered_in("maxima_code")
def greatest(to: int, source: int, taps: int, step: int, size: int, like: Any) -> None:
    """Write the greatest of some elements for each of a line; NaN is greater than anything.

    Args:
        to: address of the results.
        source: address of the first element that the first result is the greatest of.
        taps, step: how many these are, and the bytes from one to the next.
        size: how many results there are.
        like: an array of the element type.
    """


@loop("q R1 R1 R1 I2 I2 q q ?")
def find(threads: int, work: Any, x: Any, out: Any, axes: Any, lines: Any, size: int, padded: int, rectify: bool) -> None:
    """Find the maximum of each window of each plane.

    Args:
        threads: for how many there is space.
        work: flat space, three padded planes for each thread.
        axes: for each axis how many times it is there, its size, the number of windows, the distance between two of them, the elements of
            each, and how many elements lie behind one of the axis.
        lines: copies from a plane to a padded one: where to, where from, how many elements; none if there is no padding.
        size, padded: elements of a plane of x, and of a padded one.
        rectify: whether negative maxima become zero.
    """
    begin, is_clear, zero = slot() * (len(work) // threads), False, work.dtype.type(0)
    last = len(axes) - 1
    width, count, stride = axes[last, 1], axes[last, 2], axes[last, 3]
    positions, is_direct = axes[last, 0] * count, stride == 1 and count * work.itemsize >= VECTOR_BYTES
    for plane in prange(len(x) // size):
        source, at, to = x, plane * size, begin + padded
        if len(lines) > 0:
            if not is_clear:
                work[begin : begin + padded], is_clear = -np.inf, True
            for line in range(len(lines)):
                target, of, length = lines[line]
                copy(work, begin + target, x, plane * size + of, length)
            source, at = work, begin
        for axis in range(last):
            _along(source, at, work, to, axes[axis])
            source, at, to = work, to, begin + 3 * padded - (to - begin)
        taps = axes[last, 4]
        first = plane * positions
        if not is_direct:
            greatest(address(work, to), address(source, at), taps, x.itemsize, axes[last, 0] * width - taps + 1, x)
        for line in range(axes[last, 0]):
            if is_direct:
                greatest(address(out, first + line * count), address(source, at + line * width), taps, x.itemsize, count, x)
            elif stride == 2:
                take_alternate(address(out, first + line * count), address(work, to + line * width), count, work)
            else:
                for i in range(count):
                    out[first + line * count + i] = work[to + line * width + i * stride]
        if rectify:
            results = out[first : first + positions]
            for i in range(positions):
                results[i] = zero if results[i] < zero else results[i]


@jittable
def _along(source: Any, at: int, work: Any, to: int, axis: Any) -> None:
    """Write the maxima of windows along an axis that is not the last."""
    outer, dim, count, stride, kernel, inner = axis
    lines, size = (1, count * inner) if stride == 1 else (count, inner)  # lines that follow one another are one
    for line in range(outer * lines):
        first = at + (line // lines * dim + line % lines * stride) * inner
        greatest(address(work, to + line * size), address(source, first), kernel, inner * work.itemsize, size, work)


def bound_maxima(ctx: Context, out: Any, planes: Any, w: Windows, rectify: bool) -> Callable[[], None]:
    """A function that writes the maximum of each window into *out*.

    Args:
        rectify: whether negative maxima become zero.
    """
    threads, padded = min(max_threads(), len(planes)), size_of(w.padded)
    work = ctx.scratch("work", (3 * threads * padded,), planes.dtype)
    lines = tables_for(w).lines if w.is_padded else _NO_LINES
    arguments = threads, work, planes.reshape(-1), out.reshape(-1), _axes(w), lines, size_of(w.dims), padded, rectify
    return find.bound(are_many(w, planes), *arguments, most=threads)


@lru_cache(maxsize=256)
def _axes(w: Windows) -> Any:
    each = zip(w.padded, w.out, w.strides, w.kernel, w.steps, strict=True)
    return np.array([(size_of(w.out[:axis]), *of_axis) for axis, of_axis in enumerate(each)])


_NO_LINES = np.zeros((0, 3), np.intp)
