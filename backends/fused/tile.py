"""The hearts of products of matrices, with sums in registers: rows times a panel of columns, and dots of rows with rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .language import means
from .processor import level

_IS_WIDE = level() == "x86-64-v4"

VECTOR_BYTES = 64 if _IS_WIDE else 32
PANEL_BYTES = 2 * VECTOR_BYTES
"""Bytes of a row of a panel: two vectors."""

MOST_ROWS = 8 if _IS_WIDE else 6
"""Rows that are multiplied at once: as many as there are registers for their sums."""

DOT_ROWS, DOT_COLUMNS = (4, 6) if _IS_WIDE else (3, 4)
"""Rows whose dots with as many others are computed at once."""


def tile(rows: int, a: int, a_stride: int, a_step: int, b: int, depth: int, c: int, c_stride: int, like: Any) -> None:
    """Multiply rows by a panel; in compiled code only.

    Each element of the result is a sum in the order of the operands' elements, whatever the number of rows.

    Args:
        rows: how many, from 1 to :data:`MOST_ROWS`.
        a, a_stride, a_step: address of the rows' first element, and the bytes from one row, and from one element of a row, to the next.
        b: address of the panel.
        depth: how many products are added up.
        c, c_stride: address of the result, whose rows are as long as the panel's, and the bytes from one row to the next.
        like: an array of the type that all is in.
    """
    raise NotImplementedError("tile is called from compiled code only")


def gathered_tile(
    is_half: bool, rows: int, a: int, a_stride: int, b: int, places: int, depth: int, c: int, c_stride: int, like: Any
) -> None:  # fmt: skip
    """Multiply rows by a panel whose rows lie here and there.

    Args:
        is_half: whether the panel is half as wide as others, one vector.
        rows, a, a_stride, depth, c, c_stride, like: as for :func:`tile`; elements of a row lie side by side.
        b: an address.
        places: address of a table that tells for each row of the panel how many bytes behind *b* it lies.
    """
    raise NotImplementedError("gathered_tile is called from compiled code only")


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
    raise NotImplementedError("strided_tile is called from compiled code only")


def dots(a: int, a_places: int, b: int, b_places: int, runs: int, count: int, c: int, c_stride: int, like: Any) -> None:
    """Add the dots of :data:`DOT_ROWS` rows with :data:`DOT_COLUMNS` others to a matrix.

    Args:
        a, a_places: an address, and that of a table that tells for each row how many bytes behind it lies.
        b, b_places: the same for the other rows.
        runs, count: address of a table of runs of elements that are looked at: the first one's bytes behind where rows begin, and a
            number of vectors; and how many runs there are.
        c, c_stride: address of the matrix, and the bytes from one of its rows to the next.
        like: an array of the type that all is in.
    """
    raise NotImplementedError("dots is called from compiled code only")


def turn(source: int, stride: int, target: int, like: Any) -> None:
    """Transpose a square with as many rows as a vector has elements, into a panel; in compiled code only.

    Args:
        source, stride: address of the square, and the bytes from one row to the next.
        target: address of the first of its columns in the panel.
        like: an array of the type that all is in.
    """
    raise NotImplementedError("turn is called from compiled code only")


def fetch(address: int) -> None:
    """Have what lies at an address brought into the cache, to be written to soon; in compiled code only."""
    raise NotImplementedError("fetch is called from compiled code only")


def take_alternate(target: int, source: int, size: int, like: Any) -> None:
    """Copy so many elements, every second one from an address; in compiled code only."""
    raise NotImplementedError("take_alternate is called from compiled code only")


def put_alternate(target: int, source: int, size: int, like: Any) -> None:
    """Copy so many elements to every second one from an address; in compiled code only."""
    raise NotImplementedError("put_alternate is called from compiled code only")


def pointer(address: int, like: Any) -> Any:
    """A pointer to elements of the type of an array, from an address; in compiled code only."""
    raise NotImplementedError("pointer is called from compiled code only")


def spare(like: Any) -> int:
    """The address of memory for a tile, for as long as the function that asks for it runs; in compiled code only."""
    raise NotImplementedError("spare is called from compiled code only")


@means(tile)
def _tile(
    rows: Any, a: Any, a_stride: Any, a_step: Any, b: Any, depth: Any, c: Any, c_stride: Any, like: Any
) -> Callable[..., Any]:  # fmt: skip
    from .tile_code import tile

    def call(rows, a, a_stride, a_step, b, depth, c, c_stride, like):  # type: ignore[no-untyped-def]
        tile(rows, a, a_stride, a_step, b, depth, c, c_stride, like)

    return call


@means(gathered_tile)
def _gathered_tile(
    is_half: Any, rows: Any, a: Any, a_stride: Any, b: Any, places: Any, depth: Any, c: Any, c_stride: Any, like: Any
) -> Callable[..., Any]:  # fmt: skip
    from .tile_code import gathered_tile

    def call(is_half, rows, a, a_stride, b, places, depth, c, c_stride, like):  # type: ignore[no-untyped-def]
        gathered_tile(is_half, rows, a, a_stride, b, places, depth, c, c_stride, like)

    return call


@means(strided_tile)
def _strided_tile(
    is_half: Any, adds: Any, rows: Any, a: Any, a_stride: Any, a_step: Any, b: Any, b_stride: Any, depth: Any,
    c: Any, c_stride: Any, like: Any,
) -> Callable[..., Any]:  # fmt: skip
    from .tile_code import strided_tile

    def call(is_half, adds, rows, a, a_stride, a_step, b, b_stride, depth, c, c_stride, like):  # type: ignore[no-untyped-def]
        strided_tile(is_half, adds, rows, a, a_stride, a_step, b, b_stride, depth, c, c_stride, like)

    return call


@means(dots)
def _dots(a: Any, a_places: Any, b: Any, b_places: Any, runs: Any, count: Any, c: Any, c_stride: Any, like: Any) -> Callable[..., Any]:
    from .tile_code import dots

    return lambda a, a_places, b, b_places, runs, count, c, c_stride, like: dots(a, a_places, b, b_places, runs, count, c, c_stride, like)


@means(turn)
def _turn(source: Any, stride: Any, target: Any, like: Any) -> Callable[..., Any]:
    from .tile_code import turn

    return lambda source, stride, target, like: turn(source, stride, target, like)


@means(fetch)
def _fetch(address: Any) -> Callable[..., Any]:
    from .tile_code import fetch

    return lambda address: fetch(address)


@means(take_alternate)
def _take_alternate(target: Any, source: Any, size: Any, like: Any) -> Callable[..., Any]:
    from .tile_code import take_alternate

    return lambda target, source, size, like: take_alternate(target, source, size, like)


@means(put_alternate)
def _put_alternate(target: Any, source: Any, size: Any, like: Any) -> Callable[..., Any]:
    from .tile_code import put_alternate

    return lambda target, source, size, like: put_alternate(target, source, size, like)


@means(spare)
def _spare(like: Any) -> Callable[..., Any]:
    from .tile_code import spare

    return lambda like: spare(like)


@means(pointer)
def _pointer(address: Any, like: Any) -> Callable[..., Any]:
    from .tile_code import pointer

    return lambda address, like: pointer(address, like)
