"""CNTK's way to shuffle."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..core.common.thresholds import thresholds
from ..core.common.twister import Twister
from .compiled import loops

BLOCK = 1 << 20
"""So many are exchanged at a time."""


def shuffle(order: Any, seed: int) -> None:
    """Shuffle an array: each element, one after another, changes places with any of all."""
    count, random = len(order), Twister(seed)
    compiled = loops("compiled_shuffle") if count >= thresholds.shuffle_compiled else None
    swap = _swap if compiled is None else partial(compiled.swap.run, False)
    for start in range(0, count, BLOCK):
        swap(order, start, random.whole(min(BLOCK, count - start), count))


def _swap(order: Any, start: int, others: Any) -> None:
    held = memoryview(order)
    for place, other in enumerate(others.tolist(), start):
        held[place], held[other] = held[other], held[place]
