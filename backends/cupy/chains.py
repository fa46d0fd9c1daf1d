"""Fusion of chains of element-wise operators into one generated kernel each; a single operator is a chain of one.

Gradients of parameters are sums over rows: the kernel writes partial sums, which a second kernel adds up.
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
    """Fused element-wise kernels; implements :class:`~cntk.core.program.chains.Kernel`."""

    shortest = 1
    of_one_shape = True

    @staticmethod
    def takes(instruction: Instruction, slots: Sequence[Slot], goes_back: bool) -> bool:
        """Whether an instruction can be fused; gradients that are added up must have the shape of its result."""
        of, specs = instruction.op, [slots[index].spec for index in (*instruction.inputs, *instruction.outputs)]
        is_real = len({spec.dtype for spec in specs}) == 1 and np.dtype(specs[0].dtype or object).name in STORED
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
            and all(slot.spec.axes and _without_leading_ones(slot.spec.dims) == _without_leading_ones(dims) for slot in sums)
            and all(slot.spec.is_concrete for slot in targets)
        )

    @staticmethod
    def plan(chain: Chain, slots: Sequence[Slot], sizes: Sizes) -> ChainPlan | None:
        """Return a plan for a chain; None if shapes do not broadcast, or if memory would be overwritten that is still read."""
        plan = ChainPlan(chain, slots, sizes)
        return plan if plan.is_possible() else None


class Total(NamedTuple):
    """A sum over rows, or over static axes of each row.

    Attributes:
        slot: the slot that it is written to.
        term: the formula of its terms.
    """

    slot: int
    term: Term


class Written(NamedTuple):
    """The formulas of a chain.

    Attributes:
        read: symbols by the slots that the chain reads.
        stores: slots that it writes, with their formulas.
        totals: sums over rows.
        narrow: sums over static axes of each row.
    """

    read: dict[int, Symbol]
    stores: list[tuple[int, Term]]
    totals: list[Total]
    narrow: list[Total]


class ChainPlan:
    """Plan for running a chain at given sizes.

    Args:
        chain: the chain.
        slots: the program's slots.
        sizes: sizes of the slots' values.

    Attributes:
        chain: the chain.
        rows: number of rows of data.
        dtype: element type of all values.
        space: static axes of the iteration space; None if shapes do not broadcast.
    """

    def __init__(self, chain: Chain, slots: Sequence[Slot], sizes: Sizes) -> None:
        layout = sizes.layouts[chain.members[0].outputs[0]]
        self.rows = 0 if layout is None else layout.rows
        self.chain, self._slots, self._specs = chain, slots, sizes.specs
        self.dtype = np.dtype(sizes.specs[chain.members[0].outputs[0]].dtype)
        self.space = broadcast(*(sizes.specs[index].dims for i in chain.members for index in i.used_forward()))
        self._attributes = [(i.op, name) for i in chain.members for name in i.op._attribute_names]

    def is_possible(self) -> bool:
        """Whether the chain can run as one kernel."""
        if self.space is None:
            return False
        written = self.written()
        stored = {self._slots[slot].base for slot, *_ in (*written.stores, *written.narrow)}
        overwritten = [slot for slot in written.read if self._slots[slot].base in stored]
        return all(self.is_full(slot) for slot in (*overwritten, *(slot for slot, _ in written.stores)))

    def is_full(self, slot: int) -> bool:
        """Whether a slot spans the whole iteration space, without broadcasting."""
        return bool(self._slots[slot].spec.axes) and _without_leading_ones(self._specs[slot].dims) == _without_leading_ones(
            self.space or ()
        )

    def dims(self, slot: int) -> Shape:
        """Return the static axes of a slot."""
        return tuple(self._specs[slot].dims)

    def has_rows(self, slot: int) -> bool:
        """Whether a slot has rows."""
        return bool(self._slots[slot].spec.axes)

    def attributes(self) -> list[Any]:
        """Return the current attributes of the operators, which may change."""
        return [getattr(of, name) for of, name in self._attributes]

    def written(self) -> Written:
        """Return the formulas of the chain, with its operators' current attributes."""
        return _Writer(self.chain, self._slots).written()

    def bind(self, arrays: Sequence[Any], context: Context) -> Fused:
        """Bind the chain to the arrays of the slots."""
        return Fused(self, arrays, context)


class _Writer:
    """Composes the formulas of a chain from those of its members."""

    def __init__(self, chain: Chain, slots: Sequence[Slot]) -> None:
        self._chain, self._slots = chain, slots
        self._read: dict[int, Symbol] = {}
        self._current: dict[int, Term] = {}
        self._last: dict[int, tuple[int, Term]] = {}
        self._totals: list[Total] = []
        self._narrow: list[Total] = []

    def written(self) -> Written:
        for instruction in self._chain.members:
            (self._backward if self._chain.goes_back else self._forward)(instruction)
        stores = [store for base, store in self._last.items() if base not in self._chain.local]
        terms = [*(term for _, term in stores), *(total.term for total in (*self._totals, *self._narrow))]
        used = {id(symbol) for term in terms for symbol in symbols_in(term)}
        return Written({slot: symbol for slot, symbol in self._read.items() if id(symbol) in used}, stores, self._totals, self._narrow)

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
            if not self._slots[target].spec.axes:
                self._totals.append(Total(target, term))
            elif self._is_wide(target, instruction):
                self._write(target, term)
            else:
                self._narrow.append(Total(target, term))
        for _, target in instruction.passed:
            self._current[target] = values[0]
        for total, term_slot in instruction.sums:
            a, b = operands(2)
            self._write(total, substituted(a + b, (a, b), (self._value(total), self._value(term_slot))))

    def _is_wide(self, target: int, instruction: Instruction) -> bool:
        """Whether a gradient has the shape of the result, and is no sum over static axes."""
        own, result = (_without_leading_ones(self._slots[index].spec.dims) for index in (target, instruction.outputs[0]))
        return own == result


class Fused:
    """A chain bound to arrays, run as a single group.

    Args:
        plan: the plan of the chain.
        arrays: the arrays of the slots.
        context: provides scratch memory for partial sums.
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
        wide = [self._context.scratch(f"terms {number}", shape, plan.dtype) for number in range(len(written.narrow))]
        stores += [Store(total.term, terms, axes_of(terms, shape, True)) for total, terms in zip(written.narrow, wide, strict=True)]
        places = size_of(shape[1:])
        parts = parts_of(plan.rows, places)
        sums = [
            (total.term, self._context.scratch(f"sums {number}", (parts, places), np.float64))
            for number, total in enumerate(written.totals)
        ]
        self._calls: list[Callable[[], None]] = []
        if stores or sums:
            self._calls.append(elements.bound(plan.dtype, shape, read, stores, sums))
        for total, (_, of_parts) in zip(written.totals, sums, strict=True):
            of_parts = of_parts if plan.rows else of_parts[:0]
            self._calls += folds.adding_up(self._context.backend, of_parts, self._arrays[total.slot], shape[1:])
        for total, terms in zip(written.narrow, wide, strict=True):
            self._calls += folds.narrowing(self._context.backend, terms, self._arrays[total.slot])

    def run(self) -> None:
        """Run the chain, rebinding it first if attributes have changed."""
        if not self.holds():
            self._bind()
        self.work()

    def holds(self) -> bool:
        """Whether the operators' attributes are still those for which the kernel was generated."""
        return not self._attributes or self._attributes == self.plan.attributes()

    def prepare(self) -> None:
        """Do nothing; no preparation is required."""

    def work(self) -> None:
        """Launch the kernels."""
        for call in self._calls:
            call()

    def run_one(self, member: int, group: int) -> None:
        """Run the whole chain for the first member and nothing for the others: they share one kernel."""
        if member == 0:
            self.run()


def substituted(term: Term, symbols: Sequence[Symbol], values: Sequence[Term]) -> Term:
    """Return a term with symbols replaced by values."""
    made: dict[int, Term] = {id(symbol): value for symbol, value in zip(symbols, values, strict=True)}

    def replaced(one: Term) -> Term:
        return made[id(one)] if isinstance(one, Symbol) else one

    for symbol in symbols_in(term):
        if id(symbol) not in made:
            made[id(symbol)] = Symbol(symbol.primitive, tuple(map(replaced, symbol.operands)), symbol.name)
    return replaced(term)


def _without_leading_ones(dims: Sequence[int]) -> tuple[int, ...]:
    """Return static axes without leading ones, which do not matter to broadcasting."""
    first = next((number for number, dim in enumerate(dims) if dim != 1), len(dims))
    return tuple(dims[first:])
