"""Row blocking: chains of element-wise operators process some rows at a time, so that each finds its operands in the cache.

Here they are found.  A kernel runs those all of whose members it knows (:mod:`cntk.core.program.chains`); others process large arrays block
by block (:mod:`cntk.core.run.row_blocks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...common.shape import Shape, broadcast
from ...operators.elementwise import Elementwise
from ...operators.view import is_slice
from ..chains import Chain, Kernel, kernel_of
from ..slots import COMPUTED
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction, Slot

SHORTEST = 3
"""Calls that gain by running in blocks; a pair of them gains nothing."""


class Blocks(Pass):
    """Put row-wise instructions that follow one another into chains, forward and backward.

    Not in checked mode, in which messages tell where in the whole array a NaN is.
    """

    name = "row_blocking"

    def arrange(self, program: Program) -> None:
        if program.checked:
            return
        slots, count = program.slots, len(program.instructions)
        place = {instruction: time for time, instruction in enumerate(program.instructions)}
        finder = _Finder(slots, kernel_of(program.backend), _parts_of_others(program.instructions))
        for members in finder.chains(program.instructions, goes_back=False):
            chain = finder.chain(members, False, members[0].stage, place[members[0]], place[members[-1]])
            _note_memory(chain, slots, (index for instruction in members for index in instruction.used_forward()))
            program.chains.append(chain)
            for instruction in members:
                instruction.chain = chain
        going_back = [i for i in program.instructions if i.loop is not None or (i.grad is not None and not i.placed)]
        for members in finder.chains(going_back, goes_back=True):
            begin, end = 2 * count - place[members[-1]], 2 * count - place[members[0]]
            chain = finder.chain(members[::-1], True, program.stages - 1, begin, end)
            _note_memory(chain, slots, (index for instruction in members for index in instruction.used_backward()))
            program.chains.append(chain)
            for instruction in members:
                instruction.backward_chain = chain


class _Finder:
    """Finds chains.

    Args:
        slots: the program's slots.
        kernel: the kernel that runs chains, if there is one.
        apart: slots whose arrays are parts of others, which no kernel sees.
    """

    def __init__(self, slots: Sequence[Slot], kernel: Kernel | None, apart: set[int]) -> None:
        self._slots, self._kernel, self._apart = slots, kernel, apart
        self._shortest = 0 if kernel is None else kernel.shortest
        self._of_one_shape = kernel is not None and kernel.of_one_shape

    def chains(self, instructions: Sequence[Instruction], goes_back: bool) -> Iterator[list[Instruction]]:
        """Instructions that follow one another, in one stage and on the same dynamic axes, and that may run together."""
        for key, group in groupby(instructions, key=lambda i: self._key(i, goes_back)):
            if key is not None and key[-1]:
                yield from (run for run in self._in_one_space(group) if len(run) >= self._shortest)
            elif key is not None and len(run := list(group)) >= SHORTEST:
                yield run

    def chain(self, members: list[Instruction], goes_back: bool, stage: int, begin: int, end: int) -> Chain:
        """A chain of such."""
        has_kernel = self._is_for_kernel(members[0], goes_back)
        has_blocks = len(members) >= SHORTEST and all(self._is_for_blocks(instruction, goes_back) for instruction in members)
        return Chain(members, goes_back, stage, begin, end, has_kernel, has_blocks)

    def _key(self, instruction: Instruction, goes_back: bool) -> tuple[Any, ...] | None:
        """What the members of a chain have in common, at last whether they are the kernel's; None for what is in no chain."""
        if not _is_rowwise(instruction, self._slots) or (instruction.is_view and not goes_back):
            return None
        has_kernel = self._is_for_kernel(instruction, goes_back)
        if not has_kernel and not self._is_for_blocks(instruction, goes_back):
            return None
        return instruction.stage, instruction.node.outputs[0].spec.axes, has_kernel

    def _is_for_kernel(self, instruction: Instruction, goes_back: bool) -> bool:
        touched = instruction.used_backward() if goes_back else instruction.used_forward()
        kernel = self._kernel
        return kernel is not None and kernel.takes(instruction, self._slots, goes_back) and self._apart.isdisjoint(touched)

    def _is_for_blocks(self, instruction: Instruction, goes_back: bool) -> bool:
        """Whether it may be called for some rows at a time: gradients must not be sums over rows."""
        touched = [*instruction.grads, *(index for pair in instruction.sums for index in pair)] if goes_back else []
        by_rows = all(index is None or self._slots[index].spec.axes for index in touched)
        return isinstance(instruction.op, Elementwise) and by_rows

    def _in_one_space(self, instructions: Iterable[Instruction]) -> Iterator[list[Instruction]]:
        """The instructions, cut where shapes do not broadcast to those before or, if the kernel wants that, are others."""
        space: Shape | None = None
        run: list[Instruction] = []
        for instruction in instructions:
            own = broadcast(*(self._slots[index].spec.dims for index in (*instruction.inputs, *instruction.outputs)))
            wider = None if space is None or own is None else broadcast(space, own)
            if run and (wider is None or wider not in (space, own) or (self._of_one_shape and own != space)):
                yield run
                run, wider = [], own
            space = own if wider is None else wider
            run.append(instruction)
        if run:
            yield run


def _parts_of_others(instructions: Sequence[Instruction]) -> set[int]:
    """Slots whose arrays are parts of others: results that are slices, gradients in that of a whole, and what shares memory with them."""
    found: set[int] = {i.outputs[0] for i in instructions if i.is_view and is_slice(i.op)}
    for instruction in instructions:
        if instruction.reuses is not None and instruction.reuses in found:
            found.update(instruction.outputs)
    for instruction in reversed(instructions):
        grad = (instruction.grad or (None,))[0]
        if grad is not None and (instruction.placed or grad in found):
            shared = (grad, instruction.reuses_gradient, *(target for _, target in instruction.passed))
            found.update(index for index in shared if index is not None)
    return found


def _note_memory(chain: Chain, slots: Sequence[Slot], used: Iterable[int]) -> None:
    """Say what memory the chain touches, and what nothing else needs."""
    chain.touched = {slots[index].base for index in used}
    lives = {base: (slots[base].birth, slots[base].death) for base in chain.touched if slots[base].kind == COMPUTED}
    chain.local = {base for base, (birth, death) in lives.items() if chain.begin <= birth and death <= chain.end}


def _is_rowwise(instruction: Instruction, slots: Sequence[Slot]) -> bool:
    """Whether each row of the result depends on that row of the operands alone, and nothing else is done."""
    op = instruction.op
    if instruction.loop is not None or not op.by_rows or op.outputs != 1 or not instruction.is_pure:
        return False
    specs = [slots[index].spec for index in (*instruction.inputs, *instruction.outputs)]
    own = specs[-1].axes
    return bool(own) and all(spec.axes in ((), own) and not spec.sparse for spec in specs)
