"""Maxima of windows, without their places, in compiled loops over planes, as in :mod:`.pools`: for evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.common.threads import max_threads
from ...core.common.windows import Windows
from ...core.machine.language import jittable, prange, slot
from ...core.machine.loops import loop
from ...core.types.context import Context
from .pieces import copy
from .pools import are_many, tables_for


@jittable
def _greater(one: Any, other: Any) -> Any:
    """The greater of two values; NaN is greater than anything."""
    return other if (other > one) | (other != other) else one


@jittable
def _greatest_of_three(best: Any, first: Any, second: Any, third: Any) -> None:
    for i in range(best.size):
        best[i] = _greater(_greater(first[i], second[i]), third[i])


@jittable
def _take_greater(best: Any, met: Any) -> None:
    for i in range(best.size):
        best[i] = _greater(best[i], met[i])


@loop("q R1 R1 R1 U1 I2 I2 q ?")
def find(threads: int, work: Any, x: Any, out: Any, firsts: Any, axes: Any, lines: Any, size: int, rectify: bool) -> None:
    """Find the maximum of each window of each plane.

    Args:
        threads: for how many there is space.
        work: flat space.
        firsts, axes, lines: as :class:`.pools.Tables` says.
        size: elements of a plane of x.
        rectify: whether negative maxima become zero.
    """
    positions, planes, space = len(firsts), len(x) // size, len(work) // threads
    store = space // (len(axes) + 1)
    zero = work.dtype.type(0)
    begin, is_clear = slot() * space, False
    for plane in prange(planes):
        if not is_clear:
            work[begin : begin + store], is_clear = -np.inf, True
        for line in range(len(lines)):
            to, of, length = lines[line]
            copy(work, begin + to, x, plane * size + of, length)
        at, length = begin, store
        for axis in range(len(axes)):
            kernel, step = axes[axis]
            length -= (kernel - 1) * step
            second, third = at + step, at + min(2, kernel - 1) * step
            best = work[at + store : at + store + length]
            _greatest_of_three(best, work[at : at + length], work[second : second + length], work[third : third + length])
            for tap in range(3, kernel):
                _take_greater(best, work[at + tap * step : at + tap * step + length])
            at += store
        found, results = np.uintp(at), out[plane * positions : (plane + 1) * positions]
        for i in range(positions):
            results[i] = work[found + firsts[i]]
        if rectify:
            for i in range(positions):
                results[i] = zero if results[i] < zero else results[i]


def bound_maxima(ctx: Context, out: Any, planes: Any, w: Windows, rectify: bool) -> Callable[[], None]:
    """A function that writes the maximum of each window into *out*.

    Args:
        rectify: whether negative maxima become zero.
    """
    t, threads = tables_for(w), min(max_threads(), len(planes))
    work = ctx.scratch("work", (threads * (len(t.axes) + 1) * size_of(w.padded),), planes.dtype)
    arguments = threads, work, planes.reshape(-1), out.reshape(-1), t.firsts, t.axes, t.lines, size_of(w.dims), rectify
    return find.bound(are_many(w, planes), *arguments, most=threads)
