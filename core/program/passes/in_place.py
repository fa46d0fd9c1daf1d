"""In place: a result takes the memory of an operand that is needed no more, a gradient that of the result's gradient.

A dense layer thus has one array for product, bias and activation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...common.shape import size_of
from ...operators.elementwise import Elementwise
from ...operators.op import includes
from ..slots import COMPUTED
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction, Slot


class InPlace(Pass):
    """Let element-wise operators write over what they are the last to read."""

    name = "in_place"

    def arrange(self, program: Program) -> None:
        slots, end = program.slots, 2 * len(program.instructions)
        stage_of = {index: instruction.stage for instruction in program.instructions for index in instruction.outputs}
        timed = [(time, i) for time, i in enumerate(program.instructions) if i.loop is None]
        for time, instruction in timed:
            if instruction.may_overwrite and not instruction.is_view:
                here = [index for index in instruction.inputs if stage_of.get(base_of(slots, index)) == instruction.stage]
                _place_result(slots, instruction, here, time)
        for time, instruction in reversed(timed):
            if instruction.grad is not None:
                _place_gradient(slots, instruction, end - time)
        for slot in slots:
            slot.base = base_of(slots, slot.base)


def base_of(slots: Sequence[Slot], index: int) -> int:
    """The slot whose memory it shares, also while bases have bases."""
    while slots[index].base != index:
        index = slots[index].base
    return index


def _place_result(slots: Sequence[Slot], instruction: Instruction, here: Sequence[int], time: int) -> None:
    """Look for an operand, computed in the same stage, whose memory the result can have."""
    bases = [base_of(slots, index) for index in instruction.inputs]
    (target, *others) = instruction.outputs
    for position, source in enumerate(instruction.inputs):
        allowed = includes(instruction.op.in_place, position) and source in here and not others
        if allowed and bases.count(bases[position]) == 1 and _follows(slots, target, source, time):
            _share(slots, target, source)
            instruction.reuses = source
            return


def _place_gradient(slots: Sequence[Slot], instruction: Instruction, time: int) -> None:
    """Look for an operand whose gradient can have the memory of the result's."""
    (source, *others) = instruction.grad or (None,)
    if source is None or others or any(base_of(slots, term) == base_of(slots, source) for _, term in instruction.sums):
        return
    wanted = [(position, target) for position, target in enumerate(instruction.grads) if target is not None]
    alone = len(wanted) == 1 and not instruction.passed
    for position, target in wanted:
        passes = instruction.keeps_gradient(position, slots)
        own = instruction.op.gradient_in_place if isinstance(instruction.op, Elementwise) else ()
        overwrites = alone and instruction.may_overwrite and includes(own, position)
        if (passes or overwrites) and _follows(slots, target, source, time):
            _share(slots, target, source)
            if passes:
                instruction.grads = tuple(None if index == target else index for index in instruction.grads)
                instruction.passed = (*instruction.passed, (position, target))
            else:
                instruction.reuses_gradient = target
            return


def _follows(slots: Sequence[Slot], target: int, source: int, time: int) -> bool:
    """Whether the target begins when the source, the whole of a piece of memory of its size, is needed for the last time."""
    before, after, held = slots[source], slots[target], slots[base_of(slots, source)]
    return (
        after.base == target
        and after.kind == before.kind == held.kind == COMPUTED
        and after.spec == before.spec
        and before.spec.is_concrete
        and not before.spec.sparse
        and not held.spec.sparse
        and held.spec.is_concrete
        and (held.spec.axes, size_of(held.spec.dims)) == (before.spec.axes, size_of(before.spec.dims))
        and after.birth == held.death == time
    )


def _share(slots: Sequence[Slot], target: int, source: int) -> None:
    held = slots[base_of(slots, source)]
    held.death = max(held.death, slots[target].death)
    slots[target].base = base_of(slots, source)
