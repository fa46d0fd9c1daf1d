"""Products of dense matrices, and of stacks of them, in compiled loops, with the bias, the residual and the rectifier that follow.

Threads share batches of columns and blocks of rows.  The columns are copied to panels, whose rows are contiguous; then a few rows at a
time are multiplied by one panel after another.  Each element of the result is a sum in an order that the sizes alone decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.common.threads import max_threads
from ...core.machine.language import carray, jittable, prange, slot
from ...core.machine.loops import loop
from ...core.machine.pool import PIECES
from ...core.types.context import Context
from .dense import DEPTH
from .followers import NOTHING, After
from .pieces import address
from .tile import MOST_ROWS, PANEL_BYTES, VECTOR_BYTES, fetch, finished_tile, pointer, turn

PANELS_BYTES = 2**18
"""Bytes of panels that stay in a processor's second cache."""

FEW_PANELS, FEW_ROWS, MORE_ROWS = 2, 32, 128
"""Panels of a batch, and rows of a block, that are not divided further: rows are read for each batch, and panels packed once by each thread
that has blocks of it; where there is more than one part of the depth, for each block."""

SUMMED = 64
"""Rows of a gradient that are summed one after another."""


@loop("R2 q q q R1 ? ? (15)", takes_long=True)
def _multiply(work: Any, a: int, b: int, c: int, bias: Any, of_rows: bool, rectify: bool, sizes: Any) -> None:
    """Write products of matrices.

    Args:
        work: a row for each thread, in which the panels of a batch fit.
        a, b, c: addresses of the operands and the result.
        bias: what is added to each row of the result, or to its columns if the numbers are *of_rows*; empty for nothing.
        rectify: whether negative results then become zero.
        sizes: number of products; rows, depth and columns of each; the columns of a batch and the rows of a block, which are multiplied by
            it; how many bytes lie between products, rows and elements of a row of the first operand, of the second one, and between
            products and rows of the result; and the bytes from a result to what is added to it after the bias, 0 for nothing.
    """
    count, m, depth, n, batch, block, a_next, a_stride, a_step, b_next, b_stride, b_step, c_next, c_stride, residual = sizes
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
                rows, left = min(MOST_ROWS, last - row), a + product * a_next + row * a_stride + begin * a_step
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


@jittable
def pack(panels: int, b: int, stride: int, step: int, depth: int, begin: int, end: int, like: Any) -> None:
    """Copy columns of a matrix to panels, the last of which is filled up with zeros.

    What lay there before would not change the result, but processors multiply numbers too small to be normal many times slower.
    """
    width = PANEL_BYTES // like.itemsize
    for column in range(begin, end, width):
        panel, known = panels + (column - begin) // width * depth * PANEL_BYTES, min(width, end - column)
        if step == like.itemsize:
            _copy(panel, b + column * step, stride, depth, known, like)
        else:
            _copy_turned(panel, b + column * step, stride, step, depth, known, like)


@jittable
def _copy(panel: int, b: int, stride: int, depth: int, known: int, like: Any) -> None:
    """Copy so many columns of a matrix."""
    width = PANEL_BYTES // like.itemsize
    for row in range(depth):
        source, target = carray(pointer(b + row * stride, like), width), carray(pointer(panel + row * PANEL_BYTES, like), width)
        if known == width:
            for column in range(width):
                target[column] = source[column]
        else:
            for column in range(known):
                target[column] = source[column]
            target[known:] = 0


@jittable
def _copy_turned(panel: int, b: int, stride: int, step: int, depth: int, known: int, like: Any) -> None:
    """Copy so many columns of a matrix whose columns lie one behind the other."""
    lanes = VECTOR_BYTES // like.itemsize
    whole = known // lanes * lanes
    turned = 0
    if stride == like.itemsize:
        turned = depth // lanes * lanes
        for row in range(0, turned, lanes):
            for column in range(0, whole, lanes):
                turn(b + column * step + row * stride, step, panel + row * PANEL_BYTES + column * like.itemsize, like)
    for row in range(depth):
        target = carray(pointer(panel + row * PANEL_BYTES, like), PANEL_BYTES // like.itemsize)
        for column in range(whole * (row < turned), known):
            target[column] = carray(pointer(b + row * stride + column * step, like), 1)[0]
        target[known:] = 0


@jittable
def finish_row(row: Any, bias: Any, residual: int, rectify: bool) -> None:
    """Apply to a row of a result what follows.

    Args:
        bias: what is added to the row; empty for nothing.
        residual: how many bytes behind each result lies what is then added to it; 0 for nothing.
        rectify: whether negative results then become zero.
    """
    if len(bias) > 0:
        for i in range(len(row)):
            row[i] += bias[i]
    if residual != 0:
        added = carray(pointer(address(row, 0) + residual, row), len(row))
        for i in range(len(row)):
            row[i] += added[i]
    if rectify:
        for i in range(len(row)):
            row[i] = row.dtype.type(0) if row[i] < 0 else row[i]


@loop("R2 R2 R2 R2")
def _cut_back(grad: Any, out: Any, cut: Any, sums: Any) -> None:
    """Write the gradient that a rectifier sends back, and the sum of some of its rows after the other."""
    zero, one = grad.dtype.type(0), grad.dtype.type(1)
    rows, columns = grad.shape
    for part in prange(len(sums)):
        total = sums[part]
        total[:] = 0
        for row in range(rows * part // len(sums), rows * (part + 1) // len(sums)):
            for i in range(columns):
                value = grad[row, i] * (one if out[row, i] > 0 else zero)
                cut[row, i] = value
                total[i] += value


def cut_back(ctx: Context, grad: Any, out: Any, bias_grad: Any) -> Any:
    """The gradient of what a rectifier with the result *out* was applied to, in scratch space.

    Args:
        bias_grad: where the sum of its rows goes.
    """
    columns = out.shape[-1]
    flat = out.reshape(-1, columns)
    cut = ctx.scratch("cut", out.shape, out.dtype)
    sums = ctx.scratch("sums", (-(-len(flat) // SUMMED), columns), out.dtype)
    _cut_back.run(True, grad.reshape(flat.shape), flat, cut.reshape(flat.shape), sums)
    np.add.reduce(sums, axis=0, out=bias_grad)
    return cut


def bound(ctx: Context, left: Any, right: Any, out: Any, after: After = NOTHING, of_rows: bool = False) -> Callable[[], None]:
    """A function that writes the product of matrices *left* ``(m, depth)`` and *right* ``(depth, n)``, or of stacks of such, to *out*, of
    which rows or columns are contiguous.

    Args:
        after: what follows, with a bias of shape ``(n,)`` that is added to each row.
        of_rows: whether the bias has the shape ``(m,)`` and is added to each column.
    """
    arguments = _arguments(ctx, left, right, out, after, of_rows)
    call = _multiply.bound(True, *arguments, most=len(arguments[0]))  # there may be more threads by the time it is called
    call.arrays = left, right, out, after.residual  # type: ignore[attr-defined]  # the loop knows their addresses alone
    return call


def _arguments(ctx: Context, left: Any, right: Any, out: Any, after: After, of_rows: bool) -> tuple[Any, ...]:
    distance = after.distance(out)
    if out.strides[-1] != out.itemsize:
        left, right, out, of_rows = right.swapaxes(-1, -2), left.swapaxes(-1, -2), out.swapaxes(-1, -2), not of_rows
    (m, n), depth, count = out.shape[-2:], left.shape[-1], 1 if out.ndim == 2 else len(out)
    width, threads = PANEL_BYTES // out.itemsize, max_threads()
    panels, blocks = division(count, m, depth, -(-n // width), threads)
    block = -(-m // (blocks * MOST_ROWS)) * MOST_ROWS
    work = ctx.scratch("panels", (threads, min(depth, DEPTH) * panels * width), out.dtype)
    strides = [stride for array in (left, right, out) for stride in (array.strides if array.ndim == 3 else (0, *array.strides))]
    sizes = count, m, depth, n, panels * width, block, *strides[:-1], distance
    addresses = [array.ctypes.data for array in (left, right, out)]
    return work, *addresses, after.bias_or(work[0, :0]), of_rows, after.rectify, sizes


def division(count: int, m: int, depth: int, panels: int, threads: int) -> tuple[int, int]:
    """The panels of a batch, and the blocks of rows: enough of both that whichever thread is free finds work.

    Batches come first, since each is packed once, as long as rows are multiplied by some panels while they are in the cache.
    """
    most = min(panels, max(1, PANELS_BYTES // (min(depth, DEPTH) * PANEL_BYTES)))
    wanted = -(-PIECES * threads // count) if threads > 1 else 1
    if -(-panels // most) < wanted:
        most = max(min(most, FEW_PANELS), panels // wanted)
    batches = -(-panels // most)
    few = FEW_ROWS if depth <= DEPTH else MORE_ROWS
    return most, min(-(-wanted // batches), max(1, m // few))
