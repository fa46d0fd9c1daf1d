"""Recurrences on NumPy arrays in one compiled call: what a loop's calls do, written on tapes.

Calls that follow one another and are understood become a :class:`Taped` one; the others stay as they are.  Where there is little to
multiply all do, and Numba is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ...core import threads
from ...core.recurrence import Call, Shift
from .lines import Line, Rows, lines_of

WORTHWHILE = 2**23
"""Multiplications in products from which on tapes save more time than it takes to load them."""


def fuse(calls: Sequence[Call | Shift], is_fixed: Callable[[Any], bool], allocate: Callable[[int], Any]) -> list[Call | Shift | Taped]:
    """Put calls of a loop together.

    Args:
        calls: what each step does, in order.
        is_fixed: tells whether an array is the same at all steps, and has no rows.
        allocate: gives so many bytes of memory, for the duration of a sweep.

    Returns:
        the calls, with a :class:`Taped` one in the place of those that tapes do.
    """
    found = [lines_of(call, is_fixed) for call in calls]
    products = [line for lines in found for line in lines or () if line.matrix is not None]
    if sum(line.rows * line.matrix.size for line in products) < WORTHWHILE:
        return list(calls)
    fused: list[Call | Shift | Taped] = []
    taped: list[Taped] = []
    for known, group in groupby(zip(calls, found, strict=True), key=lambda pair: pair[1] is not None):
        pairs = list(group)
        if known:
            taped.append(Taped([call for call, _ in pairs], [lines or [] for _, lines in pairs]))
            fused.append(taped[-1])
        else:
            fused.extend(call for call, _ in pairs)
    memory = allocate(sum(part.packed_bytes for part in taped))
    for part in taped:
        part.place(memory)
        memory = memory[part.packed_bytes :]
    return fused


class Taped:
    """Calls of a loop that follow one another, done by one compiled call.

    Args:
        calls: the calls.
        lines: what goes on the tape for each of them.

    Attributes:
        calls: the calls.
        instruction: what the first of them belongs to.
        packed_bytes: memory it needs for matrices.
    """

    def __init__(self, calls: Sequence[Call | Shift], lines: Sequence[Sequence[Line]]) -> None:
        from . import tape

        self.calls, self.instruction = calls, calls[0].instruction
        self._machine = tape
        self._lines = [line for of_call in lines for line in of_call]
        self._ends = np.cumsum([0, *map(len, lines)]).tolist()
        self._like = np.empty(0, self._lines[0].dtype)
        self._width = sum(line.z.size * (1 if line.matrix is None else line.matrix.shape[0]) for line in self._lines)
        self.packed_bytes = sum(tape.packed_bytes(line.matrix) for line in self._lines if line.matrix is not None)

    def place(self, memory: Any) -> None:
        """Take *memory* for the packed matrices."""
        table, panels = [], []
        for line in self._lines:
            y, depth = line.y, 0
            if line.matrix is not None:
                y, depth = Rows(memory.ctypes.data, 0, 0), len(line.matrix)
                panels.append(self._machine.panels_of(line.matrix, memory.ctypes.data))
                memory = memory[self._machine.packed_bytes(line.matrix) :]
            table.append((line.kind, line.z.address, line.z.stride, line.x.address, line.x.stride, y.address, y.stride, line.z.size))
            table[-1] += (line.back, depth)
        self._tape = np.array(table, np.intp)
        self._panels = np.concatenate(panels) if panels else None
        self._memory = memory

    def begin(self) -> None:
        """Pack the matrices, whose values may be others than in the sweep before."""
        if self._panels is not None:
            self._machine.pack(self.packed_bytes // self._like.itemsize, self._panels, self._like)

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all calls for the steps from *begin* to *end*.

        Args:
            offsets: first row of each step, and the number of rows.
            begin, end: the steps.
            rising: whether they come in the order of time.
        """
        self._run(self._tape, offsets, begin, end, rising)

    def run_one(self, number: int, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """The same for one of the calls."""
        self._run(self._tape[self._ends[number] : self._ends[number + 1]], offsets, begin, end, rising)

    def _run(self, tape: Any, offsets: Any, begin: int, end: int, rising: bool) -> None:
        size = self._width * int(offsets[end] - offsets[begin])
        self._machine.run(size, threads.max_threads(), tape, offsets, begin, end, rising, self._like)
