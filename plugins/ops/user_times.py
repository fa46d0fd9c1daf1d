"""CNTK's example of a native user function, a product whose weights come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.operators.native import NativeOp
from ...core.operators.op import ALL
from ...core.types.context import Context
from ...core.types.spec import Spec
from .dense_product import multiply


class UserTimes(NativeOp):
    """Product of the second operand, whose last axis is summed over, with the first, a matrix without dynamic axes."""

    op_name = "NativeUserTimesOp"
    keep_inputs = ALL

    def infer(self, *inputs: Spec) -> Spec:
        if len(inputs) != 2:
            raise ValueError(f"expected two operands, a matrix and what to multiply by it, got {len(inputs)}")
        weights, x = inputs
        if weights.rank != 2 or weights.axes:
            raise ValueError("the first operand must be a matrix without dynamic axes")
        if not x.dims or x.dims[-1] != weights.dims[0]:
            raise ValueError("the last dimension of the second operand must be the first of the first operand")
        return self.common(weights, x).but(shape=(*x.dims[:-1], weights.dims[1]))

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        weights, x = inputs
        ctx.xp.matmul(x, weights, out=out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        weights, x = inputs
        dweights, dx = grads
        if dweights is not None:
            multiply(ctx, x.reshape(-1, len(weights)).T, grad.reshape(-1, weights.shape[1]), dweights)
        if dx is not None:
            ctx.xp.matmul(grad, weights.T, out=dx)
