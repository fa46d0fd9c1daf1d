"""Blocks: chains of element-wise operators go through large arrays block by block of rows, so that what one writes the next finds in cache.

Here they are found; :mod:`cntk.core.blocks` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ..blocks import Chain
from ..op import Elementwise
from ..slots import COMPUTED
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction, Slot

SHORTEST = 3
"""Calls that gain by running in blocks; a pair of them gains nothing."""


class Blocks(Pass):
    """Put element-wise instructions that follow one another into chains, forward and backward.

    In checked mode there are none, for messages tell where in the whole array a NaN is.
    """

    name = "blocks"

    def arrange(self, program: Program) -> None:
        if program.checked:
            return
        slots, count = program.slots, len(program.instructions)
        place = {instruction: time for time, instruction in enumerate(program.instructions)}
        for members in _runs(program.instructions, lambda i: _is_rowwise(i, slots) and not i.is_view):
            chain = Chain(members, members[0].stage, place[members[0]], place[members[-1]])
            _note_memory(chain, slots, (index for instruction in members for index in instruction.used_forward()))
            program.chains.append(chain)
            for instruction in members:
                instruction.chain = chain
        going_back = [i for i in program.instructions if i.loop is not None or (i.grad is not None and not i.placed)]
        for members in _runs(going_back, lambda i: _is_rowwise(i, slots) and _goes_back_by_rows(i, slots)):
            begin, end = 2 * count - place[members[-1]], 2 * count - place[members[0]]
            chain = Chain(members[::-1], program.stages - 1, begin, end)
            _note_memory(chain, slots, (index for instruction in members for index in instruction.used_backward()))
            program.chains.append(chain)
            for instruction in members:
                instruction.backward_chain = chain


def _note_memory(chain: Chain, slots: Sequence[Slot], used: Iterable[int]) -> None:
    """Say what memory the chain touches, and what nobody else needs."""
    chain.touched = {slots[index].base for index in used}
    lives = {base: (slots[base].birth, slots[base].death) for base in chain.touched if slots[base].kind == COMPUTED}
    chain.local = {base for base, (birth, death) in lives.items() if chain.begin <= birth and death <= chain.end}


def _runs(instructions: Sequence[Instruction], accepts: Callable[[Instruction], bool]) -> Iterator[list[Instruction]]:
    """Instructions that follow one another, all accepted, in one stage and on the same dynamic axes."""
    for accepted, group in groupby(instructions, key=lambda i: (i.stage, i.node.outputs[0].spec.axes) if accepts(i) else None):
        run = list(group)
        if accepted is not None and len(run) >= SHORTEST:
            yield run


def _is_rowwise(instruction: Instruction, slots: Sequence[Slot]) -> bool:
    """Whether each row of the result depends on that row of the operands alone, and nothing else is done."""
    op = instruction.op
    specs = [slots[index].spec for index in (*instruction.inputs, *instruction.outputs)]
    own = specs[-1].axes
    alike = bool(own) and all(spec.axes in ((), own) and not spec.sparse for spec in specs)
    return isinstance(op, Elementwise) and op.by_rows and alike and instruction.is_pure and instruction.loop is None


def _goes_back_by_rows(instruction: Instruction, slots: Sequence[Slot]) -> bool:
    """Whether it writes to gradients of values with rows alone, and not to sums over rows."""
    touched = [*instruction.grads, *(index for pair in instruction.sums for index in pair)]
    return all(index is None or slots[index].spec.axes for index in touched)
