"""Recurrences in few launches: consecutive calls of a loop as one kernel, which goes through all steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Protocol

from ...core.run.recurrence import Call, DelayCopy, LoopSchedule
from . import plan
from .operations import Operation, dtype_of


class Machine(Protocol):
    """Operations on the rows of steps, done by one kernel."""

    def begin(self) -> None:
        """Prepare for a run through the steps."""

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all for the steps from *begin* to *end*.

        Args:
            offsets: first row of each step, and the number of rows.
            begin, end: the steps.
            rising: whether they come in the order of time.
        """


Read = Callable[[Call | DelayCopy], Sequence[Operation]]
"""Translates a call to operations; to none where it is something else."""

Build = Callable[[Sequence[Operation], Sequence[Any]], Machine]
"""Makes a machine of operations, and of arrays that nothing else reads: they are not written where registers will do."""


def persistent(
    schedule: LoopSchedule, found: Sequence[Sequence[Operation]], read: Read, build: Build, kind: type[Persistent] | None = None
) -> Sequence[Call | DelayCopy | Persistent]:
    """The calls of a schedule, with a :class:`Persistent` one in the place of those that one kernel does.

    Args:
        schedule: the schedule.
        found: the operations of each of its calls.
        read: translates a call anew.
        build: makes the kernel.
        kind: the class of the calls that a kernel does, :class:`Persistent` if None.
    """
    parts: list[Call | DelayCopy | Persistent] = []
    for dtype, group in groupby(zip(schedule.calls, found, strict=True), key=lambda pair: dtype_of(pair[1])):
        calls, operations = zip(*group, strict=True)
        is_possible = bool(dtype) and plan.of([one for of_call in operations for one in of_call]) is not None
        passing = schedule.passing if len(calls) == len(found) else ()
        parts.extend([(kind or Persistent)(calls, operations, passing, read, build)] if is_possible else calls)
    return parts


class Persistent:
    """Consecutive calls of a loop, as one kernel.

    Args:
        calls: the calls.
        operations: the operations of each of them.
        passing: arrays that nothing else reads.
        read: translates a call anew.
        build: makes the kernel.

    Attributes:
        calls: the calls.
        instruction: the instruction of the first of them.
    """

    def __init__(
        self,
        calls: Sequence[Call | DelayCopy],
        operations: Sequence[Sequence[Operation]],
        passing: Sequence[Any],
        read: Read,
        build: Build,
    ) -> None:
        self.calls, self.instruction = calls, calls[0].instruction
        self._passing, self._read, self._build = passing, read, build
        self._attributes = [(call.instruction.op, name) for call in calls for name in call.instruction.op._attribute_names]
        self._set(operations)

    def _set(self, operations: Sequence[Sequence[Operation]]) -> None:
        self._values = self._current_values()
        self._operations = operations
        self._machine = self._build([one for of_call in self._operations for one in of_call], self._passing)
        self._machines: dict[int, Machine] = {}

    def _current_values(self) -> list[Any]:
        return [getattr(of, name) for of, name in self._attributes]

    def begin(self) -> None:
        """Prepare for a run; write the kernel anew where attributes of operators are others than in the run before."""
        if self._attributes and self._current_values() != self._values:
            self._set([self._read(call) for call in self.calls])
        self._machine.begin()

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all calls for the steps from *begin* to *end*, as :meth:`Machine.run` does."""
        self._machine.run(offsets, begin, end, rising)

    def run_one(self, number: int, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """The same for one of the calls, by a kernel of its own."""
        if number not in self._machines:
            self._machines[number] = self._build(self._operations[number], ())
        self._machines[number].run(offsets, begin, end, rising)
