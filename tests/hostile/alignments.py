"""Which alignments of labels to steps a delay constraint allows, by its definition."""

from __future__ import annotations

from collections.abc import Sequence


def in_time(path: Sequence[int], labels: Sequence[tuple[int, int]], blank: int, delay: int) -> bool:
    """Whether labels are over *delay* steps after the next one begins, and blanks a step before the label behind them must be."""
    begun = 0
    for step, current in enumerate(path):
        begun += current != blank and (step == 0 or path[step - 1] != current)
        if current != blank and begun < len(labels) and step > labels[begun][0] + delay:
            return False
        if current == blank and begun + 1 < len(labels) and step > labels[begun + 1][0] + delay - 1:
            return False
    return True
