"""Constant folding: what depends on constants alone is computed when the program runs first, and again when one of them has changed.

So are values of parameters in programs without gradients, between updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.lock import ForkSafeLock
from ...common.services import services
from ...graph.variable import Constant, Parameter
from ...operators.view import View
from ..slots import COMPUTED, FOLDED, HELD, UNUSED, Instruction
from .base import Pass

if TYPE_CHECKING:
    from ..program import Program


class ConstantFolding(Pass):
    """Take the instructions that compute with constants alone out of the program; without gradients parameters count as constants."""

    name = "constants"

    def rewrite(self, program: Program) -> None:
        slots = program.slots
        held = (Constant, Parameter) if program.is_inference else Constant
        leaves = {i for i, slot in enumerate(slots) if slot.kind == HELD and _is_fixed(slot.variable, held)} - program.asked
        fixed, found = set(leaves), list[Instruction]()
        for instruction in program.instructions:
            if instruction.is_pure and fixed.issuperset(instruction.inputs) and _is_foldable(program, instruction):
                fixed.update(instruction.outputs)
                if program.slots[instruction.outputs[0]].variable in instruction.node.outputs:
                    found.append(instruction)
        gone = set(found) - _views_that_are_read(program, found, leaves)
        if not gone:
            return
        program.instructions = [instruction for instruction in program.instructions if instruction not in gone]
        read = {index for instruction in program.instructions for index in instruction.inputs}
        for index in (index for instruction in gone for index in instruction.outputs):
            slots[index].kind = FOLDED if index in read else UNUSED
        program.folded = FoldedConstants(program)


def _is_fixed(variable: Any, held: Any) -> bool:
    return isinstance(variable, held) and not variable.is_volatile


def _is_foldable(program: Program, instruction: Instruction) -> bool:
    """Whether the results are dense, of a known shape and without dynamic axes, and not requested."""
    results = [program.slots[index] for index in instruction.outputs]
    plain = all(slot.kind == COMPUTED and slot.spec.is_concrete and slot.spec.axes == () and not slot.spec.sparse for slot in results)
    return plain and instruction.loop is None and program.asked.isdisjoint(instruction.outputs)


def _views_that_are_read(program: Program, found: Sequence[Instruction], leaves: set[int]) -> set[Instruction]:
    """Instructions that only show a variable otherwise to those that remain: they take neither time nor memory."""
    among, shown, views = set(found), set(leaves), set[Instruction]()
    read = {index for instruction in program.instructions if instruction not in among for index in instruction.inputs}
    for instruction in found:
        if isinstance(instruction.op, View) and instruction.inputs[0] in shown:
            shown.update(instruction.outputs)
    for instruction in reversed(found):
        if not shown.isdisjoint(instruction.outputs) and not read.isdisjoint(instruction.outputs):
            views.add(instruction)
            read.update(instruction.inputs)
    return views


class Derived(NamedTuple):
    """Values that a pass makes from others.

    Attributes:
        targets, sources: slots of the values made, and of those they are made from: a variable's own, or such as are folded before.
        write: given the array namespace, the targets' arrays and those of the sources, writes the former.
    """

    targets: Sequence[int]
    sources: Sequence[int]
    write: Callable[[Any, Sequence[Any], Sequence[Any]], None]


class FoldedConstants:
    """Values of constants alone that a program reads.

    Args:
        program: the program, whose slots of the kind ``FOLDED`` they are.

    Attributes:
        arrays: the values by slot; each array is the same for the program's whole life.
        changes: how often they have been computed.
        is_volatile: False, as of variables whose changes are all counted.
    """

    is_volatile = False

    def __init__(self, program: Program) -> None:
        slots = program.slots
        self._variables = {index: slot.variable for index, slot in enumerate(slots) if slot.kind == FOLDED}
        roots = list(self._variables.values())
        self._program = type(program)(
            roots, program.backend, training=program.training, checked=program.checked, passes=(), bound=program.bound
        )
        self._leaves = {slot.variable: None for slot in self._program.slots if slot.kind == HELD}
        self._derived: list[Derived] = []
        self._seen: list[int] | None = None
        self._lock = ForkSafeLock()
        self.changes = 0
        self.arrays: dict[int, Any] = {i: program.backend.empty(v.spec.dims, v.spec.dtype) for i, v in self._variables.items()}
        self._held: dict[int, Any] = {}

    def derive(self, program: Program, derived: Derived) -> None:
        """Have a pass's values computed, after those that were there before."""
        for index in derived.sources:
            slot = program.slots[index]
            if slot.kind == HELD:
                self._held[index] = slot.variable
                self._leaves[slot.variable] = None
        for index in derived.targets:
            spec = program.slots[index].spec
            self.arrays[index] = program.backend.empty(spec.dims, spec.dtype)
        self._derived.append(derived)

    def refresh(self) -> None:
        """Compute the values, unless that has been done since a constant changed."""
        leaves: Any = self._leaves
        seen = [leaf.changes for leaf in leaves]
        if seen == self._seen and not any(leaf.is_volatile for leaf in leaves):
            return
        backend = self._program.backend
        with self._lock, backend.guard():
            if self._variables:
                self._take_values(backend.xp)
            for derived in self._derived:
                sources = [self._held[index].array if index in self._held else self.arrays[index] for index in derived.sources]
                derived.write(backend.xp, [self.arrays[index] for index in derived.targets], sources)
            self._seen = seen
            self.changes += 1

    def _take_values(self, xp: Any) -> None:
        """Compute the variables' values by the program of their own."""
        run = services.start(self._program, [])
        try:
            run.forward()
            for index, variable in self._variables.items():
                xp.copyto(self.arrays[index], run.value(variable))
        finally:
            run.close()
