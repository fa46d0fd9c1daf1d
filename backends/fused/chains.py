"""Chains of element-wise operators on NumPy arrays in one compiled call each, whose rows threads share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ...core.common import threads
from ...core.common.shape import size_of
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.program.chains import Chain
from ...core.program.slots import COMPUTED, HELD, Instruction, Slot
from ...core.run.sizes import Sizes
from ...core.types.context import Context
from . import opcodes as op
from .expressions import Expressions, reduces
from .formulas import Refused, is_known
from .recipe import Recipe

LARGEST_SUM = 4096
"""Elements of a sum over rows, which each part has."""

REAL = (np.dtype(np.float32), np.dtype(np.float64))


class ChainKernel:
    """The kernel of chains, as :class:`~cntk.core.program.chains.Kernel` says.

    A single instruction gains nothing: it goes through memory as often as before.
    """

    shortest = 2
    of_one_shape = False

    @staticmethod
    def takes(instruction: Instruction, slots: Sequence[Slot], goes_back: bool) -> bool:
        """Whether an instruction may be a member of chains."""
        specs = [slots[index].spec for index in (*instruction.inputs, *instruction.outputs)]
        is_real = len({spec.dtype for spec in specs}) == 1 and np.dtype(specs[0].dtype or object) in REAL
        if not is_real or not _is_ours(instruction.kernel) or not _is_known(instruction, slots, goes_back):
            return False
        if not goes_back:
            return True
        targets = [slots[index] for index in instruction.grads if index is not None]
        sums = [slots[index] for pair in instruction.sums for index in pair]
        return (
            all(slot.kind == COMPUTED for slot in (*targets, *sums))
            and all(slot.spec.axes for slot in sums)
            and all(slot.spec.axes or (slot.spec.is_concrete and size_of(slot.spec.dims) <= LARGEST_SUM) for slot in targets)
        )

    @staticmethod
    def plan(chain: Chain, slots: Sequence[Slot], sizes: Sizes) -> ChainPlan | None:
        """How to run a chain; None if it is too small to be worth it."""
        first = chain.members[0].outputs[0]
        layout = sizes.layouts[first]
        plan = ChainPlan(chain, slots, sizes, 0 if layout is None else layout.rows)
        # must not depend on the rest of the program, so that values are the same with and without a backward pass
        return plan if plan.elements >= thresholds.chain_compiled and plan.recipe() is not None and are_usable() else None


class ChainPlan:
    """How a chain is run.

    Args:
        chain: the chain.
        slots: the program's slots.
        sizes: sizes of their values.
        rows: how many rows of data there are.

    Attributes:
        chain: the chain.
        rows: how many rows of data there are.
    """

    def __init__(self, chain: Chain, slots: Sequence[Slot], sizes: Sizes, rows: int) -> None:
        self.rows = rows
        self.chain, self._slots, self._specs = chain, slots, sizes.specs
        self._attributes = [(i.op, name) for i in chain.members for name in i.op._attribute_names if not reduces(i.op)]

    @property
    def elements(self) -> int:
        """Elements of all operators' results, or of as many gradients."""
        return self.rows * sum(size_of(self._specs[(i.inputs if reduces(i.op) else i.outputs)[0]].dims) for i in self.chain.members)

    def attributes(self) -> list[Any]:
        """Attributes of the operators, which may change."""
        return [getattr(of, name) for of, name in self._attributes]

    def _is_contiguous(self) -> bool:
        """Whether arrays of parameters and constants are contiguous like all others."""
        used = {index for i in self.chain.members for index in i.inputs if self._slots[index].kind == HELD}
        held: list[Any] = [self._slots[index].variable for index in used]
        return all(variable.array.flags.c_contiguous for variable in held)

    def recipe(self) -> Recipe | None:
        """The chain's tape for one row of data; None if no tape can run it."""
        known = self.chain.known
        used = [index for i in self.chain.members for index in i.used_forward() if not self._slots[index].spec.is_concrete]
        key = (*[self._specs[index].dims for index in used], *self.attributes())
        if key not in known:
            known[key] = self._new_recipe() if self._is_contiguous() else None
        return known[key]

    def _new_recipe(self) -> Recipe | None:
        try:
            return Recipe(Expressions(self.chain, self._slots, self._specs), self._slots)
        except Refused:
            return None

    def bind(self, arrays: Sequence[Any], context: Context) -> Taped:
        """The chain on the arrays of slots."""
        return Taped(self, arrays, context)


class Taped:
    """A chain on arrays.

    Args:
        plan: how it is run.
        arrays: the arrays of slots.
        context: provides memory for intermediate values.
    """

    def __init__(self, plan: ChainPlan, arrays: Sequence[Any], context: Context) -> None:
        from . import chain_tape

        self._machine, self.plan, self._arrays, self._context = chain_tape, plan, arrays, context
        self._prepare()

    def _prepare(self) -> None:
        recipe = self.plan.recipe()
        assert recipe is not None
        self._attributes = self.plan.attributes()
        self._like = recipe.numbers[:0]
        self._extents = (*recipe.extents(self.plan.rows), recipe.at_once)
        outer, middle, rows, at_once = self._extents
        self.groups = outer * middle * -(-rows // at_once)
        self._parts = recipe.parts(self.groups)
        self._most_threads = min(self._parts, max(threads.max_threads(), threads.processors()))
        nbytes = self._most_threads * recipe.thread_bytes
        memory = self._context.scratch("chain", (nbytes + self._parts * recipe.sum_bytes,), np.uint8)
        self._sums = memory[nbytes:].view(recipe.numbers.dtype).reshape(self._parts, -1)
        self._totals = [
            self._context.backend.summing(total.of_parts(self._sums), (0,), self._arrays[total.slot].reshape(1, -1))
            for total in recipe.totals
        ]
        found = [memory, recipe.numbers, self._sums, *(self._arrays[slot] for slot in recipe.slots)]
        places = np.array([array.__array_interface__["data"][0] for array in found])
        self._tape = recipe.table.copy()
        self._tape[:, [op.Z_AT, op.X_AT, op.Y_AT]] += places[recipe.bases]
        self._size = self.plan.elements
        self._ends = recipe.ends

    def run(self) -> None:
        """Run the chain."""
        if self._attributes and self._attributes != self.plan.attributes():
            self._prepare()
        self._begin()
        shared, lines = self._size >= thresholds.elements_shared, (0, len(self._tape))
        self._machine.run.run(
            shared, self._parts, self._extents, lines, (0, self.groups), self._tape, self._like, most=self._most_threads
        )  # fmt: skip
        self._end()

    def run_one(self, member: int, group: int) -> None:
        """Run a member for a group of rows."""
        if group == member == 0:
            self._begin()
        lines = self._ends[member], self._ends[member + 1]
        self._machine.run.run(False, self._parts, self._extents, lines, (group, group + 1), self._tape, self._like)
        if group == self.groups - 1 and member == len(self._ends) - 2:
            self._end()

    def _begin(self) -> None:
        if self._totals:
            self._sums.fill(0)

    def _end(self) -> None:
        for add_up in self._totals:
            add_up()


def _is_ours(kernel: Any) -> bool:
    """Whether no other plugin has a kernel for the operator."""
    return kernel is None or getattr(kernel, "__module__", "").startswith(f"{__package__}.")


def _is_known(instruction: Instruction, slots: Sequence[Slot], goes_back: bool) -> bool:
    """Whether there is a formula for an operator."""
    of = instruction.op
    if reduces(of):
        (x,), (out,) = ([slots[index].spec.dims for index in indices] for indices in (instruction.inputs, instruction.outputs))
        kept = (1,) * (len(x) - len(out)) + out
        first = next((axis for axis, (dim, left) in enumerate(zip(x, kept, strict=True)) if dim != left), len(x))
        lasts = kept[:first] == x[:first] and all(dim == 1 for dim in kept[first:])
        return of.reduction_keep_dimensions and lasts
    can_be_keys = all(isinstance(getattr(of, name), Hashable) for name in of._attribute_names)
    return can_be_keys and is_known(of, len(instruction.inputs), goes_back)
