"""How a grid works through the operations of a recurrence: who computes which columns, and where it must wait.

The columns of an operation are counted in units: unit u of an operation of width W and unit size U has the columns u, u + U, u + 2 U and so
on, as the gates of a cell have them.  A block owns some units, and the same for all operations of one unit size, so that only products,
which read whole rows, need what other blocks have written.  Sequences never meet, and rows keep their number from step to step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from math import gcd
from typing import Any, NamedTuple

from .operations import Formula, Operand, Operation, address_of

MOST_GROUPS = 16
"""The most columns of an operation that have the same unit: so often is its formula written."""

MOST_MEMORIES = 400
"""The most arrays that a kernel takes: its arguments must fit into 4 KiB."""


class Wait(IntEnum):
    """Whom threads wait for."""

    NOBODY = 0
    BLOCK = 1
    GRID = 2


class Columns(NamedTuple):
    """Columns of some memory.

    Attributes:
        memory: number of the memory.
        offset, width: the first column, and how many there are.
        shift: how many steps later their rows are.
        stride: columns of a row of the memory; 0 where it is the same at all steps.
    """

    memory: int
    offset: int
    width: int
    shift: int
    stride: int


class Memory(NamedTuple):
    """Memory that columns lie in.

    Attributes:
        array: an array that begins where it does.
        address: where that is.
        size: how many elements it has.
    """

    array: Any
    address: int
    size: int


class Member(NamedTuple):
    """An operation with its place.

    Attributes:
        operation: the operation.
        unit: its unit size.
        target: what it writes.
        reads: what it reads: a formula's operands in their order, a product's rows and its matrix.
    """

    operation: Operation
    unit: int
    target: Columns
    reads: tuple[Columns, ...]

    @property
    def columns_of_unit(self) -> int:
        """How many columns of the result have the same unit."""
        return self.target.width // self.unit


class Phase(NamedTuple):
    """Operations that threads do one after another for an element: a product, or formulas of one unit size.

    Attributes:
        wait: whom threads wait for before.
        members: the operations.
    """

    wait: Wait
    members: list[Member]


class Impossible(Exception):
    """Operations whose memory overlaps in a way that no order of blocks allows for."""


class Plan:
    """The phases of a step.

    Args:
        operations: the operations.

    Attributes:
        phases: what is done, in order.
        memories: the memories, in the order of their numbers.

    Raises:
        Impossible: memory overlaps.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        memories, unit = _Memories(operations), _unit(operations)
        self.members = [_member(operation, memories, unit or operation.target.width) for operation in operations]
        self.memories = memories.found
        if len(self.memories) > MOST_MEMORIES:
            raise Impossible
        self.phases = list(_phases(self.members))

    def within(self, arrays: Sequence[Any]) -> set[int]:
        """The memories that lie in any of the arrays."""
        extents = [(address_of(array), address_of(array) + array.nbytes) for array in arrays]
        addresses = [memory.address for memory in self.memories]
        return {number for number, address in enumerate(addresses) if any(begin <= address < end for begin, end in extents)}

    def blocks(self, slots: int) -> int:
        """How many blocks may share the columns: each computes *slots* columns of a product at a time, or as many units of a formula."""
        return max(-(-one.unit // -(-slots // one.columns_of_unit)) for one in self.members)


def operands_of(operation: Operation) -> Iterator[Operand]:
    """What an operation writes and reads."""
    yield operation.target
    yield from operation.reads.values() if isinstance(operation, Formula) else (operation.left, operation.matrix)


def _member(operation: Operation, memories: _Memories, unit: int) -> Member:
    target, *reads = map(memories.columns, operands_of(operation))
    made = Member(operation, unit, target, tuple(reads))
    writes, *others = _accesses(made, 0)
    if any(_wait_between(writes, read) for read in others):
        raise Impossible
    return made


# ---- memory ----


class _Memories:
    """Numbers the memory that operands lie in: columns of the same rows are in one memory.

    Numbers are in the order of the operations, so that they do not depend on where the memory is.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._itemsize = operations[0].target.itemsize
        self._numbers: dict[int, int] = {}
        self._first: dict[tuple[int, int], int] = {}
        self._arrays: dict[int, Any] = {}
        self._ends: dict[int, int] = {}
        first = stride = end = 0
        extents = {_extent(one): one.array for operation in operations for one in operands_of(operation)}
        for address, of_stride, size, rows in sorted(extents):
            if address >= end:
                first, stride, end = address, of_stride, address
                self._arrays[first] = extents[address, of_stride, size, rows]
            if of_stride != stride or (stride and address - first + size > stride * self._itemsize):
                raise Impossible
            end = max(end, address + (rows - 1) * stride * self._itemsize + size)
            self._first[address, stride], self._ends[first] = first, end

    @property
    def found(self) -> list[Memory]:
        """The memories in the order of their numbers."""
        return [Memory(self._arrays[first], first, (self._ends[first] - first) // self._itemsize) for first in self._numbers]

    def columns(self, operand: Operand) -> Columns:
        """An operand by the number of its memory."""
        first = self._first[operand.address, operand.stride]
        number = self._numbers.setdefault(first, len(self._numbers))
        return Columns(number, (operand.address - first) // self._itemsize, operand.width, operand.shift, operand.stride)


def _extent(operand: Operand) -> tuple[int, int, int, int]:
    """Address, stride, bytes of a row and rows of an operand."""
    return operand.address, operand.stride, operand.width * operand.itemsize, len(operand.array) if operand.stride else 1


# ---- units ----


def _unit(operations: Sequence[Operation]) -> int:
    """A unit size for all operations; 0 where each has one of its own."""
    widths = [operation.target.width for operation in operations]
    unit = gcd(*widths)
    return unit if max(widths) <= MOST_GROUPS * unit else 0


# ---- waiting ----


class _Access(NamedTuple):
    """Columns that an operation touches.

    Attributes:
        place: number of the operation.
        columns: the columns.
        unit: their unit size; 0 where a thread reads columns of others.
        writes: whether they are written.
        by_element: whether each thread has the elements that it has in formulas.
    """

    place: int
    columns: Columns
    unit: int
    writes: bool
    by_element: bool


def _accesses(member: Member, place: int) -> list[_Access]:
    is_formula, width = isinstance(member.operation, Formula), member.target.width
    found = [_Access(place, member.target, member.unit, True, is_formula)]
    for read in member.reads:
        own = is_formula and read.width == width
        found.append(_Access(place, read, member.unit if own else 0, False, is_formula))
    return found


def _overlap(one: Columns, other: Columns) -> bool:
    return one.offset < other.offset + other.width and other.offset < one.offset + one.width


def _wait_between(one: _Access, other: _Access) -> Wait:
    """Whom the second must wait for where both touch the same rows."""
    a, b = one.columns, other.columns
    if a.memory != b.memory or not (one.writes or other.writes) or not _overlap(a, b):
        return Wait.NOBODY
    if not one.unit or one.unit != other.unit or (a.offset - b.offset) % one.unit:
        return Wait.GRID
    return Wait.NOBODY if one.by_element and other.by_element else Wait.BLOCK


def _phases(members: Sequence[Member]) -> Iterator[Phase]:
    waits = _waits(members)
    together: Phase | None = None
    for member, wait in zip(members, waits, strict=True):
        is_formula = isinstance(member.operation, Formula)
        if together is not None and is_formula and wait == Wait.NOBODY and together.members[0].unit == member.unit:
            together.members.append(member)
            continue
        if together is not None:
            yield together
        together = Phase(wait, [member])
        if not is_formula:
            yield together
            together = None
    if together is not None:
        yield together


def _waits(members: Sequence[Member]) -> list[Wait]:
    """Whom threads wait for before each operation.

    What an operation touches *distance* steps after another, in the same rows, must find a barrier in between; all steps have the same.
    """
    waits = [Wait.NOBODY] * len(members)
    by_memory: dict[int, list[_Access]] = {}
    for place, member in enumerate(members):
        for access in _accesses(member, place):
            by_memory.setdefault(access.columns.memory, []).append(access)
    pairs = []
    for accesses in by_memory.values():
        for first in accesses:
            for second in accesses:
                distance = first.columns.shift - second.columns.shift
                wait = _wait_between(first, second)
                if wait and (distance > 0 or (distance == 0 and first.place < second.place)):
                    pairs.append((distance, second.place, first.place, wait))
    for distance, second_place, first_place, wait in sorted(pairs):
        between = waits[first_place + 1 : second_place + 1] if distance == 0 else [*waits[first_place + 1 :], *waits[: second_place + 1]]
        if distance > 1:
            between = waits
        if max(between, default=Wait.NOBODY) < wait:
            waits[second_place] = max(waits[second_place], wait)
    return waits


def of(operations: Sequence[Operation]) -> Plan | None:
    """The plan of operations; None where there is none."""
    try:
        return Plan(operations)
    except Impossible:
        return None
