"""Recurrences as one kernel per direction: consecutive calls of a loop that compute row by row are one launch for all steps.

For an LSTM of n cells and b sequences in float32, a step takes at least 8 b n² operations, reads 16 n² bytes of matrix, of which each
multiprocessor reads its own part from the L2 cache, and in training reads and writes 92 b n bytes of rows in the forward pass.  Each block
also reads the 4 b n bytes of the left operand, for 64 sequences at a time, and waits for the other blocks once; a GRU waits twice.  Without
this kernel each step takes about a dozen launches.  Not run on a GPU.
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
"""Maximum number of multiplications per step; with more, cuBLASLt is faster, as launches no longer dominate."""


def fuse(schedule: LoopSchedule) -> Sequence[Call | DelayCopy | Persistent]:
    """Return the calls of a schedule, with those that one kernel can compute replaced by a :class:`Persistent`."""
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
    """A kernel bound to operations on the rows of steps.

    Args:
        schedule: the loop.
        operations: the operations.
        passing: arrays that nothing else reads; the kernel keeps them in registers if it can.
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
        """Launch the kernel for the steps from *begin* to *end*.

        Args:
            offsets: first row of each step, and the number of rows.
            begin, end: the range of steps.
            rising: whether steps run forward in time.
        """
        sizes = np.int64(len(offsets) - 1), np.int64(begin), np.int64(end), np.int32(rising)
        self._kernel.bound(self._grid, THREADS, *self._memories, self._schedule.offsets, self._counters, *sizes)()


class Persistent:
    """Consecutive calls of a loop, replaced by one kernel.

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
        """Generate the kernel again if attributes of operators have changed since the last run."""
        if self._attributes and self._current_values() != self._values:
            self._translate()

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Run all calls for the steps from *begin* to *end*; see :meth:`Machine.run`."""
        self._machine.run(offsets, begin, end, rising)

    def run_one(self, number: int, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Run one of the calls in the same way, with a separate kernel."""
        if number not in self._machines:
            self._machines[number] = Machine(self._schedule, self._operations[number])
        self._machines[number].run(offsets, begin, end, rising)
