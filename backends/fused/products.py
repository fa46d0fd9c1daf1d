"""Products of dense matrices, and of stacks of them, in compiled loops, with the bias, the residual and the rectifier that follow.

Threads share batches of columns and blocks of rows.  The columns are copied to panels, whose rows are contiguous; then a few rows at a
time are multiplied by one panel after another.  Each element of the result is a sum in an order that the sizes alone decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.common.threads import max_threads
from ...core.machine.language import copy_bytes, prange, slot
from ...core.machine.loops import loop
from ...core.types.context import Context
from . import packed
from .dense import DEPTH
from .followers import NOTHING, After
from .panels import apart, division, pack
from .pieces import address, in_turn
from .tile import GATHERS_ROWS, MOST_ROWS, PANEL_BYTES, VECTOR_BYTES, fetch, finished_tile

GATHERED = 8
"""Tiles of rows that are copied at a time, so that all of a cache line is."""

LEAST_APART, LEAST_READ = 256, 128
"""The fewest elements of a row that lie apart, and columns that they are multiplied by, for which the rows are copied first."""


@loop("R2 q q q R1 ? ? (16)", takes_long=True)
def _multiply(work: Any, a: int, b: int, c: int, bias: Any, of_rows: bool, rectify: bool, sizes: Any) -> None:
    """Write products of matrices.

    Args:
        work: a row for each thread, in which the panels of a batch fit.
        a, b, c: addresses of the operands and the result.
        bias: what is added to each row of the result, or to its columns if the numbers are *of_rows*; empty for nothing.
        rectify: whether negative results then become zero.
        sizes: number of products; rows, depth and columns of each; the columns of a batch and the rows of a block, which are multiplied by
            it; how many bytes lie between products, tiles of rows, rows of a tile and elements of a row of the first operand, between
            products, rows and elements of a row of the second one, and between products and rows of the result; and the bytes from a
            result to what is added to it after the bias, 0 for nothing.
    """
    count, m, depth, n, batch, block, a_next, a_tile, a_stride, a_step, b_next, b_stride, b_step, c_next, c_stride, residual = sizes
    itemsize = work.itemsize
    width = PANEL_BYTES // itemsize
    parts, batches, blocks = (depth + DEPTH - 1) // DEPTH, (n + batch - 1) // batch, (m + block - 1) // block
    panels, packed = address(work, slot() * work.shape[1]), -1
    for number in prange(count * batches * blocks):
        product, first = number // (batches * blocks), number % blocks * block
        last, begin_column = min(m, first + block), number // blocks % batches * batch
        end_column = min(n, begin_column + batch)
        for part in range(parts):
            begin, end = depth * part // parts, depth * (part + 1) // parts
            if number // blocks * parts + part != packed:
                packed = number // blocks * parts + part
                pack(panels, b + product * b_next + begin * b_stride, b_stride, b_step, end - begin, begin_column, end_column, work)
            is_last = part == parts - 1
            for row in range(first, last, MOST_ROWS):
                rows, left = min(MOST_ROWS, last - row), a + product * a_next + row // MOST_ROWS * a_tile + begin * a_step
                for column in range(begin_column, end_column, width):
                    known, to = min(width, end_column - column), c + product * c_next + row * c_stride + column * itemsize
                    for line in range(2 * rows):
                        fetch(to + line // 2 * c_stride + line % 2 * VECTOR_BYTES)
                    added = address(bias, row if of_rows else column) if is_last and len(bias) > 0 else 0
                    panel = panels + (column - begin_column) // width * (end - begin) * PANEL_BYTES
                    finished_tile(
                        rows, left, a_stride, a_step, panel, end - begin, to, c_stride, known,
                        part > 0, added, of_rows, residual if is_last else 0, rectify and is_last, work,
                    )  # fmt: skip


@loop("q q (3) R1")
def _gather(a: int, tiles: int, sizes: Any, like: Any) -> None:
    """Copy rows whose elements lie apart, those of one column side by side, to tiles of :data:`MOST_ROWS`, column after column.

    Args:
        a, tiles: addresses of the rows, and of memory for the tiles.
        sizes: how many rows there are, and elements of one; and how many bytes lie between these.
    """
    m, depth, a_step = sizes
    row_bytes = like.itemsize
    tile_bytes = MOST_ROWS * row_bytes
    count = (m + MOST_ROWS - 1) // MOST_ROWS
    for some in prange((count + GATHERED - 1) // GATHERED):
        first, last = some * GATHERED, min(count, (some + 1) * GATHERED)
        for column in range(depth):
            for tile in range(first, last):
                source, target = a + column * a_step + tile * tile_bytes, tiles + (tile * depth + column) * tile_bytes
                if (tile + 1) * MOST_ROWS <= m:
                    copy_bytes(target, source, tile_bytes)
                else:
                    copy_bytes(target, source, (m - tile * MOST_ROWS) * row_bytes)


def bound(ctx: Context, left: Any, right: Any, out: Any, after: After = NOTHING, of_rows: bool = False) -> Callable[[], None]:
    """A function that writes the product of matrices *left* ``(m, depth)`` and *right* ``(depth, n)``, or of stacks of such, to *out*, of
    which rows or columns are contiguous.

    Args:
        after: what follows, with a bias of shape ``(n,)`` that is added to each row.
        of_rows: whether the bias has the shape ``(m,)`` and is added to each column.
    """
    distance = after.distance(out)
    if out.strides[-1] != out.itemsize:
        left, right, out, of_rows = right.swapaxes(-1, -2), left.swapaxes(-1, -2), out.swapaxes(-1, -2), not of_rows
    tiles = _tiles(ctx, left, right)
    read, strides = (left, apart(left)) if tiles is None else (tiles, (tiles.strides[0], tiles.strides[2], tiles.strides[1]))
    (m, n), depth, count = out.shape[-2:], left.shape[-1], 1 if out.ndim == 2 else len(out)
    divided = division(count, m, depth, -(-n // (PANEL_BYTES // out.itemsize)), max_threads())
    calls = [] if tiles is None else [_gather.bound(True, *_gathering(left, tiles))]
    if out.ndim == 2 and depth <= DEPTH and divided[1] > 1:  # else each thread that has a block would pack the same columns
        calls += packed.bound_calls(ctx, read, right, out, packed.sizes_of(out, depth, divided, strides, distance), after, of_rows)
    else:
        arguments = _arguments(ctx, read, right, out, divided, after, of_rows, distance, strides)
        calls.append(_multiply.bound(True, *arguments, most=len(arguments[0])))  # there may be more threads by the time it is called
    call = calls[0] if len(calls) == 1 else in_turn(*calls)
    call.arrays = left, right, out, tiles, after.residual  # type: ignore[attr-defined]  # the loops know their addresses alone
    return call


def _tiles(ctx: Context, left: Any, right: Any) -> Any:
    """Memory for the first operand in tiles; None where it is read as it lies.

    Where elements of its rows lie apart, each is in a cache line of its own, and many of these have the same place in a cache.
    """
    (m, depth), n = left.shape[-2:], right.shape[-1]
    if not GATHERS_ROWS or left.ndim == 3 or left.strides[0] != left.itemsize or depth < LEAST_APART or n < LEAST_READ:
        return None
    return ctx.scratch("tiles", (-(-m // MOST_ROWS), depth, MOST_ROWS), left.dtype)


def _gathering(left: Any, tiles: Any) -> tuple[Any, ...]:
    """The arguments of :func:`_gather`."""
    return left.ctypes.data, tiles.ctypes.data, (*left.shape, left.strides[1]), tiles.reshape(-1)[:0]


def _arguments(
    ctx: Context, left: Any, right: Any, out: Any, divided: tuple[int, int], after: After, of_rows: bool, distance: int,
    strides: tuple[int, int, int],
) -> tuple[Any, ...]:  # fmt: skip
    """The arguments of :func:`_multiply`."""
    (m, n), depth, (panels, blocks), width = out.shape[-2:], right.shape[-2], divided, PANEL_BYTES // out.itemsize
    work = ctx.scratch("panels", (max_threads(), min(depth, DEPTH) * panels * width), out.dtype)
    block = -(-m // (blocks * MOST_ROWS)) * MOST_ROWS
    (a_next, *_), b_strides, c_strides = (array.strides if array.ndim == 3 else (0, *array.strides) for array in (left, right, out))
    count = 1 if out.ndim == 2 else len(out)
    sizes = count, m, depth, n, panels * width, block, a_next, *strides, *b_strides, *c_strides[:-1], distance
    addresses = [array.ctypes.data for array in (left, right, out)]
    return work, *addresses, after.bias_or(work[0, :0]), of_rows, after.rectify, sizes
