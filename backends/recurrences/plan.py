"""Distribution of a recurrence's operations over the blocks of a grid, and the barriers that it requires.

The columns of an operation are divided into units: with unit size U, unit u consists of the columns u, u + U, u + 2 U and so on, as the
gates of a cell are laid out.  A block computes the same units in all operations of a unit size, so that only products, which read whole
rows, read what other blocks have written.  Sequences are independent of each other, and row i of every step is of the same sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from math import gcd
from typing import Any, NamedTuple

from .operations import Formula, Operand, Operation, address_of

MOST_GROUPS = 16
"""Maximum number of columns per unit; the source repeats a formula for each of them."""

MOST_MEMORIES = 400
"""Maximum number of arrays of a kernel, whose arguments must fit into 4 KiB."""


class Wait(IntEnum):
    """Scope of a barrier."""

    NOBODY = 0
    BLOCK = 1
    GRID = 2


class Columns(NamedTuple):
    """Columns of a memory.

    Attributes:
        memory: number of the memory.
        offset, width: first column, and number of columns.
        shift: how many steps ahead their rows are.
        stride: number of columns of the memory; 0 for memory without rows.
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
    """An operation and the columns that it accesses.

    Attributes:
        operation: the operation.
        unit: its unit size.
        target: the columns that it writes.
        reads: the columns that it reads: a formula's operands in order, or a product's rows and matrix.
    """

    operation: Operation
    unit: int
    target: Columns
    reads: tuple[Columns, ...]

    @property
    def columns_of_unit(self) -> int:
        """Number of columns of the result per unit."""
        return self.target.width // self.unit


class Phase(NamedTuple):
    """Operations without a barrier in between: a product, or formulas of one unit size.

    Attributes:
        wait: the barrier before them.
        members: the operations.
    """

    wait: Wait
    members: list[Member]


class Impossible(Exception):
    """Raised if memory of operations overlaps in a way that barriers cannot resolve."""


class Plan:
    """The phases of a step.

    Args:
        operations: the operations.

    Attributes:
        phases: what is done, in order.
        memories: the memories, in the order of their numbers.

    Raises:
        Impossible: memory overlaps, or there are too many memories.
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


def operands_of(operation: Operation) -> Iterator[Operand]:
    """Yield the operands of an operation, the one that it writes first."""
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
    """Numbering of the memory of operands; columns of the same rows belong to one memory.

    Numbers follow the order of the operations, so that the source does not depend on addresses.
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
        """Return an operand as columns of its memory."""
        first = self._first[operand.address, operand.stride]
        number = self._numbers.setdefault(first, len(self._numbers))
        return Columns(number, (operand.address - first) // self._itemsize, operand.width, operand.shift, operand.stride)


def _extent(operand: Operand) -> tuple[int, int, int, int]:
    """Return the address, stride, bytes per row and number of rows of an operand."""
    return operand.address, operand.stride, operand.width * operand.itemsize, len(operand.array) if operand.stride else 1


# ---- units ----


def _unit(operations: Sequence[Operation]) -> int:
    """Return a unit size for all operations; 0 if each must have its own."""
    widths = [operation.target.width for operation in operations]
    unit = gcd(*widths)
    return unit if max(widths) <= MOST_GROUPS * unit else 0


# ---- waiting ----


class _Access(NamedTuple):
    """An access of an operation to columns.

    Attributes:
        place: number of the operation.
        columns: the columns.
        unit: their unit size; 0 if threads read columns of other blocks.
        writes: whether they are written.
        by_element: whether threads access the same elements as in formulas.
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
    """Return the barrier that is required between two accesses to the same rows."""
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
    """Return the barrier before each operation; all steps have the same barriers.

    Between an access and another one to the same rows *distance* steps later there must be a barrier.
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
    """Return the plan of operations; None if there is none."""
    try:
        return Plan(operations)
    except Impossible:
        return None
