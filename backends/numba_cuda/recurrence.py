"""Recurrences in one kernel for each direction: consecutive calls of a loop that rows go through, for all steps in one launch.

A block takes four sequences through all steps and waits for no other, so that the numbers of a sequence depend on nothing else in a
minibatch.  Each block thus reads all matrices in each step, from the cache of the second level: an LSTM of n cells reads 16 n² bytes of
float32, at what a multiprocessor can read.  Where that takes longer than the dozen launches of a step, the loop runs step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...core.run.recurrence import Call, DelayCopy, LoopSchedule
from ..recurrences.operations import Operand, Operation, Product, Reader, address_of, multiplications
from ..recurrences.persistent import Persistent, persistent
from ..recurrences.plan import Plan
from .recurrence_text import ROWS, kernel
from .times import TimesKernel

DTYPES = "float32", "float64"
"""Element types that the kernel computes with."""

MOST_MULTIPLICATIONS = 2**29
"""More of them in a step, for all sequences, take longer than launches; not measured on a GPU."""

SEQUENCES_AT_ONCE = 512
"""So many sequences have a block on each of 128 multiprocessors; fewer take as long."""

ALIGNMENT = 16
"""Bytes that the places of copies are multiples of."""


def fuse(schedule: LoopSchedule) -> Sequence[Call | DelayCopy | Persistent]:
    """The calls of a schedule, with a :class:`Persistent` one in the place of those that one kernel does."""
    reader = Reader(schedule, DTYPES, TimesKernel)
    found = [reader.operations(call) for call in schedule.calls]
    if max(schedule.sequences, SEQUENCES_AT_ONCE) * sum(map(multiplications, found)) > MOST_MULTIPLICATIONS:
        return schedule.calls
    matrices = Matrices(schedule, [one.matrix.array for of_call in found for one in of_call if isinstance(one, Product)])
    copied = [matrices.copied(operations) for operations in found]
    return persistent(schedule, copied, lambda call: matrices.copied(reader.operations(call)), partial(Machine, schedule, matrices))


class Matrices:
    """Copies of matrices whose rows do not follow one another, in which they do: threads read numbers that are side by side.

    Args:
        schedule: the loop that reads them.
        matrices: the matrices.
    """

    def __init__(self, schedule: LoopSchedule, matrices: Sequence[Any]) -> None:
        turned = {_key(matrix): matrix for matrix in matrices if not matrix.flags.c_contiguous}
        self._backend: Any = schedule.bound_loop.binding.backend
        self._pairs: list[tuple[Any, Any]] = []
        self._copies: dict[Any, Operand] = {}
        sizes = [-(-matrix.nbytes // ALIGNMENT) * ALIGNMENT for matrix in turned.values()]
        memory: Any = schedule.allocate(sum(sizes)) if sizes else None
        for (key, matrix), size in zip(turned.items(), sizes, strict=True):
            copy, memory = memory[: matrix.nbytes].view(matrix.dtype).reshape(matrix.shape), memory[size:]
            self._pairs.append((copy, matrix))
            self._copies[key] = Operand(copy, address_of(copy), 0, copy.size)

    def copied(self, operations: Sequence[Operation]) -> list[Operation]:
        """The operations, with copies in the place of matrices."""
        return [self._copied(one) if isinstance(one, Product) else one for one in operations]

    def _copied(self, product: Product) -> Product:
        copy = self._copies.get(_key(product.matrix.array))
        return product if copy is None else product._replace(matrix=copy, by_term=product.target.width, by_column=1)

    def copy(self) -> None:
        """Copy the matrices, whose values may be others than in the run before."""
        for copy, matrix in self._pairs:
            self._backend.xp.copyto(copy, matrix)


def _key(matrix: Any) -> Any:
    return address_of(matrix), matrix.shape, matrix.strides


class Machine:
    """Operations on the rows of steps, done by one kernel.

    Args:
        schedule: the loop they are of.
        matrices: the matrices that they read.
        operations: the operations.
        passing: arrays that nothing else reads; they are not written where registers will do.
    """

    def __init__(self, schedule: LoopSchedule, matrices: Matrices, operations: Sequence[Operation], passing: Sequence[Any]) -> None:
        self._schedule, self._matrices = schedule, matrices
        plan, xp = Plan(operations), schedule.bound_loop.binding.backend.xp
        dtype = operations[0].target.array.dtype
        flat = [xp.lib.stride_tricks.as_strided(memory.array, (memory.size,), (dtype.itemsize,)) for memory in plan.memories]
        self._offsets = schedule.offsets
        self._launch = kernel(dtype, plan, plan.within(passing)).bound(-(-schedule.sequences // ROWS), *flat, self._offsets)

    def begin(self) -> None:
        """Copy the matrices."""
        self._matrices.copy()

    def run(self, offsets: Any, begin: int, end: int, rising: bool) -> None:
        """Do all for the steps from *begin* to *end*, as :class:`~cntk.backends.recurrences.persistent.Machine` says."""
        if self._schedule.offsets is not self._offsets:
            self._offsets = self._schedule.offsets
            self._launch.replace_last(self._offsets)
        self._launch(begin, end, rising)
