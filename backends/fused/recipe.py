"""How a chain's values are computed: the operations of a tape, their order, and the memory of intermediate results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.common.thresholds import thresholds
from ...core.program.slots import Slot
from . import opcodes as op
from .expressions import MEMORY, NUMBER, TOTAL, Axes, Expressions, Value, numbers_of
from .formulas import Refused

AT_ONCE = 2048
"""Elements of a value that go through operations together: as many as lie in the nearest cache with some others."""

PARTS = 16
"""Parts that groups are divided into at least, if there are as many; each has sums of its own."""

SUMMED = 512
"""Rows of a group that are summed up at most, and from which on a part has enough of them."""

VECTOR_BYTES = 64

WITH_NUMBER: dict[int, tuple[int, int | None]] = {
    op.ADD: (op.ADD_NUMBER, op.ADD_NUMBER),
    op.SUBTRACT: (op.SUBTRACT_NUMBER, op.SUBTRACT_FROM_NUMBER),
    op.MULTIPLY: (op.MULTIPLY_NUMBER, op.MULTIPLY_NUMBER),
    op.DIVIDE: (op.DIVIDE_BY_NUMBER, op.DIVIDE_NUMBER),
    op.MAXIMUM: (op.MAXIMUM_NUMBER, op.MAXIMUM_NUMBER),
    op.MINIMUM: (op.MINIMUM_NUMBER, op.MINIMUM_NUMBER),
    op.GREATER: (op.GREATER_NUMBER, op.LESS_NUMBER),
    op.AT_LEAST: (op.AT_LEAST_NUMBER, op.AT_MOST_NUMBER),
    op.EQUAL: (op.EQUAL_NUMBER, op.EQUAL_NUMBER),
    op.SLOPE: (op.SLOPE_NUMBER, None),
    op.WHERE: (op.WHERE_NUMBER, None),
    op.WHERE_NOT: (op.WHERE_NOT_NUMBER, None),
}
"""The operations in place of these where the second operand is a number for each row, and where the first one is; it comes second then."""

BY_NUMBER = {op.FILL} | {kind for pair in WITH_NUMBER.values() for kind in pair if kind is not None}

SCRATCH, NUMBERS, SUMS = range(3)
"""Where operands are found that have no slot: values on the way, numbers, and sums of parts; then come slots."""


class Operand(NamedTuple):
    """Where an operand is: among the above or a slot, and then as in the columns of a chain's tape."""

    base: int
    place: int
    outer: int = 0
    middle: int = 0
    row: int = 0
    stride: int = 0
    thread: int = 0
    part: int = 0


class Total(NamedTuple):
    """Sums over rows.

    Attributes:
        slot: where they go to.
        place: where they begin in a part's memory for sums.
        size: how many there are.
    """

    slot: int
    place: int
    size: int

    def of_parts(self, sums: Any) -> Any:
        """These sums, a row for each part, out of all."""
        first = self.place // sums.itemsize
        return sums[:, first : first + self.size]


class Recipe:
    """The tape of a chain.

    Args:
        expressions: what the chain computes.
        slots: the program's slots.

    Attributes:
        table: the tape, with places relative to where operands are found.
        bases: for each operation and operand where that is: one of the above, or *slots* behind these.
        slots: slots whose memory is read or written.
        numbers: the numbers.
        totals: what is summed up over rows.
        ends: the number of operations up to each of the chain's members.
        levels: rows along each of three axes for one row of data, and which of these the rows of data multiply.
        at_once: rows of a group.
        thread_bytes, sum_bytes: scratch space for a thread, and for a part's sums.

    Raises:
        Refused: the shapes of the values are incompatible.
    """

    def __init__(self, expressions: Expressions, slots: Sequence[Slot]) -> None:
        self._of, self._program_slots, self._itemsize = expressions, slots, expressions.dtype.itemsize
        self._patterns = _patterns(expressions)
        self._begin = self._first_of_row()
        self._size = prod(expressions.space[self._begin - 1 :])
        groups = self._levels()
        rows = [prod(expressions.space[axis - 1] for axis in group if axis) for group in groups]
        self.levels, self.data_level = [1] * (3 - len(groups)) + rows, 3 - len(groups)
        self._ends = [group[-1] for group in groups]
        self.at_once = max(1, AT_ONCE // self._size)
        if any(value.kind == TOTAL for value in expressions.values):
            self.at_once = min(self.at_once, SUMMED)
        if self.data_level < 2:
            self.at_once = min(self.at_once, self.levels[2])
            if self.at_once * self._size < thresholds.chain_group:
                raise Refused
        self.slots: list[int] = []
        numbers = numbers_of(expressions.values)
        self.numbers = np.array(numbers or [0], expressions.dtype)
        self._number_places = {number: place * self._itemsize for place, number in enumerate(numbers)}
        self.totals: list[Total] = []
        self.sum_bytes = 0
        self._lines: list[tuple[int, int, Operand, Operand, Operand]] = []
        self._pools = _Pools()
        self._places: dict[int, Operand] = {}
        self._write()
        self._finish()

    def extents(self, rows: int) -> list[int]:
        """Rows along each of three axes for so many rows of data."""
        return [extent * rows if level == self.data_level else extent for level, extent in enumerate(self.levels)]

    def parts(self, groups: int) -> int:
        """Parts to divide so many groups into: more of them where there is more to sum up, so that errors do not grow."""
        return min(groups, max(PARTS, groups * self.at_once // SUMMED if self.totals else 0))

    # ---- rows ----

    def _first_of_row(self) -> int:
        """The axis from which on the elements of a row lie side by side."""
        last = 1 + len(self._of.space)
        found = [axis for axis in range(1, last + 1) if self._goes_together(axis)]
        fitting = [axis for axis in found if prod(self._of.space[axis - 1 :]) <= AT_ONCE]
        if not found:
            raise Refused
        return fitting[0] if fitting else found[-1]

    def _goes_together(self, begin: int) -> bool:
        """Whether rows may begin at an axis: each value has elements of its own along all axes of a row, or along none."""
        if any(any(along[begin:]) and not all(along[begin:]) for along in self._patterns):
            return False
        for value in self._of.values:
            if value.kind == op.ROW_SUM:
                (x,) = value.operands
                if x.along[:begin] != value.along[:begin] or any(value.along[begin:]):
                    return False
            if value.kind == TOTAL and not all(value.along[:begin]):
                return False
        return all(all(self._of.along(slot)[:begin]) for slot, _ in self._of.stores)

    def _levels(self) -> list[list[int]]:
        """The axes before a row's, with those together along which every value either goes on or repeats."""
        own = [(axis, tuple(along[axis] for along in self._patterns)) for axis in range(self._begin)]
        groups = [[axis for axis, _ in group] for _, group in groupby(own, key=lambda pair: pair[1])]
        if len(groups) > 3:
            raise Refused
        return groups

    def _is_wide(self, along: Axes) -> bool:
        """Whether there is more than a number for each row."""
        return self._begin < len(along) and all(along[self._begin :])

    # ---- operations ----

    def _write(self) -> None:
        values, stores = self._of.values, self._of.stores
        direct = self._direct_stores()
        last = {id(x): position for position, value in enumerate(values) for x in (value, *value.operands)}
        last.update((id(store.value), len(values)) for store in stores)
        self.ends = [0]
        for position, value in enumerate(values):
            self.ends += [len(self._lines)] * (value.member + 1 - len(self.ends))
            if value.kind == TOTAL:
                self._add_up(value)
            else:
                to = self._memory(direct[id(value)]) if id(value) in direct else self._pools.take(self._is_wide(value.along))
                self._places[id(value)] = to
                self._compute(value, to)
            for number in dict.fromkeys((id(value), *map(id, value.operands))):
                if last[number] == position and number in self._places:
                    self._pools.give(self._places[number])
        waiting = [store for store in stores if direct.get(id(store.value)) != store.slot]
        for slot, value in sorted(waiting, key=lambda store: store.value.kind != MEMORY):
            if value.kind != MEMORY or self._base(value.slot) != self._base(slot):
                self._copy(self._memory(slot), self._is_wide(self._of.along(slot)), value)
        self.ends += [len(self._lines)] * (self._of.members + 1 - len(self.ends))

    def _direct_stores(self) -> dict[int, int]:
        """Values that are computed directly in their slots: nothing reads the slot's old contents at that time, or later."""
        uses = [(position, x) for position, value in enumerate(self._of.values) for x in value.operands]
        uses += [(len(self._of.values), value) for _, value in self._of.stores]
        last_read: dict[int, int] = {}
        for position, x in uses:
            if x.kind == MEMORY:
                last_read[self._base(x.slot)] = position
        place = {id(value): position for position, value in enumerate(self._of.values)}
        found: dict[int, int] = {}
        for slot, value in self._of.stores:
            if id(value) in place and value.along == self._of.along(slot) and last_read.get(self._base(slot), -1) < place[id(value)]:
                found.setdefault(id(value), slot)
        return found

    def _base(self, slot: int) -> int:
        return self._program_slots[slot].base

    def _compute(self, value: Value, to: Operand) -> None:
        first, *others = value.operands
        x, is_wide = self._operand(first), self._is_wide(value.along)
        if value.kind == op.FILL:
            self._copy(to, is_wide, first)
        elif value.kind == op.ROW_SUM:
            self._lines.append((op.ROW_SUM, self._size, to, x, x))
        elif not others:
            self._add(value.kind, is_wide, to, x, x)
        else:
            self._combine(value.kind, is_wide, to, first, others[0])

    def _combine(self, kind: int, is_wide: bool, to: Operand, first: Value, second: Value) -> None:
        x, y = self._operand(first), self._operand(second)
        with_second, with_first = WITH_NUMBER.get(kind, (None, None))
        for_second = self._is_number(second, is_wide)
        if for_second and with_second is not None:
            self._add(with_second, is_wide, to, x, y)
        elif self._is_number(first, is_wide) and not for_second and with_first is not None:
            self._add(with_first, is_wide, to, y, x)
        else:
            taken = [self._widened(value) if is_wide and not self._is_wide(value.along) else None for value in (first, second)]
            self._add(kind, is_wide, to, taken[0] or x, taken[1] or y)
            for operand in filter(None, taken):
                self._pools.give(operand)

    def _is_number(self, value: Value, among_wide: bool) -> bool:
        """Whether it is one number for the elements that are done at once: those of a row, or one of each row."""
        return not self._is_wide(value.along) if among_wide else not any(value.along[: self._begin])

    def _widened(self, value: Value) -> Operand:
        to = self._pools.take(True)
        self._copy(to, True, value)
        return to

    def _copy(self, to: Operand, is_wide: bool, value: Value) -> None:
        x = self._operand(value)
        if is_wide and not self._is_wide(value.along):
            self._add(op.FILL, True, to, to, x)
        else:
            self._add(op.COPY, is_wide, to, x, x)

    def _add(self, kind: int, is_wide: bool, z: Operand, x: Operand, y: Operand) -> None:
        self._lines.append((kind, self._size if is_wide else 1, z, x, y))

    def _add_up(self, value: Value) -> None:
        (x,) = value.operands
        wanted = self._is_wide(self._of.along(value.slot))
        of, number = self._operand(x), None
        if self._is_wide(x.along) and not wanted:
            number = self._pools.take(False)
            self._lines.append((op.ROW_SUM, self._size, number, of, of))
            of = number
        place, along = self.sum_bytes, self._of.along(value.slot)
        strides = self._strides(along)
        size = prod(dim for dim, own in zip(self._of.space, along[1:], strict=True) if own)
        self.sum_bytes += _in_vectors(self._itemsize * size)
        self.totals.append(Total(value.slot, place, size))
        self._add(op.ADD_TO, wanted, Operand(SUMS, place, *strides, strides[-1]), of, of)
        if number is not None:
            self._pools.give(number)

    # ---- operands ----

    def _operand(self, value: Value) -> Operand:
        if value.kind == NUMBER:
            return Operand(NUMBERS, self._number_places[value.number])
        return self._memory(value.slot) if value.kind == MEMORY else self._places[id(value)]

    def _memory(self, slot: int) -> Operand:
        if slot not in self.slots:
            self.slots.append(slot)
        strides = self._strides(self._of.along(slot))
        return Operand(1 + SUMS + self.slots.index(slot), 0, *strides, strides[-1])

    def _strides(self, along: Axes) -> tuple[int, int, int]:
        """Bytes that an array is further on with each row along the three axes."""
        strides, step = [0] * len(along), self._itemsize
        for axis in range(len(along) - 1, -1, -1):
            if along[axis]:
                strides[axis] = step
                step *= self._of.space[axis - 1] if axis else 1
        outer, middle, row = [0] * self.data_level + [strides[axis] for axis in self._ends]
        return outer, middle, row

    # ---- the table ----

    def _finish(self) -> None:
        """Place intermediate values, and write the table."""
        wide, narrow = (_in_vectors(self.at_once * size * self._itemsize) for size in (self._size, 1))
        wide_bytes = self._pools.counts[True] * wide
        self.thread_bytes = wide_bytes + self._pools.counts[False] * narrow

        def placed(operand: Operand) -> Operand:
            if operand.base == SUMS:
                return operand._replace(part=self.sum_bytes)
            if operand.base != SCRATCH:
                return operand
            is_wide, number = bool(operand.stride), operand.place
            place = number * wide if is_wide else wide_bytes + number * narrow
            return operand._replace(place=place, stride=(self._size if is_wide else 1) * self._itemsize, thread=self.thread_bytes)

        table, bases = [], []
        for kind, size, *operands in self._lines:
            z, x, y = map(placed, operands)
            table.append([kind, size, self._is_joined(kind, size, z, x, y), *z[1:], *x[1:], *y[1:]])
            bases.append([z.base, x.base, y.base])
        self.table, self.bases = np.array(table, np.intp).reshape(-1, op.Y_AT + 7), np.array(bases, np.intp).reshape(-1, 3)

    def _is_joined(self, kind: int, size: int, z: Operand, x: Operand, y: Operand) -> bool:
        """Whether the rows of a group lie side by side."""
        width = size * self._itemsize
        alike = y.stride == (0 if kind in BY_NUMBER else width)
        return kind != op.ROW_SUM and z.stride == x.stride == width and alike


def _patterns(of: Expressions) -> list[Axes]:
    """The axes along which values, and the slots that they go to, have elements of their own: each combination once."""
    values = [*(x for value in of.values for x in (value, *value.operands)), *(value for _, value in of.stores)]
    slots = [*(value.slot for value in of.values if value.kind == TOTAL), *(slot for slot, _ in of.stores)]
    return list(dict.fromkeys([*(value.along for value in values), *map(of.along, slots)]))


class _Pools:
    """Places for intermediate values, rows and numbers, and which of them are free."""

    def __init__(self) -> None:
        self.counts = {True: 0, False: 0}
        self._free: dict[bool, list[Operand]] = {True: [], False: []}

    def take(self, is_wide: bool) -> Operand:
        if self._free[is_wide]:
            return self._free[is_wide].pop()
        self.counts[is_wide] += 1
        return Operand(SCRATCH, self.counts[is_wide] - 1, stride=int(is_wide))

    def give(self, operand: Operand) -> None:
        if operand.base == SCRATCH:
            self._free[bool(operand.stride)].append(operand)


def _in_vectors(nbytes: int) -> int:
    """Padded size for so many bytes: an odd number of vectors, so that values do not all map to the same cache lines."""
    return (-(-nbytes // VECTOR_BYTES) | 1) * VECTOR_BYTES
