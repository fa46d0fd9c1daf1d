"""Recurrences in one kernel for each direction: consecutive calls of a loop that rows go through, for all steps in one launch.

What a step takes at least, for an LSTM of n cells and b sequences of float32: 8 b n² operations; 16 n² bytes of matrix, which the
multiprocessors read from the cache of the second level, each its own part; forward in training 92 b n bytes of rows.  Besides, each block
reads the 4 b n bytes that a product multiplies, for 64 sequences at a time, and waits once for the others; a GRU waits twice.  Step by step
there is a launch for each of a dozen calls.  Not run on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ...core.run.recurrence import Call, DelayCopy, LoopSchedule
from . import recurrence_plan, recurrence_text
from .compiler import THREADS, compile
from .recurrence_lines import Operation, Reader, dtype_of, multiplications
from .recurrence_plan import Plan
from .recurrence_text import ROWS, SLOTS

MOST_MULTIPLICATIONS = 2**29
"""More of them in a step keep a GPU busy longer than launches take, and are left to cuBLASLt."""


def fuse(schedule: LoopSchedule) -> Sequence[Call | DelayCopy | Persistent]:
    """The calls of a schedule, with a :class:`Persistent` one in the place of those that one kernel does."""
    backend: Any = schedule.bound_loop.binding.backend
    reader = Reader(schedule)
    found = [reader.operations(call) for call in schedule.calls]
    if not backend.blocks_together or schedule.sequences * sum(map(multiplications, found)) > MOST_MULTIPLICATIONS:
        return schedule.calls
    fused: list[Call | DelayCopy | Persistent] = []
    for dtype, group in groupby(zip(schedule.calls, found, strict=True), key=lambda pair: dtype_of(pair[1])):
        calls, operations = zip(*group, strict=True)
        plan = recurrence_plan.of([one for of_call in operations for one in of_call]) if dtype else None
        passing = schedule.passing if len(calls) == len(found) else ()
        fused.extend(calls if plan is None else [Persistent(schedule, calls, passing)])
    return fused


class Machine:
    """Operations on the rows of steps, done by one kernel.

    Args:
        schedule: the loop they are of.
        operations: the operations.
        passing: arrays that nothing else reads; they are not written where registers will do.
    """

    def __init__(self, schedule: LoopSchedule, operations: Sequence[Operation], passing: Sequence[Any] = ()) -> None:
        self._schedule, self._operations = schedule, operations
        backend: Any = schedule.bound_loop.binding.backend
        plan = Plan(operations)
        dtype = operations[0].target.array.dtype
        self._kernel = compile(recurrence_text.text(dtype, plan, plan.within(passing)), "recurrence", True)
        self._memories = [np.uintp(address) for address in plan.addresses]
        tiles = min(-(-schedule.sequences // ROWS), backend.blocks_together)
        self._grid = min(plan.blocks(SLOTS), backend.blocks_together // tiles), tiles
        self._counters = backend.asarray(np.zeros(2 * tiles), np.uint32)

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all for the steps from *begin* to *end*.

        Args:
            offsets: first row of each step, and the number of rows, on the host; the kernel has them on the device.
            begin, end: the steps; the end may lie behind the last one.
            rising: whether they come in the order of time.
        """
        steps = np.int64(begin), np.int64(end), np.int32(rising)
        self._kernel.bound(self._grid, THREADS, *self._memories, self._schedule.first_rows, self._counters, *steps)()


class Persistent:
    """Consecutive calls of a loop, as one kernel.

    Args:
        schedule: the loop.
        calls: the calls.
        passing: arrays that nothing else reads.

    Attributes:
        calls: the calls.
        instruction: the instruction of the first of them.
    """

    def __init__(self, schedule: LoopSchedule, calls: Sequence[Call | DelayCopy], passing: Sequence[Any]) -> None:
        self.calls, self.instruction = calls, calls[0].instruction
        self._schedule, self._passing = schedule, passing
        self._attributes = [(call.instruction.op, name) for call in calls for name in call.instruction.op._attribute_names]
        self._translate()

    def _translate(self) -> None:
        reader = Reader(self._schedule)
        self._values = self._current_values()
        self._operations = [reader.operations(call) for call in self.calls]
        self._machine = Machine(self._schedule, [one for of_call in self._operations for one in of_call], self._passing)
        self._machines: dict[int, Machine] = {}

    def _current_values(self) -> list[Any]:
        return [getattr(of, name) for of, name in self._attributes]

    def begin(self) -> None:
        """Write the kernel anew where attributes of operators are others than in the run before."""
        if self._attributes and self._current_values() != self._values:
            self._translate()

    def current(self) -> Machine:
        """The machine, whose kernel is written for the attributes as they are."""
        self.begin()
        return self._machine

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all calls for the steps from *begin* to *end*, as :meth:`Machine.run` does."""
        self._machine.run(offsets, begin, end, rising)

    def run_one(self, number: int, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """The same for one of the calls, by a kernel of its own."""
        if number not in self._machines:
            self._machines[number] = Machine(self._schedule, self._operations[number])
        self._machines[number].run(offsets, begin, end, rising)
