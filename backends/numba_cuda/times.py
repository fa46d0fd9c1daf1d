"""Kernel for products with CSR rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.common.dtypes import is_half
from ...core.types.context import Context
from ...core.types.sparse import RowSparse, SparseRows
from .arrays import place, put, whole
from .csr import product, transposed_product


class TimesKernel:
    """``times`` and ``times_transpose`` for CSR rows and a parameter; other products fall back to the operator."""

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, left: Any, right: Any) -> bool:
        """Whether to fall back: for dense left operands, sums over several axes, right operands with rows or in float16."""
        is_parameter = not isinstance(right, SparseRows) and ctx.layouts[1] is None and right.ndim == 1 + op.output_rank
        return not isinstance(left, SparseRows) or not is_parameter or is_half(right.dtype)

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, left: Any, right: Any) -> None:
        if TimesKernel.declines(op, ctx, out, left, right):
            op.forward(ctx, out, left, right)
            return
        weights, result = op.right_matrix(ctx, right), place(ctx, "result", out)
        product(left.parts, weights, result.reshape(-1, weights.shape[1]))
        put(ctx, out, result)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, left: Any, right: Any) -> None:
        dleft, dright = grads
        if dright is None or TimesKernel.declines(op, ctx, out, left, right):
            op.backward(ctx, grad, grads, out, left, right)
            return
        width = op.right_matrix(ctx, right).shape[1]
        present, values = transposed_product(ctx.xp, left.parts, whole(ctx, "grad", grad).reshape(-1, width))
        if isinstance(dright, RowSparse):
            dright.set(present, values.reshape(len(present), *dright.shape[1:]))
        else:
            dright.fill(0)
            op.right_matrix(ctx, dright)[present] = values
        if dleft is not None:
            op.backward(ctx, grad, (dleft, None), out, left, right)
