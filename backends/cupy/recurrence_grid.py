"""How many blocks run through a recurrence, and what each of them has in shared memory.

Blocks beside each other in a row of the grid share the columns of all products and wait for each other; rows of the grid share the
sequences and never wait.  A block with all columns of all matrices waits for nobody, but reads more of matrices than one with few columns
and many rows.  The times of both are estimated in nanoseconds, from what an H100 takes; results depend on none of this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..recurrences.operations import Product
from ..recurrences.plan import Member, Plan, Wait
from .compiler import THREADS
from .recurrence_product import BUFFERS, chunk_of, pitch_of, reads, rows_of_threads

TILES = (1, 2, 4, 8, 16, 24, 32)
"""Rows that a block may have in shared memory at a time: a multiple of those of a thread."""

BARRIER = 1500.0
"""Time in which blocks wait for each other."""

READ = 4.7
"""Time in which each thread of a block reads four bytes of shared memory, 16 at a time."""

BYTES_OF_ROWS, BYTES_OF_COLUMNS = 40.0, 20.0
"""Bytes that reach a block in a nanosecond: rows by 16 bytes at a time, columns one by one."""

ELEMENT = 400.0
"""Time of a thread for an element of formulas."""

LONG = 16
"""Number of steps that a launch is taken to have if it has more than one."""


class Grid(NamedTuple):
    """The launch of a recurrence.

    Attributes:
        blocks, groups: blocks that share the columns, and groups of them that share the sequences.
        rows: rows of a tile.
        each: for each product, how many of these a thread has at a time.
        holds: whether blocks hold their columns of all matrices.
        width: how many times four columns a block brings at a time; 0 if it holds all.
        shared: bytes of shared memory of a block.
    """

    blocks: int
    groups: int
    rows: int
    each: tuple[int, ...]
    holds: bool
    width: int
    shared: int


class Room:
    """What blocks need and what they take, for the products of a plan.

    Args:
        plan: the plan.
        size: bytes of an element in registers.
        memory: bytes of shared memory that a block may have.
    """

    def __init__(self, plan: Plan, size: int, memory: int) -> None:
        self._plan, self._size, self._memory = plan, size, memory
        self._products = [(one, one.operation) for one in plan.members if isinstance(one.operation, Product)]
        self._units = [phase.members[0].unit for phase in plan.phases if not isinstance(phase.members[0].operation, Product)]

    @property
    def most_blocks(self) -> int:
        """Number of blocks, beside each other, beyond which some have nothing to do."""
        return max(one.unit for one in self._plan.members)

    def grid(self, blocks: int, groups: int, rows: int) -> Grid | None:
        """The launch of so many blocks; None if they have no room for the rows."""
        if not self._products:
            return Grid(blocks, groups, rows, (), True, 0, 0)
        chunk = chunk_of(self._size)
        each = tuple(rows_of_threads(rows, _fours(one, blocks), product.depth, self._size) for one, product in self._products)
        before = BUFFERS * rows * (chunk // 4 + 1) + THREADS * max(each)
        rest = self._memory // (4 * self._size) - before
        held = sum(_fours(one, blocks) * pitch_of(product.depth) for one, product in self._products)
        holds, brought = held <= rest, BUFFERS * pitch_of(chunk)
        width = 0 if holds else min(rest // brought, max(_fours(one, blocks) for one, _ in self._products))
        if not holds and width < 1:
            return None
        taken = before + (held if holds else width * brought)
        return Grid(blocks, groups, rows, each, holds, width, taken * 4 * self._size)

    def time(self, grid: Grid, sequences: int, is_long: bool) -> float:
        """The estimated time of a step with all sequences."""
        tiles = _quotient(sequences, grid.rows * grid.groups)
        of_tile = sum(
            READ * self._size * reads(grid.rows, _fours(one, grid.blocks), product.depth, each)
            + grid.rows * product.depth * product.left.itemsize / BYTES_OF_ROWS
            for (one, product), each in zip(self._products, grid.each, strict=True)
        )
        of_tile += sum(ELEMENT * _quotient(grid.rows * _quotient(unit, grid.blocks), THREADS) for unit in self._units)
        bytes_of_columns = sum(4 * _fours(one, grid.blocks) * product.depth * self._size for one, product in self._products)
        times_brought = (1 / LONG if is_long else 1) if grid.holds else tiles
        waits = sum(phase.wait == Wait.GRID for phase in self._plan.phases) if grid.blocks > 1 else 0
        return tiles * of_tile + bytes_of_columns / BYTES_OF_COLUMNS * times_brought + BARRIER * waits


def grid_for(plan: Plan, size: int, sequences: int, together: int, memory: int, is_long: bool) -> Grid:
    """Return the launch that is estimated to be the fastest; the arguments are those of :func:`grids_for`."""
    return grids_for(plan, size, sequences, together, memory, is_long)[0]


def grids_for(plan: Plan, size: int, sequences: int, together: int, memory: int, is_long: bool) -> list[Grid]:
    """Return possible launches, in the order of the time that they are estimated to take.

    Args:
        plan: the plan.
        size: bytes of an element in registers.
        sequences: the number of sequences.
        together: the maximum number of blocks.
        memory: bytes of shared memory that a block may have; 32 KiB are enough for any plan.
        is_long: whether a launch has many steps, or one.
    """
    room = Room(plan, size, memory)
    found = [grid for blocks, groups, rows in _shapes(sequences, together, room.most_blocks) if (grid := room.grid(blocks, groups, rows))]
    return sorted(found, key=lambda grid: (room.time(grid, sequences, is_long), grid.blocks, grid.groups))


def _shapes(sequences: int, together: int, most: int) -> Iterator[Sequence[int]]:
    """Yield numbers of blocks, groups of them and rows of a tile."""
    for rows in TILES:
        groups = min(_quotient(sequences, rows), together)
        limit = _quotient(most, _quotient(most, min(together // groups, most)))
        for blocks in sorted({*(1 << power for power in range(limit.bit_length())), limit}):
            yield blocks, groups, rows


def _fours(one: Member, blocks: int) -> int:
    """How many times four columns of a product a block has."""
    return _quotient(_quotient(one.unit, blocks) * one.columns_of_unit, 4)


def _quotient(count: int, of: int) -> int:
    """A quotient, rounded up."""
    return -(-count // of)
