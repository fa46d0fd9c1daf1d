"""Identities: operators that do nothing, such as dropout outside training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...extension.identity import still_holds
from ...operators.abilities import IsIdentity
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction


class Identities(Pass):
    """Make readers of a result that is the operand read that, in programs without gradients."""

    name = "identities"

    def rewrite(self, program: Program) -> None:
        if not program.is_inference:
            return
        same: dict[int, int] = {}
        kept: list[Instruction] = []
        for instruction in program.instructions:
            instruction.inputs = tuple(same.get(index, index) for index in instruction.inputs)
            if _does_nothing(program, instruction):
                same[instruction.outputs[0]] = instruction.inputs[0]
                program.drop(instruction.outputs)
            else:
                kept.append(instruction)
        program.instructions = kept


def _does_nothing(program: Program, instruction: Instruction) -> bool:
    op = instruction.op
    return (
        issubclass(type(op), IsIdentity)
        and still_holds(type(op), "is_identity", "forward")
        and op.is_identity(program.training)
        and instruction.loop is None
        and program.asked.isdisjoint(instruction.outputs)
        and program.slots[instruction.inputs[0]].spec == program.slots[instruction.outputs[0]].spec
    )
