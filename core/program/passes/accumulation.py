"""Accumulation: a gradient that an operator passes on unchanged is added to its total from where it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction


class Accumulation(Pass):
    """Do without copies of gradients that are only made to be added."""

    name = "accumulation"

    def arrange(self, program: Program) -> None:
        for instruction in program.instructions:
            if instruction.sums and instruction.loop is None:
                _add_from_result(program, instruction)


def _add_from_result(program: Program, instruction: Instruction) -> None:
    grad = instruction.grad[0] if instruction.grad else None
    terms = {term for _, term in instruction.sums}
    copies = {term for i, term in enumerate(instruction.grads) if term in terms and instruction.keeps_gradient(i, program.slots)}
    if grad is None or not copies:
        return
    instruction.grads = tuple(None if term in copies else term for term in instruction.grads)
    instruction.sums = tuple((total, grad if term in copies else term) for total, term in instruction.sums)
    program.drop(index for index in copies if index is not None)
