"""Sums of runs of consecutive rows: one thread per element of the result adds up its terms in order, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import prange
from .compiler import Kernel


def _add_up(values: Any, starts: Any, out: Any) -> None:
    width = values.shape[1]
    for at in prange(out.size):
        run, column = at // width, at % width
        total = np.float64(0)
        for row in range(starts[run], starts[run + 1]):
            total += values[row, column]
        out[run, column] = total


ADD_UP = Kernel(_add_up, "R2 I1 R2")


def add_up(values: Any, starts: Any, out: Any) -> None:
    """Write the sum of each run, ``values[starts[i]:starts[i + 1]]``, to a row of *out*; 0 for empty runs.

    Args:
        values: contiguous array of rows, ``(rows, *static)``.
        starts: starts of the runs and the end of the last one, ``(runs + 1,)``; rows before the first run are ignored.
        out: contiguous array ``(runs, *static)``, which may have another element type.
    """
    if not out.size:
        return
    if not values.size:
        out.fill(0)
        return
    matrix = out.reshape(len(out), -1)
    ADD_UP.bound(out.size, values.reshape(len(values), -1), starts, matrix)()
