"""Products of a few rows and a matrix, which is read once, as it lies in memory: packing it would take longer than multiplying.

Threads share columns.  Each element of the result is a sum in the order of the operands' elements, as in other products of as many terms,
so that a row is the same whatever rows are beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.machine.language import carray, prange
from ...core.machine.loops import loop
from .products import finish_row
from .tile import WIDE_BYTES, WIDE_ROWS, pointer, wide_tile


@loop("R1 q q q R1 ? (8)", takes_long=True)
def _multiply(like: Any, a: int, b: int, c: int, bias: Any, rectify: bool, sizes: Any) -> None:
    """Write a product.

    Args:
        like: an array of the common element type.
        a, b, c: addresses of the operands and the result.
        bias: what is added to each row of the result; empty for nothing.
        rectify: whether negative results then become zero.
        sizes: rows, depth and columns; how many bytes lie between rows and elements of a row of the first operand, between rows of the
            second one, and between rows of the result.
    """
    m, depth, n, a_stride, a_step, b_stride, c_stride, itemsize = sizes
    width = WIDE_BYTES // itemsize
    for part in prange((n + width - 1) // width):
        column = part * width
        known = min(width, n - column)
        for row in range(0, m, WIDE_ROWS):
            rows, to = min(WIDE_ROWS, m - row), c + row * c_stride + column * itemsize
            wide_tile(rows, a + row * a_stride, a_stride, a_step, b + column * itemsize, b_stride, depth, known, to, c_stride, like)
            if len(bias) > 0 or rectify:
                for i in range(rows):
                    target = carray(pointer(to + i * c_stride, like), known)
                    finish_row(target, target, known, False, bias[column : column + known], rectify)


def bound(left: Any, right: Any, out: Any, bias: Any = None, rectify: bool = False) -> Callable[[], None]:
    """A function that writes the product of *left* ``(m, depth)`` and *right* ``(depth, n)``, of whose rows elements lie side by side, to
    *out*, of which the same holds.

    Args:
        bias: an array of shape ``(n,)`` that is added to each row; None for none.
        rectify: whether negative results then become zero.
    """
    (m, n), depth, like = out.shape, left.shape[1], out.reshape(-1)[:0]
    sizes = m, depth, n, *left.strides, right.strides[0], out.strides[0], out.itemsize
    addresses = [array.ctypes.data for array in (left, right, out)]
    call = _multiply.bound(True, like, *addresses, like if bias is None else bias, rectify, sizes)
    call.arrays = left, right, out  # type: ignore[attr-defined]  # the loop knows their addresses alone
    return call
