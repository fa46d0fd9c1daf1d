"""Sums of long arrays, in an order of addition that compiled loops can follow: no result depends on who adds, or how many."""

from __future__ import annotations

from typing import Any

from .shape import size_of

LANES = 64
"""Sums that are made side by side, of every so-manieth element."""

ROWS = 64
"""Elements that are added up in the array's own type, before the sums of lanes are in float64."""

BLOCK = ROWS * LANES
"""Elements that have lanes of their own."""


def total(xp: Any, array: Any) -> float:
    """The sum of an array's elements, in an order that depends on the array's size alone.

    >>> from cntk.core.sums import total
    >>> total(np, np.array([[1.0, 2.0], [3.0, 6.0]]))
    12.0
    """
    flat = array.reshape(-1)
    whole = flat[: flat.size - flat.size % BLOCK]
    return total_of_lanes(xp, xp.sum(whole.reshape(-1, ROWS, LANES), axis=1), flat)


def total_of_lanes(xp: Any, lanes: Any, flat: Any) -> float:
    """As :func:`total`, of an array of one axis, where the *lanes* of its whole blocks have been summed."""
    rest = flat[flat.size - flat.size % BLOCK :]
    return float(xp.sum(lanes, dtype=xp.float64)) + float(xp.sum(rest, dtype=xp.float64))


def mean(xp: Any, array: Any) -> float:
    """The mean of an array's elements, from their :func:`total`."""
    return total(xp, array) / size_of(array.shape)
