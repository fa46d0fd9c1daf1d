"""Recurrences on NumPy arrays in one compiled call: a loop's calls, as tapes.

Consecutive calls that tapes can run become one :class:`Taped`; the others stay as they are.  If there is little to multiply all of them
do, and Numba is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ...core.common import threads
from ...core.common.thresholds import OFFERED, thresholds
from ...core.machine.self_check import are_usable
from ...core.run.memory import padded_rows
from ...core.run.recurrence import Call, DelayCopy, LoopSchedule
from .lines import Line, Rows, lines_of
from .terms import with_terms

FEWEST = 4
"""The fewest sequences that are worth a thread of their own, since each thread reads all matrices."""

PARTS = 4
"""Parts of the sequences for each thread: whoever is free takes the next one."""

PACKED_READ_OFTEN = 2**22
"""Bytes of packed matrices up to which each part reads them from a cache; larger ones are read once by each thread."""


def fuse(schedule: LoopSchedule) -> Sequence[Call | DelayCopy | Taped]:
    """The calls of a schedule, with a :class:`Taped` one in the place of those that tapes do."""
    found = [lines_of(call, schedule.is_fixed) for call in schedule.calls]
    products = [line for lines in found for line in lines if line.matrix is not None]
    if not is_worthwhile(sum(padded_rows(line.rows) * line.matrix.size for line in products)):
        return schedule.calls
    fused: list[Call | DelayCopy | Taped] = []
    for dtype, group in groupby(zip(schedule.calls, found, strict=True), key=lambda pair: pair[1][0].dtype.name if pair[1] else ""):
        calls, lines = zip(*group, strict=True)
        fused.extend([Taped(calls, lines)] if dtype else calls)
    taped = [part for part in fused if isinstance(part, Taped)]
    passing = schedule.passing if len(fused) == 1 else []
    sizes = [part.memory_needed(passing, schedule.sequences) for part in taped]
    memory = schedule.allocate(sum(sizes))
    for part, size in zip(taped, sizes, strict=True):
        part.place(memory[:size], passing, schedule.sequences)
        memory = memory[size:]
    return fused


def is_worthwhile(multiplications: int) -> bool:
    """Whether there is enough to multiply for the machine that runs tapes."""
    return multiplications >= thresholds.recurrence_compiled and are_usable()


class Tape:
    """Operations on the rows of steps, done by one compiled call.

    Args:
        lines: the operations.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        from . import tape

        self._machine = tape
        self._lines = lines
        self._like = np.empty(0, self._lines[0].dtype)
        products = [line for line in self._lines if line.matrix is not None]
        self._panels = [None if line.source is None else tape.panels(*line.source, line.matrix) for line in products]
        self._matrices = [line.matrix for line, panels in zip(products, self._panels, strict=True) if panels is None]
        self._packed = sum(line.matrix.size for line in products)
        self._call: tuple[Any, ...] | None = None
        self._width = sum(line.z.size * (1 if line.matrix is None else len(line.matrix)) for line in self._lines)

    def memory_needed(self, passing: Sequence[Any], sequences: int) -> int:
        """Bytes that matrices which each run packs, and a step's rows of *passing* arrays take."""
        return sum(map(self._machine.packed_bytes, self._matrices)) + sum(sequences * array.strides[0] for array in passing)

    def place(self, memory: Any, passing: Sequence[Any], sequences: int) -> None:
        """Take *memory* for those matrices and for a step's rows of *passing* arrays, which thus stay in the processor's cache."""
        self._memory, address = memory, memory.ctypes.data
        packed, blocks, matrices = [], [], iter(self._matrices)
        for panels in self._panels:
            packed.append(Rows(address if panels is None else panels.ctypes.data, 0, 0))
            if panels is None:
                matrix = next(matrices)
                blocks.append(self._machine.blocks_of(matrix, address))
                address += self._machine.packed_bytes(matrix)
        self._pack: Callable[[], None] | None = None
        if blocks:
            size = sum(matrix.size for matrix in self._matrices)
            self._pack = self._machine.pack.bound(size >= self._machine.PACKED_SHARED, np.concatenate(blocks), self._like)
        moved = []
        for array in passing:
            moved.append((array.ctypes.data, array.strides[0], address))
            address += sequences * array.strides[0]
        self._packed_at, self._moved, self._call = packed, moved, None
        self._tape = self._table(with_terms(self._lines, [start for start, _, _ in moved]))

    def _table(self, lines: Sequence[Line]) -> Any:
        """Lines as rows of numbers."""
        packed = iter(self._packed_at)
        return np.array([_entry(line, packed, self._moved) for line in lines], np.intp)

    def begin(self) -> None:
        """Pack the matrices, whose values may be others than in the run before."""
        if self._pack is not None:
            self._pack()

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all for the steps from *begin* to *end*.

        Args:
            offsets: first row of each step, and the number of rows.
            begin, end: the steps.
            rising: whether they come in the order of time.
        """
        call = offsets, begin, end, rising, self._parts(offsets), threads.max_threads()
        if self._call is None or self._call[0] is not offsets or self._call[1:] != call[1:]:
            self._call, self._repeated = call, self._bound(self._tape, *call)
        self._repeated()

    def _parts(self, offsets: Any) -> int:
        """How many parts the sequences are divided into."""
        count = threads.max_threads()
        if count > 1 and self._packed * self._like.itemsize <= PACKED_READ_OFTEN:
            count *= PARTS
        return min(count, -(-int(offsets[1] - offsets[0]) // FEWEST))

    def _bound(self, tape: Any, offsets: Any, begin: int, end: int, rising: bool, parts: int, count: int) -> Callable[[], None]:
        """A call for so many parts, or else with products whose columns so many threads share."""
        size = self._width * int(offsets[end] - offsets[begin])
        is_shared = parts > 1 and size >= thresholds.elements_shared
        product, least = np.zeros(4, np.intp), thresholds.product_row_shared
        columns = self._machine.multiply_columns.callee(tape, product, self._like)
        helpers = 0 if parts > 1 else self._machine.helpers_of(count)
        sharing = columns.code, columns.arguments, helpers, least, least // OFFERED
        call = self._machine.run.bound(is_shared, parts, tape, offsets, begin, end, rising, product, sharing, self._like)
        call.callee = columns  # type: ignore[attr-defined]  # the loop knows its addresses alone
        return call


class Taped(Tape):
    """Consecutive calls of a loop, as a tape.

    Args:
        calls: the calls.
        lines: the lines of the tape for each of them.

    Attributes:
        calls: the calls.
        instruction: the instruction of the first of them.
    """

    def __init__(self, calls: Sequence[Call | DelayCopy], lines: Sequence[Sequence[Line]]) -> None:
        super().__init__([line for of_call in lines for line in of_call])
        self.calls, self.instruction = calls, calls[0].instruction
        self._ends = np.cumsum([0, *map(len, lines)]).tolist()
        self._by_line: Any = None

    def run_one(self, number: int, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """The same for one of the calls."""
        if self._by_line is None:
            self._by_line = self._table(self._lines)
        tape = self._by_line[self._ends[number] : self._ends[number + 1]]
        self._bound(tape, offsets, begin, end, rising, self._parts(offsets), threads.max_threads())()


def _entry(line: Line, packed: Iterator[Rows], moved: Sequence[tuple[int, int, int]]) -> list[int]:
    """A line as numbers."""
    depth = 0
    if line.matrix is not None:
        line, depth = line._replace(y=next(packed)), len(line.matrix)
    entry = [line.kind, line.z.size, line.back, depth]
    for rows in (line.z, line.x, line.y, line.term):
        address, passes = rows.address, 0
        for start, stride, to in moved:
            if start <= rows.address < start + stride:
                address, passes = to + rows.address - start, 1
        entry += [address, rows.stride, passes]
    return entry
