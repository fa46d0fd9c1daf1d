"""Fusion of expressions: one operator computes what several did, if the backend has a kernel for it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...extension import plugins
from ...operators.abilities import EndsExpression, Expression
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction


class Expressions(Pass):
    """Replace an operator and those before it by one, if it provides that (:meth:`~cntk.core.operators.abilities.EndsExpression.whole`).

    Not in checked mode, in which messages tell which operator made a NaN.
    """

    name = "fuse_expressions"

    def rewrite(self, program: Program) -> None:
        if program.checked:
            return
        readers = Counter(index for instruction in program.instructions for index in instruction.inputs)
        makers = {
            instruction.outputs[0]: instruction
            for instruction in program.instructions
            if instruction.is_pure and instruction.loop is None and len(instruction.outputs) == 1
        }

        def maker(slot: int) -> Instruction | None:
            return makers.get(slot) if readers[slot] == 1 and slot not in program.asked else None

        whole = {}
        for instruction in makers.values():
            found = _whole(program, instruction, Expression(maker, program.slots))
            if found is not None:
                whole[instruction] = found
        replaced = {part for own, found in whole.items() for part in _parts(own, found, makers)}
        program.drop(index for part in replaced for index in part.outputs)
        kept = (instruction for instruction in program.instructions if instruction not in replaced)
        program.instructions = [whole.get(instruction, instruction) for instruction in kept]


def _whole(program: Program, own: Instruction, expression: Expression) -> Instruction | None:
    if not issubclass(type(own.op), EndsExpression):
        return None
    found = own.op.whole(own, expression)
    if found is None or plugins.kernel_place(type(found[0]), program.backend.name) is None:
        return None
    return program.instruction(found[0], own.node, found[1], own.outputs)


def _parts(own: Instruction, whole: Instruction, makers: dict[int, Instruction]) -> list[Instruction]:
    """The instructions before *own* that compute what the whole does not read."""
    found: list[Instruction] = []
    wanted = [*own.inputs]
    while wanted:
        index = wanted.pop()
        if index not in whole.inputs and index in makers:
            found.append(makers[index])
            wanted += makers[index].inputs
    return found
