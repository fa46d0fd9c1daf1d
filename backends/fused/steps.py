"""A loop over the steps of sequences, which lie step by step: those of the longest sequence first in each step.

Threads take blocks of sequences, whose rows lie side by side in each step.
"""

from __future__ import annotations

from typing import Any

from ...core.machine.language import prange
from ...core.machine.loops import loop

BLOCK = 16
"""Sequences of a block."""


@loop("R2 I1 I1 R2")
def add_steps(steps: Any, first_rows: Any, order: Any, sums: Any) -> None:
    """Write the sum of each sequence's steps, one added after another.

    Args:
        steps: ``(rows, n)``.
        first_rows, order: those of the layout.
        sums: ``(sequences, n)``, in the user's order.
    """
    for block in prange((len(order) + BLOCK - 1) // BLOCK):
        first, last = block * BLOCK, min(block * BLOCK + BLOCK, len(order))
        for place in range(first, last):
            total = sums[order[place]]
            for j in range(total.size):
                total[j] = steps[place, j]
        for step in range(1, first_rows[0]):
            row = first_rows[step + 1]
            last = min(last, first_rows[step + 2] - row)
            for place in range(first, last):
                total, term = sums[order[place]], steps[row + place]
                for j in range(total.size):
                    total[j] += term[j]
            if last <= first:
                break
