"""The inner loops of products of matrices, with sums in registers: rows times a panel of columns, and dots of rows with rows."""

from __future__ import annotations

from typing import Any

from ...core.machine.language import jittable, lowered_in
from ...core.machine.processor import level

_IS_WIDE = level() == "x86-64-v4"

VECTOR_BYTES = 64 if _IS_WIDE else 32
PANEL_BYTES = 2 * VECTOR_BYTES
"""Bytes of a row of a panel: two vectors."""

MOST_ROWS = 8 if _IS_WIDE else 6
"""Rows that are multiplied at once: as many as there are registers for their sums."""

GATHERS_ROWS = not _IS_WIDE
"""Whether rows whose elements lie apart are copied before they are multiplied by many columns: where a tile's element of each row is half a
cache line or more, that takes longer than it saves."""

PANEL_COUNTS = 4, 2, 1
PANELS = (4, 4, 2, 2, 1, 1, 1, 1) if _IS_WIDE else (4, 2, 1, 1, 1, 1)
"""How many panels may be multiplied at once, and the most for one row, two rows, and so on: sums enough that none waits for its last
multiplication to end."""

WIDE_ROWS = 4 if _IS_WIDE else 2
WIDE_BYTES = 4 * VECTOR_BYTES
"""Rows that are multiplied at once by columns that nobody has packed, and the bytes of a row of these: more columns and fewer rows, so that
memory is read in longer runs."""

DOT_ROWS, DOT_COLUMNS = (4, 6) if _IS_WIDE else (3, 4)
"""Rows whose dots with as many others are computed at once."""


@jittable
def panels_at_once(rows: int, columns: int, width: int) -> int:
    """How many panels of a width :func:`panels_tile` takes for so many rows and the columns that are left, and no more than there are."""
    panels = PANELS[rows - 1]
    while panels > 1 and (panels - 1) * width >= columns:
        panels //= 2
    return panels


@jittable
def tile(rows: int, a: int, a_stride: int, a_step: int, b: int, depth: int, c: int, c_stride: int, like: Any) -> None:
    """Multiply rows by a panel.

    Each element of the result is a sum in the order of the operands' elements, whatever the number of rows.

    Args:
        rows: how many, from 1 to :data:`MOST_ROWS`.
        a, a_stride, a_step: address of the rows' first element, and the bytes from one row, and from one element of a row, to the next.
        b: address of the panel.
        depth: how many products are added up.
        c, c_stride: address of the result, whose rows are as long as the panel's, and the bytes from one row to the next.
        like: an array of the common element type.
    """
    strided_tile(False, False, rows, a, a_stride, a_step, b, PANEL_BYTES, depth, c, c_stride, like)


@lowered_in("tile_code")
def panels_tile(
    adds: bool, rows: int, panels: int, a: int, a_stride: int, b: int, b_step: int, depth: int, columns: int, added: int,
    added_stride: int, c: int, c_stride: int, like: Any,
) -> None:  # fmt: skip
    """Multiply rows by several panels at once, and add a term to each result.

    Each result is the sum that :func:`tile` computes, with the term added at the end.

    Args:
        adds: whether there are terms.
        rows, a, a_stride, depth, c, c_stride, like: as for :func:`tile`; elements of a row lie side by side.
        panels: how many, one of :data:`PANEL_COUNTS` and for so many rows at most what :data:`PANELS` says.
        b, b_step: address of the first panel, and the bytes from one panel to the next.
        columns: how many there are, from 1 to as many as the panels have.
        added, added_stride: address of the terms, and the bytes from one row of them to the next.
    """


@lowered_in("tile_code")
def gathered_tile(
    apart: int, rows: int, a: int, a_stride: int, b: int, places: int, depth: int, c: int, c_stride: int, bias: int, residual: int,
    rectify: bool, like: Any,
) -> None:  # fmt: skip
    """Multiply rows by a panel whose rows are scattered, and finish the result while it is in registers.

    Args:
        apart: how many bytes the second vector of a row of the panel, and of the result, begins behind the first: fewer than a vector has
            if both have some columns; 0 if there is one vector alone.
        rows, a, a_stride, depth, c, c_stride, like: as for :func:`tile`; elements of a row lie side by side.
        b: an address.
        places: address of a table that tells for each row of the panel how many bytes behind *b* it lies.
        bias: address of a number for each row that is added to it; 0 for none.
        residual: how many bytes behind each result lies what is then added to it; 0 for nothing.
        rectify: whether negative results then become zero.
    """


@lowered_in("tile_code")
def pixels_tile(rows: int, a: int, a_places: int, b: int, places: int, depth: int, c: int, like: Any) -> None:
    """Multiply rows whose elements are scattered alike by a panel, and add the product to a panel.

    Args:
        rows, b, depth, c, like: as for :func:`tile`.
        a, a_places: an address, and that of a table that tells how many bytes behind it each row begins.
        places: address of a table that tells how many bytes behind that each element of a row lies.
    """


@lowered_in("tile_code")
def strided_tile(
    is_half: bool, adds: bool, rows: int, a: int, a_stride: int, a_step: int, b: int, b_stride: int, depth: int,
    c: int, c_stride: int, like: Any,
) -> None:  # fmt: skip
    """Multiply rows by a panel whose rows lie apart.

    Args:
        is_half: whether the panel is half as wide as others, one vector.
        adds: whether the product is added to what is there.
        rows, a, a_stride, a_step, depth, c, c_stride, like: as for :func:`tile`.
        b, b_stride: address of the panel, and the bytes from one of its rows to the next.
    """


@lowered_in("tile_code")
def finished_tile(
    rows: int, a: int, a_stride: int, a_step: int, b: int, depth: int, c: int, c_stride: int, columns: int,
    is_sum: bool, bias: int, of_rows: bool, residual: int, rectify: bool, like: Any,
) -> None:  # fmt: skip
    """Multiply rows by a panel, and finish the result while it is in registers.

    Args:
        rows, a, a_stride, a_step, b, depth, c, c_stride, like: as for :func:`tile`.
        columns: how many there are, from 1 to as many as a panel holds.
        is_sum: whether the product is added to what is there.
        bias: address of numbers that are added to each row, or of a number for each row if they are *of_rows*; 0 for none.
        residual: how many bytes behind each result lies what is then added to it; 0 for nothing.
        rectify: whether negative results then become zero.
    """


@lowered_in("tile_code")
def wide_tile(
    rows: int, a: int, a_stride: int, a_step: int, b: int, b_stride: int, depth: int, columns: int, c: int, c_stride: int, like: Any
) -> None:  # fmt: skip
    """Multiply a few rows by columns of a matrix as it lies in memory.

    Each element of the result is the sum that :func:`tile` computes.

    Args:
        rows: how many, from 1 to :data:`WIDE_ROWS`.
        a, a_stride, a_step, depth, c, c_stride, like: as for :func:`tile`.
        b, b_stride: address of the first column, and the bytes from one row of the matrix to the next; elements of a row lie side by side.
        columns: how many, from 1 to as many as :data:`WIDE_BYTES` hold.
    """


@lowered_in("tile_code")
def dots(a: int, a_places: int, b: int, b_places: int, runs: int, count: int, c: int, c_stride: int, like: Any) -> None:
    """Add the dots of :data:`DOT_ROWS` rows with :data:`DOT_COLUMNS` others to a matrix.

    Args:
        a, a_places: an address, and that of a table that tells for each row how many bytes behind it lies.
        b, b_places: the same for the other rows.
        runs, count: address of a table of runs of elements that are looked at: the first one's bytes behind where rows begin, and a
            number of vectors; and how many runs there are.
        c, c_stride: address of the matrix, and the bytes from one of its rows to the next.
        like: an array of the common element type.
    """


@lowered_in("tile_code")
def turn(source: int, stride: int, target: int, like: Any) -> None:
    """Transpose a square with as many rows as a vector has elements, into a panel.

    Args:
        source, stride: address of the square, and the bytes from one row to the next.
        target: address of the first of its columns in the panel.
        like: an array of the common element type.
    """


@lowered_in("tile_code")
def fetch(address: int) -> None:
    """Prefetch an address into the cache, for writing."""


@lowered_in("tile_code")
def fetch_to_read(address: int) -> None:
    """Prefetch an address into the cache, for reading, which other threads may do as well."""


@lowered_in("tile_code")
def take_alternate(target: int, source: int, size: int, like: Any) -> None:
    """Copy so many elements, every second one from an address."""


@lowered_in("tile_code")
def put_alternate(target: int, source: int, size: int, like: Any) -> None:
    """Copy so many elements to every second one from an address."""


@lowered_in("tile_code")
def pointer(address: int, like: Any) -> Any:
    """A pointer to elements of the type of an array, from an address."""
