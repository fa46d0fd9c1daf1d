"""Recurrences as one kernel per direction: consecutive calls of a loop that compute row by row are one launch for all steps.

For an LSTM of n cells and b sequences in float32, a step takes at least 8 b n² operations, reads 16 n² bytes of matrix, which the
multiprocessors hold in shared memory if it has room for them, and in training reads and writes 92 b n bytes of rows in the forward pass.
Blocks that share columns each read the 4 b n bytes of the left operand from the L2 cache and wait for each other once; a GRU waits twice.
Without this kernel each step takes about a dozen launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.run.recurrence import Call, DelayCopy, LoopSchedule
from ..recurrences.operations import Operation, Reader, multiplications
from ..recurrences.persistent import Persistent, persistent
from ..recurrences.plan import Plan
from . import recurrence_text
from .compiler import THREADS, compile
from .prelude import REAL, STORED
from .products import TimesKernel
from .recurrence_grid import grid_for
from .recurrence_text import APART, SIZE

MOST_MULTIPLICATIONS = 2**29
"""Maximum number of multiplications per step; with more, cuBLASLt is faster, as launches no longer dominate."""


def fuse(schedule: LoopSchedule) -> Sequence[Call | DelayCopy | Persistent]:
    """Return the calls of a schedule, with those that one kernel can compute replaced by a :class:`RepeatablePersistent`."""
    backend: Any = schedule.bound_loop.binding.backend
    reader = Reader(schedule, STORED, TimesKernel)
    found = [reader.operations(call) for call in schedule.calls]
    if not backend.blocks_together or schedule.sequences * sum(map(multiplications, found)) > MOST_MULTIPLICATIONS:
        return schedule.calls
    return persistent(schedule, found, reader.operations, partial(Machine, schedule, all(found)), RepeatablePersistent)


class Machine:
    """A kernel bound to operations on the rows of steps.

    Args:
        schedule: the loop.
        is_long: whether a launch has all steps, or one.
        operations: the operations.
        passing: arrays that nothing else reads; the kernel keeps them in registers if it can.
    """

    def __init__(self, schedule: LoopSchedule, is_long: bool, operations: Sequence[Operation], passing: Sequence[Any]) -> None:
        self._schedule, self._operations = schedule, operations
        backend: Any = schedule.bound_loop.binding.backend
        plan = Plan(operations)
        dtype = operations[0].target.array.dtype
        size = SIZE[REAL[np.dtype(dtype).name]]
        grid = grid_for(plan, size, schedule.sequences, backend.blocks_together, backend.shared_memory, is_long)
        self._kernel = compile(recurrence_text.text(dtype, plan, grid, plan.within(passing)), "recurrence", True)
        self._grid = grid
        self._memories = [np.uintp(memory.address) for memory in plan.memories]
        self._counters = backend.asarray(np.zeros(APART * grid.groups), np.uint32)

    def begin(self) -> None:
        """Do nothing: all is read where it is."""

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all for the steps from *begin* to *end*, as :class:`~cntk.backends.recurrences.persistent.Machine` says.

        The end may lie behind the last step; the kernel reads on the device which that is.
        """
        steps = np.int64(begin), np.int64(end), np.int32(rising)
        grid = self._grid
        arguments = *self._memories, self._schedule.first_rows, self._counters, *steps, np.uint32(grid.rows), np.uint32(grid.width)
        self._kernel.bound((grid.blocks, grid.groups), THREADS, *arguments, shared=grid.shared)()


class RepeatablePersistent(Persistent):
    """Calls as one kernel that serves all minibatches of as many sequences and rows, so that it can be recorded."""

    def current(self) -> Machine:
        """The machine, whose kernel is written for the attributes as they are."""
        self.begin()
        machine: Any = self._machine
        return machine
