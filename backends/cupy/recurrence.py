"""Recurrences in one kernel for each direction: consecutive calls of a loop that rows go through, for all steps in one launch.

What a step takes at least, for an LSTM of n cells and b sequences of float32: 8 b n² operations; 16 n² bytes of matrix, which the
multiprocessors read from the cache of the second level, each its own part; forward in training 92 b n bytes of rows.  Besides, each block
reads the 4 b n bytes that a product multiplies, for 64 sequences at a time, and waits once for the others; a GRU waits twice.  Step by step
there is a launch for each of a dozen calls.  Not run on a GPU.
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
from .prelude import STORED
from .products import TimesKernel
from .recurrence_text import ROWS, SLOTS

MOST_MULTIPLICATIONS = 2**29
"""More of them in a step keep a GPU busy longer than launches take, and are left to cuBLASLt."""


def fuse(schedule: LoopSchedule) -> Sequence[Call | DelayCopy | Persistent]:
    """The calls of a schedule, with a :class:`Persistent` one in the place of those that one kernel does."""
    backend: Any = schedule.bound_loop.binding.backend
    reader = Reader(schedule, STORED, TimesKernel)
    found = [reader.operations(call) for call in schedule.calls]
    if not backend.blocks_together or schedule.sequences * sum(map(multiplications, found)) > MOST_MULTIPLICATIONS:
        return schedule.calls
    return persistent(schedule, reader.operations, partial(Machine, schedule))


class Machine:
    """Operations on the rows of steps, done by one kernel.

    Args:
        schedule: the loop they are of.
        operations: the operations.
        passing: arrays that nothing else reads; they are not written where registers will do.
    """

    def __init__(self, schedule: LoopSchedule, operations: Sequence[Operation], passing: Sequence[Any]) -> None:
        self._schedule, self._operations = schedule, operations
        backend: Any = schedule.bound_loop.binding.backend
        plan = Plan(operations)
        dtype = operations[0].target.array.dtype
        self._kernel = compile(recurrence_text.text(dtype, plan, plan.within(passing)), "recurrence", True)
        self._memories = [np.uintp(memory.address) for memory in plan.memories]
        tiles = min(-(-schedule.sequences // ROWS), backend.blocks_together)
        self._grid = min(plan.blocks(SLOTS), backend.blocks_together // tiles), tiles
        self._counters = backend.asarray(np.zeros(2 * tiles), np.uint32)

    def begin(self) -> None:
        """Do nothing: all is read where it is."""

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all for the steps from *begin* to *end*, as :class:`~cntk.backends.recurrences.persistent.Machine` says."""
        sizes = np.int64(len(offsets) - 1), np.int64(begin), np.int64(end), np.int32(rising)
        self._kernel.bound(self._grid, THREADS, *self._memories, self._schedule.offsets, self._counters, *sizes)()
