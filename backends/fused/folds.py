"""Loops of reductions, over rows ``(rows, n)`` that are reduced to a number each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import prange
from ...core.machine.loops import loop
from .lanes import add_up, add_up_powers, has_nan, highest, lowest, write_powers


@loop("R2 R1 d")
def total(x: Any, y: Any, factor: Any) -> None:
    """Write the sums of rows, times a factor, to y."""
    for row in prange(len(x)):
        y[row] = add_up(x[row]) * factor


@loop("R3 R2 d")
def column_totals(x: Any, y: Any, factor: Any) -> None:
    """Write the sums of columns, added up one row after another, times a factor, to rows of y."""
    scale = x.dtype.type(factor)
    for number in prange(len(x)):
        target = y[number]
        target[:] = 0
        for row in range(x.shape[1]):
            added = x[number, row]
            for i in range(target.size):
                target[i] += added[i]
        for i in range(target.size):
            target[i] *= scale


@loop("R2 R1")
def greatest(x: Any, y: Any) -> None:
    for row in prange(len(x)):
        y[row] = x.dtype.type(np.nan) if has_nan(x[row]) else highest(x[row])


@loop("R2 R1")
def least(x: Any, y: Any) -> None:
    for row in prange(len(x)):
        y[row] = x.dtype.type(np.nan) if has_nan(x[row]) else lowest(x[row])


@loop("R2 R1")
def log_total(x: Any, y: Any) -> None:
    """Write the logarithms of the sums of exponentials to y; infinite maxima must not give inf - inf."""
    limit = x.dtype.type(np.finfo(x.dtype).max)
    for row in prange(len(x)):
        edge = min(max(highest(x[row]), -limit), limit)
        y[row] = np.log(x.dtype.type(add_up_powers(x[row], edge))) + edge


@loop("R1 r R2")
def spread(dy: Any, factor: Any, dx: Any) -> None:
    """Write the gradient of sums, times a factor."""
    for row in prange(len(dx)):
        target, value = dx[row], dy[row] * factor
        for i in range(target.size):
            target[i] = value


@loop("R2 R1 R1 R2")
def spread_to_equal(x: Any, y: Any, dy: Any, dx: Any) -> None:
    """Write the gradient of extrema, which goes to all elements that equal them."""
    zero = x.dtype.type(0)
    for row in prange(len(dx)):
        of, target, value, extremum = x[row], dx[row], dy[row], y[row]
        for i in range(target.size):
            target[i] = value if of[i] == extremum else zero


@loop("R2 R1 R1 R2")
def spread_by_powers(x: Any, y: Any, dy: Any, dx: Any) -> None:
    """Write the gradient of logarithms of sums of exponentials; these sum to 1 but for the rounding of a large y."""
    for row in prange(len(dx)):
        target = dx[row]
        share = x.dtype.type(dy[row] / write_powers(x[row], y[row], target))
        for i in range(target.size):
            target[i] *= share
