"""The loop of :mod:`shuffle`, compiled, without holding Python's lock."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.machine.loops import loop


@loop("I1 q I1")
def swap(order: Any, start: int, others: Any) -> None:
    """Exchange each element from *start* on with another."""
    for i in range(len(others)):
        held = order[start + i]
        order[start + i] = order[others[i]]
        order[others[i]] = held


def try_out() -> None:
    """Shuffle two elements."""
    swap.run(False, np.arange(2), 0, np.arange(2)[::-1].copy())
