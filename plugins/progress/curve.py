"""Curves of any length in little memory: neighbouring points are put together where there are too many."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

MOST = 1000
"""Points of a curve; at least half as many are kept of a longer one."""


class Curve:
    """Averages at places that come one after another.

    Where there are too many, twice as many values make a point from then on: a million take the memory of some hundred.

    Args:
        most: points that are kept at most.

    >>> from cntk.plugins.progress.curve import Curve
    >>> curve = Curve(most=4)
    >>> for step in range(1, 9):
    ...     curve.add(step, 10 * step)
    >>> curve.points()
    [(2, 15.0), (4, 35.0), (6, 55.0), (8, 75.0)]
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._stride = 1
        self._missing = 0
        self._places: list[float] = []
        self._totals: list[float] = []
        self._weights: list[float] = []

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: float, total: float, weight: float = 1) -> None:
        """Add a value.

        Args:
            place: where it is, behind those before.
            total: the value times its weight; what is not finite becomes a gap.
            weight: how much it counts where several make a point.
        """
        total = total if isfinite(total) else nan
        if not self._missing and len(self._places) == self._most:
            self._halve()
        if self._missing:
            self._missing -= 1
            self._places[-1] = place
            self._totals[-1] += total
            self._weights[-1] += weight
        else:
            self._missing = self._stride - 1
            self._places.append(place)
            self._totals.append(total)
            self._weights.append(weight)

    def forget_from(self, place: float) -> None:
        """Take away what is there and behind it."""
        kept = bisect_left(self._places, place)
        if kept < len(self._places):
            self._missing = 0
            for held in self._columns():
                del held[kept:]

    def points(self) -> list[tuple[float, float]]:
        """Places, each the last of those that make the point, and averages; NaN for a gap."""
        return [(place, total / weight) for place, total, weight in zip(*self._columns(), strict=True)]

    def create_checkpoint(self) -> dict[str, Any]:
        """Numbers and lists, for :meth:`restore_from_checkpoint`."""
        return {"stride": self._stride, "missing": self._missing, "columns": [list(held) for held in self._columns()]}

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on from what :meth:`create_checkpoint` returned.

        Raises:
            ValueError: it is something else.
        """
        stride, missing = checkpoint["stride"], checkpoint["missing"]
        places, totals, weights = columns = [list(held) for held in checkpoint["columns"]]
        numbers = [stride, missing, *places, *totals, *weights]
        if len(set(map(len, columns))) > 1 or any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in numbers):
            raise ValueError(f"a curve's checkpoint has three lists of as many numbers, got {checkpoint!r:.200}")
        self._stride, self._missing = stride, missing
        self._places, self._totals, self._weights = places, totals, weights

    def _columns(self) -> tuple[list[float], list[float], list[float]]:
        return self._places, self._totals, self._weights

    def _halve(self) -> None:
        """Put neighbours together; a last one without neighbour waits for as many values as it has."""
        is_odd = len(self._places) % 2
        self._missing = self._stride if is_odd else 0
        self._stride *= 2
        self._places = self._places[1::2] + self._places[len(self._places) - is_odd :]
        for held in (self._totals, self._weights):
            held[:] = [sum(held[i : i + 2]) for i in range(0, len(held), 2)]


def smoothed(points: Sequence[tuple[float, float]], share: float) -> list[tuple[float, float]]:
    """Exponentially weighted means of a curve.

    Args:
        points: places and values.
        share: what the mean until then counts, and the new value the rest: from 0 for the values themselves to less than 1.

    Returns:
        Places and means; a gap where the curve has one.
    """
    mean, weight, made = 0.0, 0.0, []
    for x, y in points:
        if isfinite(y):
            mean, weight = share * mean + (1 - share) * y, share * weight + 1 - share
            made.append((x, mean / weight))
        else:
            made.append((x, nan))
    return made
