"""Kernel for the windows of convolutions along sequences: each tap gathers its rows, with zeros outside of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.types.context import Context
from .picking import NONE, pick
from .sequences import are_plain


class WindowsKernel:
    """Windows of contiguous operands.

    ``ctx.state`` holds the shape of the filters and the rank of a step, from which the operator makes index arrays.
    """

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, filters: Any, operand: Any) -> None:
        if not are_plain(operand, out):
            op.forward(ctx, out, filters, operand)
            return
        ctx.state = filters.shape, operand.ndim - 1
        taken = ctx.scratch("rows of a tap", (len(out), *operand.shape[1:]), out.dtype)
        for tap, rows in zip(op.taps(ctx, out), ctx.index_from(op.rows_met), strict=True):
            pick(NONE, operand, None, rows, taken)
            ctx.xp.copyto(tap, taken)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any) -> None:
        total = grads[1]
        if not isinstance(ctx.state, tuple) or not are_plain(grad, total):
            op.backward(ctx, grad, grads, out, filters, operand)
            return
        contiguous = ctx.scratch("gradient of a tap", (len(grad), *total.shape[1:]), grad.dtype)
        taken = ctx.scratch("rows of a tap", total.shape, total.dtype)
        total.fill(0)
        for tap, rows in zip(op.taps(ctx, grad), ctx.index_from(op.rows_that_meet), strict=True):
            ctx.xp.copyto(contiguous, tap)
            pick(NONE, contiguous, None, rows, taken)
            ctx.xp.add(total, taken, out=total)
