"""Kernels for delays: outside of recurrences each row of the result is a copy of a row of the operand or of the initial state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.common.shape import size_of
from ...core.types.context import Context
from .picking import NONE, ONE, ROWS, pick, put
from .sequences import are_plain, run


class DelayKernel:
    """``past_value`` and ``future_value`` of operands with the shape of the result.

    The initial state has one element or the shape of a step, for all sequences together or for each."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any, initial: Any) -> None:
        fill = _fill_of(ctx, out, initial)
        if fill == NONE or x.shape[1:] != out.shape[1:] or not are_plain(out, x, initial) or op.continues(ctx):
            op.forward(ctx, out, x, initial)
        else:
            pick(fill, x, initial, ctx.index_from(op.rows_read), out)

    @staticmethod
    def fill(op: Any, ctx: Context, out: Any, initial: Any) -> None:
        fill = _fill_of(ctx, out, initial)
        if fill == NONE or not are_plain(out, initial) or op.continues(ctx):
            op.fill(ctx, out, initial)
        else:
            put(fill, initial, ctx.index_from(op.rows_filled), out)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, initial: Any) -> None:
        dx, dinitial = grads
        if dinitial is not None and are_plain(grad, dinitial) and _is_summed(ctx, grad, dinitial) and not op.continues(ctx):
            outside = ctx.scratch("gradients outside", grad.shape, grad.dtype)
            pick(NONE, grad, None, ctx.index_from(op.rows_outside), outside)
            if ctx.layouts[1] is None:
                ctx.sum_to(outside, dinitial)
            else:
                run("sum", ctx, ctx.layout, outside, dinitial)
            dinitial = None
        if dx is not None and dx.shape == grad.shape and are_plain(grad, dx):
            pick(NONE, grad, None, ctx.index_from(op.rows_that_read), dx)
            dx = None
        if dx is not None or dinitial is not None:
            op.backward(ctx, grad, (dx, dinitial), out, x, initial)


def _is_summed(ctx: Context, grad: Any, dinitial: Any) -> bool:
    """Whether the gradient of an initial state is a sum over all rows, or over those of each sequence."""
    layout = ctx.layouts[1]
    return layout is None or (layout.lengths is None and dinitial.shape[1:] == grad.shape[1:])


def _fill_of(ctx: Context, out: Any, initial: Any) -> str:
    """Return the fill for rows that read outside of their sequence; NONE if the kernel does not support the shape of the initial state."""
    static = initial.shape if ctx.layouts[1] is None else initial.shape[1:]
    if size_of(static) == 1:
        return ONE
    return ROWS if static == out.shape[1:] else NONE
