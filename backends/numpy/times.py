"""Products with a sparse left operand on the CPU, by scipy.sparse; by compiled loops in the training of a large parameter."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core import plugins
from ...core.context import Context
from ...core.sparse import Parts, RowSparse, SparseRows

LOOPS = "Csr", "numpy"
"""The kernel that has the compiled loops."""

FUSED_FROM = 2**17
"""Elements of a parameter in training from which on compiled loops save more time than it takes to load them."""


class TimesKernel:
    """``times`` and ``times_transpose`` for CSR rows and a parameter; everything else is left to the operator."""

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, left: Any, right: Any) -> None:
        if not isinstance(left, SparseRows) or not _applies(op, ctx, left, right):
            op.forward(ctx, out, left, right)
            return
        weights = op.right_matrix(ctx, right)
        target = out.reshape(-1, weights.shape[1])
        loops = _loops_for(ctx, right)
        if not weights.flags.c_contiguous:  # SciPy would copy all of the transposed weights
            present, columns = np.unique(left.indices, return_inverse=True)
            target[...] = _matrix(left.parts, columns, len(present)) @ weights[present]
        elif loops is not None:
            loops.product(left.parts, weights, target)
        elif left.is_one_hot:
            np.take(weights, left.indices, axis=0, out=target, mode="clip")  # the default mode copies out first
            target *= left.data[:, None]
        else:
            target[...] = _matrix(left.parts, left.indices, len(weights)) @ weights

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, left: Any, right: Any) -> None:
        if not isinstance(left, SparseRows) or grads[1] is None or not _applies(op, ctx, left, right):
            op.backward(ctx, grad, grads, out, left, right)
            return
        dright = grads[1]
        width, columns = op.right_matrix(ctx, right).shape
        product = _transposed_product if (loops := _loops_for(ctx, right)) is None else loops.transposed_product
        present, values = product(left.parts, width, grad.reshape(-1, columns))
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


def _loops_for(ctx: Context, right: Any) -> Any:
    return _loops() if ctx.training and right.size >= FUSED_FROM else None


@lru_cache(maxsize=1)
def _loops() -> Any:
    """The loops that a plugin has registered; None if there are none."""
    try:
        return plugins.kernels.get(LOOPS) if LOOPS in plugins.kernels else None
    except ImportError as error:
        message = f"products with sparse operands are slower than they could be: their loops cannot be imported, {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return None


def _transposed_product(rows: Parts, width: int, dense: Any) -> tuple[Any, Any]:
    """The product of the rows, *width* columns wide, transposed: the numbers of its rows that entries contribute to, and these."""
    present, columns = np.unique(rows[1], return_inverse=True)
    return present, _matrix(rows, columns, len(present)).T @ dense


def _matrix(rows: Parts, columns: Any, width: int) -> Any:
    """The rows as a matrix, *width* columns wide, with other numbers of columns."""
    from scipy.sparse import csr_matrix

    data, _, indptr = rows
    return csr_matrix((data, columns, indptr), shape=(len(indptr) - 1, width), copy=False)
