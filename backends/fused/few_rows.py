"""Products of a few rows and a matrix, which is read once, as it lies in memory: packing it would take longer than multiplying.

Threads share columns.  Each element of the result is a sum in the order of the operands' elements, as in other products of as many terms,
so that a row is the same whatever rows are beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.common.thresholds import thresholds
from ...core.machine.language import carray, jittable, prange
from ...core.machine.loops import loop
from .followers import NOTHING, After
from .pieces import finish_row
from .tile import WIDE_BYTES, WIDE_ROWS, pointer, wide_tile

LINES = 8
"""Rows of the matrix that are added at once to the product of one row."""

BLOCK = 256
"""Columns that a thread takes of a single row's product at a time, where several share them."""


@loop("R1 q q q R1 ? (9)", takes_long=True)
def _multiply(like: Any, a: int, b: int, c: int, bias: Any, rectify: bool, sizes: Any) -> None:
    """Write a product.

    Args:
        like: an array of the common element type.
        a, b, c: addresses of the operands and the result.
        bias: what is added to each row of the result; empty for nothing.
        rectify: whether negative results then become zero.
        sizes: rows, depth and columns; how many bytes lie between rows and elements of a row of the first operand, between rows of the
            second one, and between rows of the result; the bytes of an element, and those from a result to what is added to it after the
            bias, 0 for nothing.
    """
    m, depth, n, a_stride, a_step, b_stride, c_stride, itemsize, residual = sizes
    width = WIDE_BYTES // itemsize
    for part in prange((n + width - 1) // width):
        column = part * width
        known = min(width, n - column)
        for row in range(0, m, WIDE_ROWS):
            rows, to = min(WIDE_ROWS, m - row), c + row * c_stride + column * itemsize
            wide_tile(rows, a + row * a_stride, a_stride, a_step, b + column * itemsize, b_stride, depth, known, to, c_stride, like)
            if len(bias) > 0 or residual != 0 or rectify:
                for i in range(rows):
                    finish_row(carray(pointer(to + i * c_stride, like), known), bias[column : column + known], residual, rectify)


@loop("R1 q q q R1 ? (7)", takes_long=True)
def _multiply_one(like: Any, a: int, b: int, c: int, bias: Any, rectify: bool, sizes: Any) -> None:
    """Write the product of one row, a few rows of the matrix after the other, as processors read memory fastest.

    Args:
        like, a, b, c, bias, rectify: as for :func:`_multiply`.
        sizes: depth, columns, and columns that a thread takes at a time; how many bytes lie between elements of the row, and between rows
            of the matrix; the bytes of an element, and those to what is added to a result.
    """
    depth, n, block, a_step, b_stride, itemsize, residual = sizes
    for part in prange((n + block - 1) // block):
        column = part * block
        known = min(block, n - column)
        target = carray(pointer(c + column * itemsize, like), known)
        target[:] = 0
        for line in range(0, depth - depth % LINES, LINES):
            _add_lines(target, a + line * a_step, a_step, b + line * b_stride + column * itemsize, b_stride, known, like)
        for line in range(depth - depth % LINES, depth):
            _add_line(target, carray(pointer(a + line * a_step, like), 1)[0], b + line * b_stride + column * itemsize, known, like)
        if len(bias) > 0 or residual != 0 or rectify:
            finish_row(target, bias[column : column + known], residual, rectify)


@jittable(fastmath={"contract"})
def _add_lines(target: Any, a: int, a_step: int, b: int, b_stride: int, size: int, like: Any) -> None:
    """Add :data:`LINES` rows of the matrix, each times its element of the row."""
    x0, x1 = carray(pointer(a, like), 1)[0], carray(pointer(a + a_step, like), 1)[0]
    x2, x3 = carray(pointer(a + 2 * a_step, like), 1)[0], carray(pointer(a + 3 * a_step, like), 1)[0]
    x4, x5 = carray(pointer(a + 4 * a_step, like), 1)[0], carray(pointer(a + 5 * a_step, like), 1)[0]
    x6, x7 = carray(pointer(a + 6 * a_step, like), 1)[0], carray(pointer(a + 7 * a_step, like), 1)[0]
    w0, w1 = carray(pointer(b, like), size), carray(pointer(b + b_stride, like), size)
    w2, w3 = carray(pointer(b + 2 * b_stride, like), size), carray(pointer(b + 3 * b_stride, like), size)
    w4, w5 = carray(pointer(b + 4 * b_stride, like), size), carray(pointer(b + 5 * b_stride, like), size)
    w6, w7 = carray(pointer(b + 6 * b_stride, like), size), carray(pointer(b + 7 * b_stride, like), size)
    for i in range(size):
        total = target[i] + x0 * w0[i]
        total += x1 * w1[i]
        total += x2 * w2[i]
        total += x3 * w3[i]
        total += x4 * w4[i]
        total += x5 * w5[i]
        total += x6 * w6[i]
        total += x7 * w7[i]
        target[i] = total


@jittable(fastmath={"contract"})
def _add_line(target: Any, x: Any, b: int, size: int, like: Any) -> None:
    line = carray(pointer(b, like), size)
    for i in range(size):
        target[i] += x * line[i]


def bound(left: Any, right: Any, out: Any, after: After = NOTHING) -> Callable[[], None]:
    """A function that writes the product of *left* ``(m, depth)`` and *right* ``(depth, n)``, of whose rows elements lie side by side, to
    *out*, of which the same holds.

    Args:
        after: what follows, with a bias of shape ``(n,)`` that is added to each row.
    """
    (m, n), depth, like = out.shape, left.shape[1], out.reshape(-1)[:0]
    is_shared = m * n * depth >= thresholds.product_row_shared
    addresses = [array.ctypes.data for array in (left, right, out)]
    arguments, ends = (like, *addresses, after.bias_or(like), after.rectify), (out.itemsize, after.distance(out))
    if m == 1:
        sizes = depth, n, min(n, BLOCK) if is_shared else n, left.strides[1], right.strides[0], *ends
        call = _multiply_one.bound(is_shared, *arguments, sizes)
    else:
        call = _multiply.bound(is_shared, *arguments, (m, depth, n, *left.strides, right.strides[0], out.strides[0], *ends))
    call.arrays = left, right, out, after.residual  # type: ignore[attr-defined]  # the loop knows their addresses alone
    return call
