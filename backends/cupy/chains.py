"""Chains of element-wise operators in one kernel each, written from the operators' formulas; a single operator is a chain of one.

Gradients of parameters are sums over rows: the kernel leaves those of parts of the rows, which are added up after it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.common.shape import Shape, broadcast, size_of
from ...core.formulas.derivatives import gradient_of
from ...core.formulas.formula import Symbol, Term, operands, states_formula, symbols_in, value_of
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import includes
from ...core.program.chains import Chain
from ...core.program.slots import COMPUTED, Instruction, Slot
from ...core.run.sizes import Sizes
from ...core.types.context import Context
from . import elements, folds
from .elements import Operand, Store, axes_of, parts_of
from .places import Along
from .prelude import STORED


class ChainKernel:
    """The kernel of chains, as :class:`~cntk.core.program.chains.Kernel` says."""

    shortest = 1

    @staticmethod
    def takes(instruction: Instruction, slots: Sequence[Slot], goes_back: bool) -> bool:
        """Whether an instruction may be a member of chains: its gradients are as large as its result, or sums over rows."""
        of, specs = instruction.op, [slots[index].spec for index in (*instruction.inputs, *instruction.outputs)]
        is_real = len({spec.dtype for spec in specs}) == 1 and np.dtype(specs[0].dtype or object) in STORED
        if not is_real or instruction.kernel is not None or not isinstance(of, Elementwise) or not states_formula(type(of)):
            return False
        if not all(isinstance(getattr(of, name), Hashable) for name in of._attribute_names):
            return False
        if not goes_back:
            return True
        dims = slots[instruction.outputs[0]].spec.dims
        targets = [slots[index] for index in instruction.grads if index is not None]
        sums = [slots[index] for pair in instruction.sums for index in pair]
        return (
            all(slot.kind == COMPUTED for slot in (*targets, *sums))
            and all(slot.spec.axes for slot in sums)
            and all(_without_leading_ones(slot.spec.dims) == _without_leading_ones(dims) for slot in targets if slot.spec.axes)
            and all(slot.spec.is_concrete for slot in targets)
        )

    @staticmethod
    def plan(chain: Chain, slots: Sequence[Slot], sizes: Sizes) -> ChainPlan | None:
        """How to run a chain; None where shapes do not broadcast, or memory is written that others still read."""
        plan = ChainPlan(chain, slots, sizes)
        return plan if plan.is_possible() else None


class Written(NamedTuple):
    """What a chain computes.

    Attributes:
        read: slots that it reads, and symbols for them.
        stores: slots that it writes, and the values.
        totals: slots of sums over rows, and what is added up.
    """

    read: dict[int, Symbol]
    stores: list[tuple[int, Term]]
    totals: list[tuple[int, Term]]


class ChainPlan:
    """How a chain is run.

    Args:
        chain: the chain.
        slots: the program's slots.
        sizes: sizes of their values.

    Attributes:
        chain: the chain.
        rows: how many rows of data there are.
        dtype: element type of all values.
        space: the static axes that it goes through; None where shapes do not broadcast.
    """

    def __init__(self, chain: Chain, slots: Sequence[Slot], sizes: Sizes) -> None:
        layout = sizes.layouts[chain.members[0].outputs[0]]
        self.rows = 0 if layout is None else layout.rows
        self.chain, self._slots, self._specs = chain, slots, sizes.specs
        self.dtype = np.dtype(sizes.specs[chain.members[0].outputs[0]].dtype)
        self.space = broadcast(*(sizes.specs[index].dims for i in chain.members for index in i.used_forward()))
        self._attributes = [(i.op, name) for i in chain.members for name in i.op._attribute_names]

    def is_possible(self) -> bool:
        """Whether a kernel can run the chain."""
        if self.space is None:
            return False
        written = self.written()
        stored = {self._slots[slot].base for slot, _ in written.stores}
        overwritten = [slot for slot in written.read if self._slots[slot].base in stored]
        return all(self.is_full(slot) for slot in (*overwritten, *(slot for slot, _ in written.stores)))

    def is_full(self, slot: int) -> bool:
        """Whether a slot has an element of its own for each place of the space."""
        return bool(self._slots[slot].spec.axes) and _without_leading_ones(self._specs[slot].dims) == _without_leading_ones(
            self.space or ()
        )

    def has_rows(self, slot: int) -> bool:
        """Whether a slot has rows."""
        return bool(self._slots[slot].spec.axes)

    def attributes(self) -> list[Any]:
        """Attributes of the operators, which may change."""
        return [getattr(of, name) for of, name in self._attributes]

    def written(self) -> Written:
        """What the chain computes, with the attributes that its operators have now."""
        return _Writer(self.chain, self._slots).written()

    def bind(self, arrays: Sequence[Any], context: Context) -> Fused:
        """The chain on the arrays of slots."""
        return Fused(self, arrays, context)


class _Writer:
    """Puts the formulas of a chain's members together."""

    def __init__(self, chain: Chain, slots: Sequence[Slot]) -> None:
        self._chain, self._slots = chain, slots
        self._read: dict[int, Symbol] = {}
        self._current: dict[int, Term] = {}
        self._last: dict[int, tuple[int, Term]] = {}
        self._totals: list[tuple[int, Term]] = []

    def written(self) -> Written:
        for instruction in self._chain.members:
            (self._backward if self._chain.goes_back else self._forward)(instruction)
        stores = [store for base, store in self._last.items() if base not in self._chain.local]
        terms = [term for _, term in (*stores, *self._totals)]
        used = {id(symbol) for term in terms for symbol in symbols_in(term)}
        return Written({slot: symbol for slot, symbol in self._read.items() if id(symbol) in used}, stores, self._totals)

    def _value(self, slot: int) -> Term:
        if slot not in self._current:
            self._current[slot] = self._read[slot] = Symbol(None, name=f"slot{slot}")
        return self._current[slot]

    def _write(self, slot: int, term: Term) -> None:
        self._current[slot] = term
        self._last[self._slots[slot].base] = slot, term

    def _forward(self, instruction: Instruction) -> None:
        of: Any = instruction.op
        symbols = operands(len(instruction.inputs))
        term = value_of(of, symbols)
        self._write(instruction.outputs[0], substituted(term, symbols, [self._value(index) for index in instruction.inputs]))

    def _backward(self, instruction: Instruction) -> None:
        of: Any = instruction.op
        (grad,) = instruction.grad or (None,)
        if grad is None:
            raise RuntimeError(f"{of.op_name}: a chain that goes back has a member without a gradient")
        symbols = operands(2 + len(instruction.inputs))
        dy, y, *inputs = symbols
        values: list[Term] = [self._value(grad), self._value(instruction.outputs[0]) if of.keep_output else y]
        values += [self._value(x) if includes(of.keep_inputs, i) else inputs[i] for i, x in enumerate(instruction.inputs)]
        for i, target in enumerate(instruction.grads):
            if target is None:
                continue
            term = substituted(gradient_of(of, i, dy, y, tuple(inputs)), symbols, values)
            if self._slots[target].spec.axes:
                self._write(target, term)
            else:
                self._totals.append((target, term))
        for _, target in instruction.passed:
            self._current[target] = values[0]
        for total, term_slot in instruction.sums:
            a, b = operands(2)
            self._write(total, substituted(a + b, (a, b), (self._value(total), self._value(term_slot))))


class Fused:
    """A chain on arrays, which all go through it as one group.

    Args:
        plan: how it is run.
        arrays: the arrays of slots.
        context: where memory for sums of parts comes from.
    """

    groups = 1

    def __init__(self, plan: ChainPlan, arrays: Sequence[Any], context: Context) -> None:
        self.plan, self._arrays, self._context = plan, arrays, context
        self._bind()

    def _bind(self) -> None:
        plan, written = self.plan, self.plan.written()
        self._attributes = plan.attributes()
        shape = (plan.rows, *(plan.space or ()))

        def axes(slot: int) -> tuple[Along, ...]:
            return axes_of(self._arrays[slot], shape, plan.has_rows(slot))

        read = [Operand(symbol, self._arrays[slot], axes(slot)) for slot, symbol in written.read.items()]
        stores = [Store(term, self._arrays[slot], axes(slot)) for slot, term in written.stores]
        places = size_of(shape[1:])
        parts = parts_of(plan.rows, places)
        sums = [
            (term, self._context.scratch(f"sums {number}", (parts, places), np.float64)) for number, (_, term) in enumerate(written.totals)
        ]
        self._calls: list[Callable[[], None]] = []
        if stores or sums:
            self._calls.append(elements.bound(plan.dtype, shape, read, stores, sums))
        for (slot, _), (_, of_parts) in zip(written.totals, sums, strict=True):
            self._calls += self._adding_up(of_parts if plan.rows else of_parts[:0], self._arrays[slot], shape[1:])

    def _adding_up(self, parts: Any, target: Any, space: Shape) -> list[Callable[[], None]]:
        """What adds up the sums of parts, and of the places that have one element of the target."""
        outputs: list[Along] = []
        terms = [Along(len(parts), size_of(space))]
        aligned, stride = (1,) * (len(space) - target.ndim) + target.shape, size_of(space)
        for length, own in zip(space, aligned, strict=True):
            stride //= max(length, 1)
            (outputs if own == length else terms).append(Along(length, stride))
        return folds.bound(self._context.backend, folds.TOTAL, parts, target, outputs or [Along(1, 0)], terms)

    def run(self) -> None:
        """Run the chain."""
        if not self.holds():
            self._bind()
        self.work()

    def holds(self) -> bool:
        """Whether the operators' attributes are those that its kernel was written with."""
        return not self._attributes or self._attributes == self.plan.attributes()

    def prepare(self) -> None:
        """There is nothing to prepare."""

    def work(self) -> None:
        """Launch its kernels."""
        for call in self._calls:
            call()

    def run_one(self, member: int, group: int) -> None:
        """Run all members where the first one is asked for: they have one kernel."""
        if member == 0:
            self.run()


def substituted(term: Term, symbols: Sequence[Symbol], values: Sequence[Term]) -> Term:
    """A term with values in the place of symbols."""
    made: dict[int, Term] = {id(symbol): value for symbol, value in zip(symbols, values, strict=True)}

    def replaced(one: Term) -> Term:
        return made[id(one)] if isinstance(one, Symbol) else one

    for symbol in symbols_in(term):
        if id(symbol) not in made:
            made[id(symbol)] = Symbol(symbol.primitive, tuple(map(replaced, symbol.operands)), symbol.name)
    return replaced(term)


def _without_leading_ones(dims: Sequence[int]) -> tuple[int, ...]:
    """Static axes that say the same."""
    first = next((number for number, dim in enumerate(dims) if dim != 1), len(dims))
    return tuple(dims[first:])
