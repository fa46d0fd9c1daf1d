"""Common subexpressions: results of operators with equal attributes and the same operands are computed once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from .base import Pass

if TYPE_CHECKING:
    from ..program import Program
    from ..slots import Instruction


class CommonSubexpressions(Pass):
    """Make readers of the second of two equal results read the first."""

    name = "common"

    def rewrite(self, program: Program) -> None:
        first: dict[Hashable, Instruction] = {}
        same: dict[int, int] = {}
        kept: list[Instruction] = []
        for instruction in program.instructions:
            instruction.inputs = tuple(same.get(index, index) for index in instruction.inputs)
            key = _key(program, instruction) if instruction.is_pure and instruction.loop is None else None
            other = instruction if key is None else first.setdefault(key, instruction)
            if other is instruction or not program.asked.isdisjoint(instruction.outputs):
                kept.append(instruction)
            else:
                same.update(zip(instruction.outputs, other.outputs, strict=True))
                program.drop(instruction.outputs)
        program.instructions = kept


def _key(program: Program, instruction: Instruction) -> Hashable | None:
    """What instructions with equal results have in common; None if that cannot be determined."""
    op = instruction.op
    specs = tuple(program.slots[index].spec for index in instruction.outputs)
    key = type(op), op.op_name, instruction.inputs, specs, _frozen(op.attributes)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _frozen(value: Any) -> Any:
    """An attribute in a form that is equal for equal attributes alone, and can be hashed where its parts can."""
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    return type(value), value.hex() if isinstance(value, float) else value
