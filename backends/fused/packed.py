"""Products with matrices that have been copied to panels before, as parameters are between their updates.

Each element of the result is the sum that :mod:`.products` computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.common.threads import max_threads
from ...core.common.thresholds import is_offered, thresholds
from ...core.machine.language import carray, jittable, prange
from ...core.machine.loops import loop
from ...core.machine.pool import PIECES
from ...core.types.context import Context
from .dense import DEPTH
from .followers import NOTHING, After
from .panels import FEW_ROWS, apart, division, pack
from .pieces import address, finish_row, in_turn
from .tile import MOST_ROWS, PANEL_BYTES, PANELS, VECTOR_BYTES, fetch, finished_tile, panels_at_once, panels_tile, pointer

ROWS_OUTSIDE = 64
"""Rows of a block from which on some rows meet all panels before the next rows do; fewer meet a panel while that is in the cache."""

PACKED_AT_ONCE = 128
"""Rows of a panel that a thread fills at a time."""


@loop("R1 q R1 (4)")
def _pack(panels: Any, b: int, like: Any, sizes: Any) -> None:
    """Copy a matrix to panels: for each part of the depth one panel after another.

    Args:
        b: address of the matrix.
        like: an array of the common element type.
        sizes: depth and columns; how many bytes lie between rows, and between elements of a row.
    """
    depth, n, b_stride, b_step = sizes
    width = PANEL_BYTES // like.itemsize
    parts, columns = (depth + DEPTH - 1) // DEPTH, (n + width - 1) // width
    pieces = ((depth + parts - 1) // parts + PACKED_AT_ONCE - 1) // PACKED_AT_ONCE  # of a part
    for number in prange(parts * columns * pieces):
        part, panel, piece = number // (columns * pieces), number // pieces % columns, number % pieces
        begin, end = depth * part // parts, depth * (part + 1) // parts
        row, column = begin + piece * PACKED_AT_ONCE, panel * width
        to = address(panels, 0) + (begin * columns + panel * (end - begin) + row - begin) * PANEL_BYTES
        pack(to, b + row * b_stride, b_stride, b_step, min(end - row, PACKED_AT_ONCE), column, min(n, column + width), like)


@loop("R1 q q R1 ? ? (11)", takes_long=True)
def _multiply(panels: Any, a: int, c: int, bias: Any, of_rows: bool, rectify: bool, sizes: Any) -> None:
    """Write a product.

    Args:
        panels: the second operand.
        a, c: addresses of the first operand and the result.
        bias: what is added to each row of the result, or to its columns if the numbers are *of_rows*; empty for nothing.
        rectify: whether negative results then become zero.
        sizes: rows, depth and columns; the columns of a batch and the rows of a block, which are multiplied by it; how many bytes lie
            between tiles of rows, rows of a tile and elements of a row of the first operand, and between rows of the result; whether rows
            are outside; and the bytes from a result to what is added to it after the bias, 0 for nothing.
    """
    m, depth, n, batch, block, a_tile, a_stride, a_step, c_stride, rows_outside, residual = sizes
    itemsize = panels.itemsize
    width = PANEL_BYTES // itemsize
    parts, batches, blocks = (depth + DEPTH - 1) // DEPTH, (n + batch - 1) // batch, (m + block - 1) // block
    of_row = (n + width - 1) // width * PANEL_BYTES
    for number in prange(batches * blocks):
        first, begin_column = number // batches * block, number % batches * batch
        last = min(m, first + block)
        if last - first <= len(PANELS) and PANELS[last - first - 1] > 1 and a_step == itemsize and not of_rows:
            left, to = a + first // MOST_ROWS * a_tile, c + first * c_stride
            _multiply_few(
                panels, left, a_stride, last - first, depth, n, begin_column, min(n, begin_column + batch), to, c_stride,
                bias, residual, rectify,
            )  # fmt: skip
            continue
        tiles, columns = (last - first + MOST_ROWS - 1) // MOST_ROWS, (min(n, begin_column + batch) - begin_column + width - 1) // width
        for part in range(parts):
            begin, end = depth * part // parts, depth * (part + 1) // parts
            is_last = part == parts - 1
            for one in range(tiles * columns):
                tile, panel = (one // columns, one % columns) if rows_outside else (one % tiles, one // tiles)
                row, column = first + tile * MOST_ROWS, begin_column + panel * width
                rows, known = min(MOST_ROWS, last - row), min(width, n - column)
                left, to = a + row // MOST_ROWS * a_tile + begin * a_step, c + row * c_stride + column * itemsize
                right = address(panels, begin * of_row // itemsize) + column // width * (end - begin) * PANEL_BYTES
                for line in range(2 * rows):
                    fetch(to + line // 2 * c_stride + line % 2 * VECTOR_BYTES)
                added = address(bias, row if of_rows else column) if is_last and len(bias) > 0 else 0
                finished_tile(
                    rows, left, a_stride, a_step, right, end - begin, to, c_stride, known,
                    part > 0, added, of_rows, residual if is_last else 0, rectify and is_last, panels,
                )  # fmt: skip


@jittable
def _multiply_few(
    panels: Any, a: int, a_stride: int, rows: int, depth: int, n: int, begin_column: int, end_column: int, c: int, c_stride: int,
    bias: Any, residual: int, rectify: bool,
) -> None:  # fmt: skip
    """Multiply a few rows by several panels at once."""
    itemsize = panels.itemsize
    width = PANEL_BYTES // itemsize
    parts, of_row = (depth + DEPTH - 1) // DEPTH, (n + width - 1) // width * PANEL_BYTES
    for part in range(parts):
        begin, end = depth * part // parts, depth * (part + 1) // parts
        step = (end - begin) * PANEL_BYTES
        column = begin_column
        while column < end_column:
            count = panels_at_once(rows, end_column - column, width)
            known = min(count * width, end_column - column)
            right, to = address(panels, begin * of_row // itemsize) + column // width * step, c + column * itemsize
            panels_tile(
                part > 0, rows, count, a + begin * itemsize, a_stride, right, step, end - begin, known, to, c_stride, to, c_stride, panels
            )
            column += count * width
    if len(bias) > 0 or residual != 0 or rectify:
        for row in range(rows):
            target = carray(pointer(c + row * c_stride + begin_column * itemsize, panels), end_column - begin_column)
            finish_row(target, bias[begin_column:end_column], residual, rectify)


def panels(ctx: Context, operand: int, matrix: Any) -> Any:
    """The panels of a matrix that seldom changes, ``(depth, n)``; None if it is another in each run.

    Args:
        operand: which of the operator's operands it is.
    """
    depth, n = matrix.shape
    width = PANEL_BYTES // matrix.itemsize
    return ctx.prepared(operand, matrix, f"panels {matrix.strides}", (depth * (-(-n // width)) * width,), matrix.dtype, _fill)


def _fill(target: Any, matrix: Any) -> None:
    _pack.run(*_packing(target, matrix))


def _packing(target: Any, matrix: Any) -> tuple[Any, ...]:
    """Whether threads share the packing of a matrix, and its arguments."""
    return matrix.size >= thresholds.elements_shared, target, matrix.ctypes.data, target[:0], (*matrix.shape, *matrix.strides)


def bound_by_rows(ctx: Context, left: Any, right: Any, out: Any, after: After = NOTHING) -> Callable[[], None]:
    """A function that writes the product of *left* ``(m, depth)`` and *right* ``(depth, n)``, which has few columns and is packed first, to
    *out*, whose rows are contiguous; threads share rows, so that each is read once.

    Args:
        after: what follows, with a bias of shape ``(m,)`` that is added to each column.
    """
    divided = -(-out.shape[1] // (PANEL_BYTES // out.itemsize)), max_threads() * PIECES
    sizes = sizes_of(out, len(right), divided, apart(left), after.distance(out), rows_outside=False)
    call = in_turn(*bound_calls(ctx, left, right, out, sizes, after, True))
    call.arrays = left, right, out, after.residual  # type: ignore[attr-defined]  # the loops know their addresses alone
    return call


def bound_calls(
    ctx: Context, left: Any, right: Any, out: Any, sizes: tuple[int, ...], after: After, of_rows: bool
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Functions that pack *right* ``(depth, n)``, and that write the product of *left*, ``(m, depth)`` or in tiles, and what is packed to
    *out*, whose rows are contiguous; threads share the work of each.

    Args:
        sizes: the product's :func:`sizes_of`.
        after: what follows, with a bias of shape ``(n,)`` that is added to each row, or *of_rows*, ``(m,)``, to each column.
    """
    (depth, n), width = right.shape, PANEL_BYTES // out.itemsize
    target = ctx.scratch("packed", (depth * -(-n // width) * width,), out.dtype)
    addresses, bias = (left.ctypes.data, out.ctypes.data), after.bias_or(target[:0])
    return _pack.bound(*_packing(target, right)), _multiply.bound(True, target, *addresses, bias, of_rows, after.rectify, sizes)


def bound(left: Any, made: Any, out: Any, after: After = NOTHING) -> Callable[[], None]:
    """A function that writes the product of *left* ``(m, depth)`` and a matrix ``(depth, n)`` to *out*, whose rows are contiguous.

    Args:
        left, out: the operand and the result.
        made: the matrix's :func:`panels`.
        after: what follows, with a bias of shape ``(n,)`` that is added to each row.
    """
    (m, n), depth = out.shape, left.shape[1]
    multiplications = m * n * depth
    is_shared, offered = multiplications >= thresholds.product_row_shared, is_offered(multiplications, thresholds.product_row_shared)
    threads = max_threads() if offered else 1
    batch, blocks = division(1, m, depth, -(-n // (PANEL_BYTES // out.itemsize)), threads)
    blocks = max(blocks, min(threads, m // FEW_ROWS))  # threads get the same numbers of rows, whatever the columns of the last batch
    sizes, added = sizes_of(out, depth, (batch, blocks), apart(left), after.distance(out)), after.bias_or(made[:0])
    call = _multiply.bound(is_shared, made, left.ctypes.data, out.ctypes.data, added, False, after.rectify, sizes, offered=offered)
    call.arrays = left, made, out, after.residual  # type: ignore[attr-defined]  # the loop knows their addresses alone
    return call


def sizes_of(
    out: Any, depth: int, divided: tuple[int, int], strides: tuple[int, int, int], distance: int, rows_outside: bool | None = None
) -> tuple[int, ...]:
    """The sizes of a product with a packed matrix, as the loop takes them.

    Args:
        out, depth: the result, and how many terms its sums have.
        divided: the panels of a batch, and the blocks of rows.
        strides: how many bytes lie between tiles of rows, rows of a tile and elements of a row of the first operand.
        distance: the bytes from a result to what is added to it after the bias, 0 for nothing.
        rows_outside: whether some rows meet all panels before the next rows do; None where a block has many.
    """
    (m, n), (panels, blocks) = out.shape, divided
    block = -(-m // (blocks * MOST_ROWS)) * MOST_ROWS
    is_outside = block >= ROWS_OUTSIDE if rows_outside is None else rows_outside
    return m, depth, n, panels * (PANEL_BYTES // out.itemsize), block, *strides, out.strides[0], int(is_outside), distance
