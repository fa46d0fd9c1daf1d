"""Fusion of pairs: an operator is fused with the one whose result it alone reads, if that is faster than both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...operators.abilities import Follows
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction


class Joining(Pass):
    """Replace two operators by one, if the second provides it (:meth:`~cntk.core.operators.abilities.Follows.after`)."""

    name = "fuse_pairs"

    def rewrite(self, program: Program) -> None:
        readers: dict[int, list[Instruction]] = {}
        for instruction in program.instructions:
            for index in set(instruction.inputs):
                readers.setdefault(index, []).append(instruction)
        joined: dict[Instruction, Instruction] = {}
        for before in program.instructions:
            if before.is_pure and before.loop is None and program.asked.isdisjoint(before.outputs):
                joined.update(_joined(program, before, readers.get(before.outputs[0], [])))
        program.instructions = [joined.get(instruction, instruction) for instruction in program.instructions]


def _joined(program: Program, before: Instruction, readers: list[Instruction]) -> dict[Instruction, Instruction]:
    """What takes the place of all that read a result, so that they do without it; nothing if one of them cannot."""
    result, found = before.outputs[0], {}
    for reader in readers:
        if reader.inputs.count(result) != 1 or reader.loop is not None:
            return {}
        position = reader.inputs.index(result)
        inputs = (*reader.inputs[:position], *before.inputs, *reader.inputs[position + 1 :])
        specs = [program.slots[index].spec for index in inputs]
        op = reader.op.after(before, reader, specs) if issubclass(type(reader.op), Follows) else None
        if op is None:
            return {}
        found[reader] = program.instruction(op, reader.node, inputs, reader.outputs)
    return found
