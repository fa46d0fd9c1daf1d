"""What a chain of instructions computes, as values made of values: nothing is computed twice, and nothing copied.

A value has an element of its own along some of the axes that the chain goes through, rows and static axes, and repeats along the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.common.shape import broadcast, size_of
from ...core.extension.identity import ByClass
from ...core.operators.op import Op, includes
from ...core.program.chains import Chain
from ...core.program.slots import Instruction, Slot
from ...core.types.spec import Spec
from . import opcodes as op
from .formulas import Refused, forward, gradient

MEMORY, NUMBER, TOTAL = -1, -2, -3
"""Kinds of values beside operations: the contents of a slot, a number, and what is added up over rows into a slot."""

MEANS = ByClass({"cntk.plugins.ops.reduction:ReduceSum": False, "cntk.plugins.ops.reduction:ReduceMean": True})
"""The sums that chains take, and whether they are divided by the number of terms."""

Axes = tuple[bool, ...]


@dataclass(eq=False, slots=True)
class Value:
    """A value of a chain.

    Attributes:
        kind: the operation that makes it, or one of the kinds above.
        along: the axes along which it has elements of its own.
        x, y: operands.
        slot, number: the slot or number that it is, if it is not the result of an operation.
        member: which of the chain's members computes it first.
    """

    kind: int
    along: Axes
    x: Value | None = None
    y: Value | None = None
    slot: int = -1
    number: float = 0.0
    member: int = 0

    @property
    def operands(self) -> list[Value]:
        """The operands, without None."""
        return [operand for operand in (self.x, self.y) if operand is not None]


class Store(NamedTuple):
    """A value that is read outside the chain, and the slot it is written to."""

    slot: int
    value: Value


class Expressions:
    """The values of a chain.

    Args:
        chain: the chain.
        slots: the program's slots.
        specs: types of their values for the current sizes.

    Attributes:
        dtype: element type of all values.
        space: lengths of the static axes that it goes through, without those of length 1.
        members: how many members the chain has.
        values: all values but numbers and contents of slots, in the order in which they are computed.
        stores: what is written to memory.

    Raises:
        Refused: shapes do not broadcast, or no tape computes an operator.
    """

    def __init__(self, chain: Chain, slots: Sequence[Slot], specs: Sequence[Spec]) -> None:
        self._slots, self._specs = slots, specs
        touched = [index for instruction in chain.members for index in instruction.used_forward()]
        space = broadcast(*(specs[index].dims for index in touched))
        if space is None:
            raise Refused
        self._space = space
        self.space = tuple(dim for dim in self._space if dim != 1)
        self.values: list[Value] = []
        self._made: dict[tuple[int, Axes, int, int], Value] = {}
        self._numbers: dict[float, Value] = {}
        self._current: dict[int, Value] = {}
        self._last: dict[int, Store] = {}
        self.dtype = np.dtype(specs[touched[-1]].dtype)
        self.members = len(chain.members)
        for self._member, instruction in enumerate(chain.members):
            (self._backward if chain.goes_back else self._forward)(instruction)
        self.stores = [store for base, store in self._last.items() if base not in chain.local]
        self._drop_unused()

    def along(self, slot: int) -> Axes:
        """The axes along which a slot has elements of its own."""
        dims = self._specs[slot].dims
        aligned = (1,) * (len(self._space) - len(dims)) + dims
        return (bool(self._slots[slot].spec.axes), *(dim != 1 for dim, of in zip(aligned, self._space, strict=True) if of != 1))

    # ---- making values ----

    def __call__(self, kind: int, x: Value | float, y: Value | float | None = None) -> Value:
        """The value that an operation makes of values and numbers."""
        first = self._value(x)
        second = None if y is None else self._value(y)
        along = first.along if second is None else tuple(a or b for a, b in zip(first.along, second.along, strict=True))
        return self._make(kind, along, first, second)

    def _make(self, kind: int, along: Axes, x: Value, y: Value | None = None) -> Value:
        key = kind, along, id(x), id(y)
        if key not in self._made:
            self._made[key] = Value(kind, along, x, y, member=self._member)
            self.values.append(self._made[key])
        return self._made[key]

    def _value(self, x: Value | float) -> Value:
        if isinstance(x, Value):
            return x
        if x not in self._numbers:
            self._numbers[x] = Value(NUMBER, (False,) * (1 + len(self.space)), number=x)
        return self._numbers[x]

    def _filled(self, x: Value, along: Axes) -> Value:
        """The value with elements of its own along more axes."""
        return x if x.along == along else self._make(op.FILL, along, x)

    def _summed(self, x: Value, along: Axes, target: Axes) -> Value:
        """The sum of a value that stands for one along some axes, over those that *target* lacks."""
        return x if along == target else self._make(op.ROW_SUM, target, self._filled(x, along))

    # ---- slots ----

    def _read(self, slot: int) -> Value:
        if slot not in self._current:
            self._current[slot] = Value(MEMORY, self.along(slot), slot=slot)
        return self._current[slot]

    def _write(self, slot: int, value: Value) -> None:
        self._current[slot] = value
        self._last[self._slots[slot].base] = Store(slot, value)

    def _drop_unused(self) -> None:
        used = {id(store.value) for store in self.stores}
        for value in reversed(self.values):
            if id(value) in used or value.kind == TOTAL:
                used.update(map(id, value.operands))
        self.values = [value for value in self.values if id(value) in used or value.kind == TOTAL]

    # ---- instructions ----

    def _forward(self, instruction: Instruction) -> None:
        of, (out,) = instruction.op, instruction.outputs
        inputs = [self._read(index) for index in instruction.inputs]
        if reduces(of):
            total = self._summed(inputs[0], self.along(instruction.inputs[0]), self.along(out))
            self._write(out, self._mean(of, total, instruction))
        else:
            self._write(out, self._value(forward(self, of, inputs)))

    def _backward(self, instruction: Instruction) -> None:
        of, (out,), ((grad,)) = instruction.op, instruction.outputs, (instruction.grad or (None,))
        assert grad is not None
        dz, along = self._read(grad), self.along(out)
        kept = [self._read(x) if includes(of.keep_inputs, i) else None for i, x in enumerate(instruction.inputs)]
        z = self._read(out) if of.keep_output else None
        for i, target in enumerate(instruction.grads):
            if target is None:
                continue
            if reduces(of):
                self._write(target, self._mean(of, dz, instruction))
                continue
            value = self._value(gradient(self, of, i, dz, z, kept))
            if self._slots[target].spec.axes:
                self._write(target, self._summed(value, along, self.along(target)))
            else:
                self._add_up(target, value, along)
        for _, target in instruction.passed:
            self._current[target] = dz
        for total, term in instruction.sums:
            self._write(total, self(op.ADD, self._read(total), self._read(term)))

    def _mean(self, of: Any, total: Value, instruction: Instruction) -> Value:
        if not MEANS[type(of)]:
            return total
        out, (x,) = instruction.outputs[0], instruction.inputs
        return self(op.MULTIPLY, total, size_of(self._specs[out].dims) / size_of(self._specs[x].dims))

    def _add_up(self, target: int, value: Value, along: Axes) -> None:
        """Add up over rows; over the elements of a row before, where *target* has none of its own."""
        self.values.append(Value(TOTAL, along, self._filled(value, along), slot=target, member=self._member))


def reduces(of: Op) -> bool:
    """Whether an operator is a sum or mean."""
    return type(of) in MEANS


def numbers_of(values: Iterable[Value]) -> list[float]:
    """The numbers among the operands of values."""
    return list(dict.fromkeys(x.number for value in values for x in value.operands if x.kind == NUMBER))
