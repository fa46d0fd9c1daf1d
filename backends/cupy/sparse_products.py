"""Products of sparse rows with a matrix that is the same for all rows, such as embeddings, and their gradients.

Nothing is read from the device: the gradient of the matrix, in the rows that occur, comes at a place that stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.types.context import Context
from ...core.types.sparse import RowSparse, RowsPlace, SparseRows
from . import csr


def is_of_rows(op: Any, ctx: Context, left: Any, right: Any) -> bool:
    """Whether the left operand is a sparse input, one axis is summed over, and the right one is a matrix, in row order, for all rows."""
    if not isinstance(left, SparseRows) or not left.has_columns or isinstance(right, SparseRows) or ctx.layouts[1] is not None:
        return False
    matrix = op.right_matrix(ctx, right)
    in_place = matrix.flags.c_contiguous and matrix.data.ptr == right.data.ptr
    return bool(in_place and len(matrix) == left.shape[-1] and right.dtype == left.dtype)


def multiply(op: Any, ctx: Context, out: Any, left: SparseRows, right: Any) -> None:
    """Write the product."""
    matrix = op.right_matrix(ctx, right)
    csr.product(left.parts, matrix, out.reshape(-1, matrix.shape[1]))()


def gradient_of_right(op: Any, ctx: Context, grad: Any, dright: Any, left: SparseRows, right: Any) -> Callable[[], None]:
    """Return a function that writes the gradient of the matrix."""
    width = op.right_matrix(ctx, right).shape[1]
    matrix = grad.reshape(-1, width)

    def write() -> None:
        columns = left.columns
        if isinstance(dright, RowSparse):
            room = ctx.keep("gradients of rows", (len(columns.numbers), *dright.shape[1:]), dright.dtype)
            dright.set_place(RowsPlace(left, room))
            csr.column_sums(columns, matrix, room.reshape(-1, width), by_number=False)()
        else:
            dright.fill(0)
            csr.column_sums(columns, matrix, op.right_matrix(ctx, dright), by_number=True)()

    return write


class EmbeddedTimesKernel:
    """An embedding and the product after it: all words are multiplied, as often as they occur, which no data decide."""

    recordable = recordable_sparse = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: SparseRows, table: Any, w: Any) -> None:
        op.multiply_all(ctx, out, x, table, w)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: SparseRows, table: Any, w: Any) -> None:
        op.multiply_all_back(ctx, grad, grads, out, x, table, w)
