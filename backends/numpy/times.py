"""Products with a sparse left operand on the CPU, by scipy.sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.context import Context
from ...core.sparse import RowSparse, SparseRows


class TimesKernel:
    """``times`` and ``times_transpose`` for CSR rows and a parameter; everything else is left to the operator."""

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, left: Any, right: Any) -> None:
        if not isinstance(left, SparseRows) or not _applies(op, ctx, left, right):
            op.forward(ctx, out, left, right)
            return
        weights = op.right_matrix(ctx, right)
        target = out.reshape(-1, weights.shape[1])
        if left.is_one_hot:
            np.take(weights, left.indices, axis=0, out=target, mode="clip")  # the default mode copies out first
            target *= left.data[:, None]
        elif weights.flags.c_contiguous:
            target[...] = _matrix(left, left.indices, len(weights)) @ weights
        else:  # SciPy would copy all of the transposed weights
            present, columns = np.unique(left.indices, return_inverse=True)
            target[...] = _matrix(left, columns, len(present)) @ weights[present]

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, left: Any, right: Any) -> None:
        if not isinstance(left, SparseRows) or grads[1] is None or not _applies(op, ctx, left, right):
            op.backward(ctx, grad, grads, out, left, right)
            return
        dright = grads[1]
        present, columns = np.unique(left.indices, return_inverse=True)
        rows = grad.reshape(-1, op.right_matrix(ctx, right).shape[1])
        values = _matrix(left, columns, len(present)).T @ rows
        if isinstance(dright, RowSparse):
            dright.set(present, values.reshape(len(present), *dright.shape[1:]))
        else:
            dright.fill(0)
            op.right_matrix(ctx, dright)[present] = values
        if grads[0] is not None:
            op.backward(ctx, grad, (grads[0], None), out, left, right)


def _applies(op: Any, ctx: Context, left: SparseRows, right: Any) -> bool:
    """Whether one axis is summed over, the right operand is the same for all rows, and SciPy knows the element type."""
    return type(right) is np.ndarray and ctx.layouts[1] is None and right.ndim == 1 + op.output_rank and right.dtype != np.float16


def _matrix(left: SparseRows, columns: Any, width: int) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix((left.data, columns, left.indptr), shape=(len(left.indptr) - 1, width), copy=False)
