"""Rows of a matrix by their numbers, in a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.common.thresholds import thresholds
from ...core.machine.language import prange
from ...core.machine.loops import loop
from .pieces import copy


@loop("R1 R1 R1 I1 q")
def _take(out: Any, rows: Any, numbers: Any, refused: Any, size: int) -> None:
    """Copy the rows of these numbers, which are cut off to whole ones.

    Args:
        refused: becomes 1 if there is no row of some number.
        size: elements of a row.
    """
    count = len(rows) // size
    for i in prange(len(numbers)):
        number = np.float64(numbers[i])
        if number > -1 and number < count:
            copy(out, i * size, rows, int(number) * size, size)
        else:
            refused[0] = 1


def bound_take(out: Any, rows: Any, numbers: Any) -> tuple[Callable[[], None], Any]:
    """A function that copies rows of a matrix, elements of the first axis, and a flag that it sets where there is none of a number."""
    refused = np.zeros(1, np.intp)
    arrays = out.reshape(-1), rows.reshape(-1), numbers.reshape(-1)
    return _take.bound(out.size >= thresholds.rows_shared, *arrays, refused, out.size // numbers.size), refused
