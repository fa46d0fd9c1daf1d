"""Products on the CPU: with a sparse left operand by SciPy or, without it, by NumPy, or by compiled loops in the training of a large
parameter; dense ones by the BLAS or, where these are faster, by compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...core.common.dtypes import is_half
from ...core.common.sums import FEW, write_in_pieces
from ...core.common.thresholds import thresholds
from ...core.common.user_frame import warn_user
from ...core.extension import plugins
from ...core.extension.compiled import Unusable
from ...core.machine.blas import shares_small_products
from ...core.machine.first_calls import first_calls
from ...core.operators.epilogue import Epilogue, Step
from ...core.types.context import Context
from ...core.types.csr import csr_matrix_of
from ...core.types.sparse import Parts, RowSparse, SparseRows
from .engines import DenseProducts, SparseProducts
from .small_products import SmallProducts, call_all, pieces, size_of_pieces

SPARSE, DENSE = "Csr", "Products"
"""Names of the engines with the compiled loops."""


class TimesKernel:
    """``times`` and ``times_transpose`` for CSR rows and a parameter, and for large dense operands; the rest is left to the operator."""

    @staticmethod
    def takes(op: Any, steps: Sequence[Step]) -> int:
        """Element types of the loops for dense operands."""
        loops: DenseProducts | None = _loops(DENSE)
        return 0 if loops is None else loops.takes(steps)

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, left: Any, right: Any, epilogue: Epilogue | None = None) -> Callable[[], None] | None:
        """A function that multiplies these arrays; None for sparse ones."""
        if not type(left) is type(right) is np.ndarray:
            return None
        x, w, y = op.matrices(ctx, out, left, right)
        are_views = all(map(np.may_share_memory, (x, w, y), (left, right, out)))  # copies would keep the current values of the operands
        loops = _dense_loops(left, right)
        if are_views and loops is not None and loops.fits(x, w, y, ctx.seldom_changes(1)):
            return loops.bound(ctx, x, w, y, epilogue, 1)
        calls: list[Callable[[], Any]]
        if not are_views:
            calls = [partial(op.forward, ctx, out, left, right)]
        elif size := size_of_pieces(x, w, y):
            calls = [*pieces(x, w, y, size)]
        else:
            calls = [op.bound_product(ctx, x, w, y)]
        if epilogue is not None:
            calls += epilogue.calls(ctx, out)
        return calls[0] if len(calls) == 1 else partial(call_all, calls)

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, left: Any, right: Any, epilogue: Epilogue | None = None) -> None:
        if isinstance(left, SparseRows) and _applies(op, ctx, left, right):
            _sparse_product(op, ctx, out, left, right)
        else:
            call = TimesKernel.bind(op, ctx, out, left, right, epilogue)
            if call is not None:
                call()
                return
            op.forward(ctx, out, left, right)
        if epilogue is not None:
            epilogue.forward(ctx, out)

    @staticmethod
    def backward(
        op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, left: Any, right: Any, epilogue: Epilogue | None = None
    ) -> None:
        loops = _dense_loops(left, right)
        if epilogue is not None:
            grad = epilogue.backward(ctx, grad, out) if loops is None else loops.send_back(ctx, epilogue, grad, out)
        if isinstance(left, SparseRows) and grads[1] is not None and _applies(op, ctx, left, right):
            _sparse_gradient(op, ctx, grad, grads[1], left, right)
            if grads[0] is not None:
                op.backward(ctx, grad, (grads[0], None), out, left, right)
            return
        op.backward(ctx, grad, grads, out, left, right, SmallProducts(loops) if shares_small_products() else loops)


def _sparse_product(op: Any, ctx: Context, out: Any, left: SparseRows, right: Any) -> None:
    weights = op.right_matrix(ctx, right)
    target = out.reshape(-1, weights.shape[1])
    loops = _sparse_loops(ctx, right)
    if not weights.flags.c_contiguous:  # both would copy all of the transposed weights
        present, columns = np.unique(left.indices, return_inverse=True)
        _write_product(left.parts, columns, weights[present], target)
    elif loops is not None:
        loops.product(left.parts, weights, target)
    elif left.is_one_hot:
        np.take(weights, left.indices, axis=0, out=target, mode="clip")  # the default mode copies out first
        if not left.is_of_ones:
            target *= left.data[:, None]
    else:
        _write_product(left.parts, left.indices, weights, target)


def _sparse_gradient(op: Any, ctx: Context, grad: Any, dright: Any, left: SparseRows, right: Any) -> None:
    width, columns = op.right_matrix(ctx, right).shape
    product = _transposed_product if (loops := _sparse_loops(ctx, right)) is None else loops.transposed_product
    present, values = product(left.parts, width, grad.reshape(-1, columns))
    if isinstance(dright, RowSparse):
        dright.set(present, values.reshape(len(present), *dright.shape[1:]))
    else:
        dright.fill(0)
        op.right_matrix(ctx, dright)[present] = values


def _applies(op: Any, ctx: Context, left: SparseRows, right: Any) -> bool:
    """Whether one axis is summed over, the right operand is the same for all rows, and sparse matrices know the element type."""
    return type(right) is np.ndarray and ctx.layouts[1] is None and right.ndim == 1 + op.output_rank and not is_half(right.dtype)


def _sparse_loops(ctx: Context, right: Any) -> SparseProducts | None:
    return _loops(SPARSE) if ctx.training and right.size >= thresholds.sparse_product_compiled else None


def _dense_loops(left: Any, right: Any) -> DenseProducts | None:
    """The loops for dense operands, where these may be large enough."""
    are_dense = type(left) is np.ndarray and type(right) is np.ndarray
    if are_dense and left.size * right.size >= thresholds.product_considered and not first_calls.are_numpys():
        return _loops(DENSE)
    return None


@lru_cache(maxsize=2)
def _loops(name: str) -> Any:
    """The loops that a plugin has registered under a name; None if there are none."""
    try:
        return plugins.engines.get((name, "numpy")) if (name, "numpy") in plugins.engines else None
    except Unusable:
        return None
    except ImportError as error:
        message = f"products are slower than they could be: their loops cannot be imported, {error}"
        warn_user(message, RuntimeWarning)
        return None


def _transposed_product(rows: Parts, width: int, dense: Any) -> tuple[Any, Any]:
    """The product of the rows, *width* columns wide, transposed: the numbers of its rows that entries contribute to, and these."""
    present, columns = np.unique(rows[1], return_inverse=True)
    counts = np.bincount(columns) if len(columns) > FEW else None
    if counts is None or counts.max() <= FEW:
        return present, csr_matrix_of(rows[0], columns, rows[2], len(present)).T @ dense
    order = np.argsort(columns, kind="stable")
    row_of = np.repeat(np.arange(len(dense)), rows[2][1:] - rows[2][:-1])
    starts = np.concatenate(([0], np.cumsum(counts)))
    sums = np.empty((len(present), dense.shape[1]), dense.dtype)
    _write_product((rows[0][order], row_of[order], starts), row_of[order], dense, sums)
    return present, sums


def _write_product(rows: Parts, columns: Any, dense: Any, out: Any) -> None:
    """Write the product of rows, with other numbers of columns, and a matrix."""

    def write(starts: Any, sums: Any) -> None:
        sums[...] = csr_matrix_of(rows[0], columns, starts, len(dense)) @ dense

    write_in_pieces(np, rows[2], out, out.dtype, write)
