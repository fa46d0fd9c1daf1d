"""Reductions of rows in lanes: functions for compiled loops over rows of a matrix.

Sums of some thousand elements are taken in the elements' type, those of such sums in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.machine.language import jittable, kind_of, overload_for
from .exponential import exp

SUM = {"reassoc", "contract"}
"""Allows the compiler to sum in lanes."""

BLOCK = 4096
"""Elements that are summed in their own type."""


def ordered(x: Any) -> Any:
    """A whole number of a number's size; they are in the same order."""
    return _ordered_of(kind_of(x))(x)


def from_ordered(x: Any) -> Any:
    """The number that a whole number stands for."""
    return _from_ordered_of(kind_of(x))(x)


@overload_for(ordered)
def _ordered_of(x: Any) -> Callable[[Any], Any]:
    return _ORDERED[x.bitwidth]


@overload_for(from_ordered)
def _from_ordered_of(x: Any) -> Callable[[Any], Any]:
    return _FROM_ORDERED[x.bitwidth]


def _make_order(real: Any, whole: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Both functions for a type.  Of negative numbers the digits are turned around."""
    digits, last = whole(np.dtype(real).itemsize * 8 - 1), whole(np.iinfo(whole).max)

    def ordered(x: Any) -> Any:
        bits = real(x).view(whole)
        return whole(bits ^ ((bits >> digits) & last))

    def from_ordered(x: Any) -> Any:
        return whole(x ^ ((x >> digits) & last)).view(real)

    return ordered, from_ordered


_PAIRS = {32: _make_order(np.float32, np.int32), 64: _make_order(np.float64, np.int64)}
_ORDERED, _FROM_ORDERED = ({size: pair[i] for size, pair in _PAIRS.items()} for i in range(2))


@jittable
def highest(x: Any) -> Any:
    """The greatest element; undefined with NaN.  Compares whole numbers, since comparisons that respect NaN prevent vectors."""
    best = ordered(x[0])
    for i in range(x.size):
        place = ordered(x[i])
        best = place if place > best else best
    return from_ordered(best)


@jittable
def lowest(x: Any) -> Any:
    """The same for the smallest element."""
    best = ordered(x[0])
    for i in range(x.size):
        place = ordered(x[i])
        best = place if place < best else best
    return from_ordered(best)


@jittable
def has_nan(x: Any) -> bool:
    found = False
    for i in range(x.size):
        found |= x[i] != x[i]
    return found


def _in_blocks(part: Callable[..., Any]) -> Callable[..., Any]:
    """A sum over rows x and y, in float64, of what *part* sums up for x, a number and y in their own type."""
    summed = jittable(fastmath=SUM)(part)

    @jittable
    def total(x: Any, edge: Any, y: Any) -> float:
        if x.size <= BLOCK:
            return np.float64(summed(x, edge, y))
        total = 0.0
        for begin in range(0, x.size, BLOCK):
            total += summed(x[begin : begin + BLOCK], edge, y[begin : begin + BLOCK])
        return total

    return total


def _sum(x: Any, edge: Any, y: Any) -> Any:
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i]
    return total


def _sum_of_products(x: Any, edge: Any, y: Any) -> Any:
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i] * y[i]
    return total


def _sum_of_powers(x: Any, edge: Any, y: Any) -> Any:
    total = x.dtype.type(0)
    for i in range(x.size):
        total += exp(x[i] - edge)
    return total


def _write_powers(x: Any, edge: Any, y: Any) -> Any:
    total = x.dtype.type(0)
    for i in range(x.size):
        power = exp(x[i] - edge)
        y[i] = power
        total += power
    return total


_elements, _products, _powers, _written_powers = map(_in_blocks, (_sum, _sum_of_products, _sum_of_powers, _write_powers))


@jittable
def add_up(x: Any) -> float:
    """The sum of the elements."""
    return _elements(x, 0, x)


@jittable
def inner(x: Any, y: Any) -> float:
    """The sum of the products of two rows' elements."""
    return _products(x, 0, y)


@jittable
def add_up_powers(x: Any, edge: Any) -> float:
    """The sum of the exponentials of the distances from *edge*."""
    return _powers(x, edge, x)


@jittable
def write_powers(x: Any, edge: Any, y: Any) -> float:
    """The same sum, whose terms are written to y; y must neither be x nor lie right behind it, since that changes the order of addition."""
    return _written_powers(x, edge, y)
