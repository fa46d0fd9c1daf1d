"""Maxima of windows, without their places, in compiled loops over planes: for evaluation.

One axis after the other is gone through, the first one first: along it only the lines that windows begin with are computed, as vectors of
all that lies behind.  Along the last axis the maxima of all windows, wherever they begin, are found on flat memory; where windows of two or
three elements begin at every second one, the last two axes are gone through at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.common.threads import max_threads
from ...core.common.thresholds import is_offered, thresholds
from ...core.common.windows import Windows
from ...core.machine.language import jittable, lowered_in, prange, slot
from ...core.machine.loops import loop
from ...core.types.context import Context
from .pieces import address, copy
from .pools import are_many, tables_for
from .tile import VECTOR_BYTES, take_alternate

FREQUENT = 2, 3
"""Numbers of elements that have code of their own."""


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


@lowered_in("maxima_code")
def greatest_alternate(
    to: int, source: int, lines: int, line: int, deep: int, step: int, count: int, taps: int, rectify: bool, like: Any
) -> None:
    """Write the maxima of windows of two axes that begin at every second element of a line.

    Whole vectors are read and written, up to :func:`_slack` elements behind the last one.

    Args:
        to: address of the results, which lie side by side.
        source: address of the first element of the first window.
        lines, line: how many lines of windows there are, and the bytes from one to the next.
        deep, step: lines of a window, and the bytes from one to the next.
        count, taps: windows of a line, and how many of its elements each has, one of :data:`FREQUENT`.
        rectify: whether negative maxima become zero.
        like: an array of the element type.
    """


@loop("q R1 R1 R1 I2 I2 ? q q ?")
def find(
    threads: int, work: Any, x: Any, out: Any, axes: Any, lines: Any, is_padded: bool, size: int, padded: int, rectify: bool
) -> None:  # fmt: skip
    """Find the maximum of each window of each plane.

    Args:
        threads: for how many there is space.
        work: flat space, three padded planes for each thread; with :func:`_slack` behind each the last two axes are gone through at once.
        axes: for each axis how many times it is there, its size, the number of windows, the distance between two of them, the elements of
            each, and how many elements lie behind one of the axis.
        lines: copies from a plane to a padded one: where to, where from, how many elements.
        is_padded: whether a padded plane differs from one of x.
        size, padded: elements of a plane of x, and of a padded one.
        rectify: whether negative maxima become zero.
    """
    space = len(work) // threads // 3
    begin, is_clear, zero = slot() * 3 * space, False, work.dtype.type(0)
    last = len(axes) - 1
    width, count, stride, taps = axes[last, 1], axes[last, 2], axes[last, 3], axes[last, 4]
    positions, over = axes[last, 0] * count, space - padded
    are_together, is_direct = over > 0, stride == 1 and count * work.itemsize >= VECTOR_BYTES
    for plane in prange(len(x) // size):
        source, at, to = x, plane * size, begin + space
        if is_padded or at + size + over > len(x):
            if not is_clear:
                work[begin : begin + space], is_clear = -np.inf, True
            for line in range(len(lines)):
                target, of, length = lines[line]
                copy(work, begin + target, x, at + of, length)
            source, at = work, begin
        for axis in range(last - 1 if are_together else last):
            _along(source, at, work, to, axes[axis])
            source, at, to = work, to, begin + 3 * space - (to - begin)
        first = plane * positions
        if are_together:
            _along_last(source, at, work, to, axes, rectify)
            copy(out, first, work, to, positions)
            continue
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
def _along_last(source: Any, at: int, work: Any, to: int, axes: Any, rectify: bool) -> None:
    """Write the maxima of windows along the last two axes, of which there may be one alone."""
    last = len(axes) - 1
    width, count, taps = axes[last, 1], axes[last, 2], axes[last, 4]
    outer = dim = lines = stride = deep = 1
    if last > 0:
        outer, dim, lines, stride, deep = axes[last - 1, :5]
    line = width * work.itemsize
    for number in range(outer):
        target, first = address(work, to + number * lines * count), address(source, at + number * dim * width)
        greatest_alternate(target, first, lines, stride * line, deep, line, count, taps, rectify, work)


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
    are_together = w.strides[-1] == 2 and w.kernel[-1] in FREQUENT
    space = padded + (_slack(w.out[-1], planes.itemsize) if are_together else 0)
    work = ctx.scratch("work", (3 * threads * space,), planes.dtype)
    flat, tables = (planes.reshape(-1), out.reshape(-1)), (_axes(w), tables_for(w).lines, w.is_padded)
    windows = len(planes) * size_of(w.out) * size_of(w.kernel)
    arguments = threads, work, *flat, *tables, size_of(w.dims), padded, rectify
    return find.bound(are_many(w, planes), *arguments, most=threads, offered=is_offered(windows, thresholds.pooling_shared))


def _slack(count: int, itemsize: int) -> int:
    """How many elements at most :func:`greatest_alternate` reads or writes behind the last one."""
    return 2 * (count + VECTOR_BYTES // itemsize)


@lru_cache(maxsize=256)
def _axes(w: Windows) -> Any:
    each = zip(w.padded, w.out, w.strides, w.kernel, w.steps, strict=True)
    return np.array([(size_of(w.out[:axis]), *of_axis) for axis, of_axis in enumerate(each)])
