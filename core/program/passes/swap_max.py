"""Swaps an order-preserving activation with a maximum that follows it, so that the activation has fewer elements to compute."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...extension.identity import still_holds
from ...operators.abilities import CommutesWithMonotone
from ...operators.elementwise import Elementwise
from ..slots import COMPUTED
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction


class Maxima(Pass):
    """Pool first, where an activation and a maximum over windows follow one another and nothing else reads the result between them."""

    name = "swap_max"

    def rewrite(self, program: Program) -> None:
        readers = Counter(index for instruction in program.instructions for index in instruction.inputs)
        maker = {index: instruction for instruction in program.instructions for index in instruction.outputs}
        behind: dict[Instruction, Instruction] = {}
        for instruction in program.instructions:
            before = maker.get(instruction.inputs[0]) if instruction.inputs else None
            if before is not None and readers[instruction.inputs[0]] == 1 and _are_exchangeable(program, before, instruction):
                _exchange(program, before, instruction)
                behind[instruction] = before
        moved = set(behind.values())
        kept = (instruction for instruction in program.instructions if instruction not in moved)
        program.instructions = [one for instruction in kept for one in (instruction, behind.get(instruction)) if one is not None]


def _are_exchangeable(program: Program, activation: Instruction, maximum: Instruction) -> bool:
    op, slots = activation.op, program.slots
    plain = isinstance(op, Elementwise) and op.keeps_order and activation.is_pure and activation.loop is None is maximum.loop
    inner = activation.outputs[0]
    return (
        plain
        and issubclass(type(maximum.op), CommutesWithMonotone)
        and still_holds(type(op), "keeps_order", "forward", "gradient", "backward")
        and still_holds(type(maximum.op), "commutes_with_monotone", "forward", "backward")
        and inner not in program.asked
        and slots[inner].spec == slots[activation.inputs[0]].spec
        and maximum.op.commutes_with_monotone(slots[inner].spec)
    )


def _exchange(program: Program, activation: Instruction, maximum: Instruction) -> None:
    result = program.slots[maximum.outputs[0]]
    between = program._add(result.spec, COMPUTED, result.variable)
    program.drop(activation.outputs)
    maximum.inputs, activation.inputs, activation.outputs = activation.inputs, (between,), maximum.outputs
    maximum.outputs = (between,)
