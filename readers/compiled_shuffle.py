"""The loop of :mod:`shuffle`, compiled, without holding Python's lock."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(nogil=True, cache=True)
def swap(order: Any, start: int, others: Any) -> None:
    """Exchange each element from *start* on with another."""
    for i in range(len(others)):
        held = order[start + i]
        order[start + i] = order[others[i]]
        order[others[i]] = held
