"""Constant folding: what depends on constants alone is computed when the program runs first, and again when one of them has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...common.lock import ForkSafeLock
from ...common.services import services
from ...graph.variable import Constant
from ..slots import COMPUTED, FOLDED, HELD, UNUSED, Instruction
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program


class ConstantFolding(Pass):
    """Take the instructions that compute with constants alone out of the program; parameters do not count as constants."""

    name = "constants"

    def rewrite(self, program: Program) -> None:
        slots = program.slots
        leaves = {index for index, slot in enumerate(slots) if slot.kind == HELD and _is_fixed(slot.variable)} - program.asked
        fixed, found, read_by_found = set(leaves), list[Instruction](), set[int]()
        for instruction in program.instructions:
            if instruction.is_pure and fixed.issuperset(instruction.inputs) and _is_foldable(program, instruction):
                fixed.update(instruction.outputs)
                read_by_found.update(instruction.inputs)
                if program.slots[instruction.outputs[0]].variable in instruction.node.outputs:
                    found.append(instruction)
        if not found:
            return
        gone = set(found)
        program.instructions = [instruction for instruction in program.instructions if instruction not in gone]
        read = {index for instruction in program.instructions for index in instruction.inputs}
        for index in (index for instruction in found for index in instruction.outputs):
            slots[index].kind = FOLDED if index in read else UNUSED
        program.folded = FoldedConstants(program, read_by_found & leaves)


def _is_fixed(variable: Any) -> bool:
    return isinstance(variable, Constant) and not variable.is_volatile


def _is_foldable(program: Program, instruction: Instruction) -> bool:
    """Whether the results are dense, of a known shape and without dynamic axes, and not requested."""
    results = [program.slots[index] for index in instruction.outputs]
    plain = all(slot.kind == COMPUTED and slot.spec.is_concrete and slot.spec.axes == () and not slot.spec.sparse for slot in results)
    return plain and instruction.loop is None and program.asked.isdisjoint(instruction.outputs)


class FoldedConstants:
    """Values of constants alone that a program reads.

    Args:
        program: the program, whose slots of the kind ``FOLDED`` they are.
        leaves: slots of the constants they depend on.

    Attributes:
        arrays: the values by slot; each array is the same for the program's whole life.
    """

    def __init__(self, program: Program, leaves: set[int]) -> None:
        slots = program.slots
        self._variables = {index: slot.variable for index, slot in enumerate(slots) if slot.kind == FOLDED}
        roots = list(self._variables.values())
        self._program = type(program)(
            roots, program.backend, training=program.training, checked=program.checked, passes=(), bound=program.bound
        )
        self._constants = [slots[index].variable for index in sorted(leaves)]
        self._versions: list[int] | None = None
        self._lock = ForkSafeLock()
        self.arrays: dict[int, Any] = {i: program.backend.empty(v.spec.dims, v.spec.dtype) for i, v in self._variables.items()}

    def refresh(self) -> None:
        """Compute the values, unless that has been done since a constant changed."""
        constants: list[Any] = self._constants
        versions = [constant.version for constant in constants]
        if versions == self._versions and not any(constant.is_volatile for constant in constants):
            return
        with self._lock:
            run = services.start(self._program, [])
            try:
                with run.guard():
                    run.forward()
                    for index, variable in self._variables.items():
                        self._program.backend.xp.copyto(self.arrays[index], run.value(variable))
            finally:
                run.close()
            self._versions = versions
