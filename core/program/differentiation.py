"""Differentiation: the backward pass of a program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph.variable import Parameter, Variable
from ..operators.abilities import GivesRowSparse
from ..operators.delay import Delay
from ..operators.op import includes
from ..operators.view import is_slice
from ..types.spec import Spec
from .slots import COMPUTED, HELD, ROWS, ZERO, Instruction, Loop

if TYPE_CHECKING:
    from .program import Program


class Differentiator:
    """Writes the backward pass of a program: which gradients flow where, and in which memory."""

    def __init__(self, program: Program, roots: Sequence[Variable], wrt: Sequence[Variable]) -> None:
        self.program = program
        self.slots = program.slots
        self.wrt = {program._slot_of[v]: v for v in map(program._resolved, wrt) if v in program._slot_of}
        self.names = {v: program._slot_of.get(program._resolved(v)) for v in wrt}
        self.roots = roots
        self.gradient: dict[int, int] = {}
        self.arrived: dict[int, int] = defaultdict(int)
        self.placed: set[int] = set()

    def run(self) -> None:
        program = self.program
        active = self._depends_on_wrt()
        reached = self._reached_from_roots(active)
        expected = self._count_contributions(active, reached)
        self.dense = self._with_dense_terms(active, reached)
        self._place_parts(active, reached, expected)
        for root in self.roots:
            slot = program.root_slots[root]
            if slot in active:
                program.seed_slots[root] = self._gradient_of(slot)
                self.arrived[slot] = 1
        entered: set[Loop] = set()
        for instruction in reversed(program.instructions):
            if not any(slot in reached for slot in instruction.outputs):
                continue
            if instruction.loop is not None and instruction.loop not in entered:
                entered.add(instruction.loop)
                self._enter(instruction.loop, active, reached)
            self._differentiate(instruction, active, expected)
        for variable, index in self.names.items():
            if index is not None:
                program.gradient_slots[variable] = self.gradient[index] if index in self.gradient else self._zero(index)

    def _depends_on_wrt(self) -> set[int]:
        active = set(self.wrt)

        def walk() -> None:
            for instruction in self.program.instructions:
                inputs = enumerate(instruction.inputs)
                if any(slot in active and includes(instruction.op.gradient_inputs, i) for i, slot in inputs):
                    active.update(instruction.outputs)

        self._repeat(walk, active)
        return active

    def _reached_from_roots(self, active: set[int]) -> set[int]:
        reached = {self.program.root_slots[root] for root in self.roots} & active

        def walk() -> None:
            for instruction in reversed(self.program.instructions):
                if any(slot in reached for slot in instruction.outputs):
                    reached.update(self._wanted(instruction, active))

        self._repeat(walk, reached)
        return reached

    def _repeat(self, walk: Callable[[], None], found: set[int]) -> None:
        """Go over the instructions: once, or with recurrences until nothing new arrives through a delay."""
        known = -1
        while len(found) > known:
            known = len(found)
            walk()
            if not self.program.has_loops:
                return

    def _wanted(self, instruction: Instruction, active: set[int]) -> list[int]:
        return [slot for i, slot in enumerate(instruction.inputs) if slot in active and includes(instruction.op.gradient_inputs, i)]

    def _count_contributions(self, active: set[int], reached: set[int]) -> dict[int, int]:
        """How many terms the gradient of each value is the sum of."""
        expected: dict[int, int] = defaultdict(int)
        for root in self.roots:
            expected[self.program.root_slots[root]] += 1
        for instruction in self.program.instructions:
            if any(slot in reached for slot in instruction.outputs):
                for slot in self._wanted(instruction, active):
                    expected[slot] += 1
        return expected

    def _place_parts(self, active: set[int], reached: set[int], expected: dict[int, int]) -> None:
        """Where views cut a value into parts, each once, let the gradients of the parts lie in that of the whole."""
        views: dict[int, list[Instruction]] = defaultdict(list)
        for instruction in self.program.instructions:
            if instruction.is_view and is_slice(instruction.op) and instruction.outputs[0] in reached:
                views[instruction.inputs[0]].append(instruction)
        for whole, parts in views.items():
            if expected[whole] == len(parts) and whole in active and _cover_once(self.slots[whole].spec, parts):
                base = self.slots[self._gradient_of(whole)].base
                for part in parts:
                    part.placed = True
                    self.slots[self._gradient_of(part.outputs[0])].base = base
                    self.placed.add(part.outputs[0])

    def _with_dense_terms(self, active: set[int], reached: set[int]) -> set[int]:
        """Values whose gradients cannot be row-sparse, because one of the terms is not."""
        dense = {self.program.root_slots[root] for root in self.roots}
        for instruction in self.program.instructions:
            if any(slot in reached for slot in instruction.outputs):
                dense.update(
                    slot for i, slot in enumerate(instruction.inputs) if slot in active and not self._is_row_sparse(instruction, i)
                )
        return dense

    def _gradient_of(self, slot: int) -> int:
        if slot not in self.gradient:
            of = self.slots[slot]
            kind = COMPUTED if of.kind != HELD or slot in self.dense else ROWS
            self.gradient[slot] = self.program._add(of.spec.but(sparse=False), kind, of.variable, like=slot)
        return self.gradient[slot]

    def _zero(self, slot: int) -> int:
        of = self.slots[slot]
        return self.program._add(of.spec.but(sparse=False), ZERO, of.variable, like=slot)

    def _enter(self, loop: Loop, active: set[int], reached: set[int]) -> None:
        """Prepare the gradients that steps of a loop add to: those that delays bring back, and of outer operands taken step by step."""
        for instruction in loop.body:
            if not any(slot in reached for slot in instruction.outputs):
                continue
            for i, slot in enumerate(instruction.inputs):
                wanted = slot in active and includes(instruction.op.gradient_inputs, i)
                outer = slot not in loop.slots and not self._is_late(instruction, slot)
                if wanted and (outer or self._is_carried(instruction, i)):
                    self._begin_sum(loop, slot)

    def _begin_sum(self, loop: Loop, slot: int) -> None:
        """Let the gradient be zero before the loop's first term, unless terms from behind the loop are there."""
        if not self.arrived[slot]:
            loop.zeros.append(self._gradient_of(slot))
        self.arrived[slot] += 1

    def _differentiate(self, instruction: Instruction, active: set[int], expected: dict[int, int]) -> None:
        instruction.grad = tuple(self.gradient.get(slot) for slot in instruction.outputs)
        wanted = self._wanted(instruction, active)
        if all(slot is None for slot in instruction.grad) or not wanted:
            instruction.grad = None
            return
        if instruction.placed:
            self.arrived[instruction.inputs[0]] += 1
            return
        count = len(instruction.inputs)
        grads: list[int | None] = [None] * count
        late_grads: list[int | None] = [None] * count
        sums: list[tuple[int, int]] = []
        late_sums: list[tuple[int, int]] = []
        passed: list[tuple[int, int]] = []
        for i, slot in enumerate(instruction.inputs):
            if slot not in active or not includes(instruction.op.gradient_inputs, i):
                continue
            if self._is_carried(instruction, i):
                instruction.carried = self._gradient_of(slot)
                continue
            late = self._is_late(instruction, slot)
            target = self._gradient_of(slot)
            self.arrived[slot] += 1
            if expected[slot] == 1 and self._passes(instruction, i):
                self._share(target, instruction.grad[0])
                passed.append((i, target))
            elif self.arrived[slot] > 1:
                term = self.program._add(self.slots[target].spec, self.slots[target].kind, self.slots[slot].variable, like=slot)
                (late_sums if late else sums).append((target, term))
                (late_grads if late else grads)[i] = term
            else:
                (late_grads if late else grads)[i] = target
        instruction.grads, instruction.sums, instruction.passed = tuple(grads), tuple(sums), tuple(passed)
        instruction.late_grads, instruction.late_sums = tuple(late_grads), tuple(late_sums)

    def _is_carried(self, instruction: Instruction, i: int) -> bool:
        """Whether it is the gradient that a delay brings back within a loop."""
        loop = instruction.loop
        return bool(loop is not None and i == 0 and isinstance(instruction.op, Delay) and instruction.inputs[0] in loop.slots)

    def _is_late(self, instruction: Instruction, slot: int) -> bool:
        """Whether the gradient of a loop's operand from outside is taken for all steps at once."""
        loop = instruction.loop
        return loop is not None and slot not in loop.slots and instruction.op.by_rows

    def _share(self, target: int, source: int | None) -> None:
        """Let one gradient lie in the memory of another."""
        if source is not None:
            self.slots[target].base = self.slots[source].base

    def _is_row_sparse(self, instruction: Instruction, i: int) -> bool:
        op, specs = instruction.op, [self.slots[slot].spec for slot in instruction.inputs]
        return issubclass(type(op), GivesRowSparse) and op.row_sparse(i, specs)

    def _passes(self, instruction: Instruction, i: int) -> bool:
        """Whether the gradient of operand *i* is that of the result, in the same memory."""
        if isinstance(self.wrt.get(instruction.inputs[i]), Parameter):
            return False  # learners write into the gradients of parameters
        if instruction.inputs[i] in self.placed:
            return False
        if instruction.has_gradient_view:
            return True
        return instruction.keeps_gradient(i, self.slots)


def _cover_once(spec: Spec, views: Sequence[Instruction]) -> bool:
    """Whether the views together show each element of a value of this type once."""
    if not spec.is_concrete:
        return False
    dynamic = (1,) if spec.axes else ()
    shown = np.zeros((*dynamic, *spec.dims), np.int8)
    for view in views:
        part = view.op.view(shown, (*dynamic, *view.node.outputs[0].spec.dims))
        part += 1
    return bool((shown == 1).all())
