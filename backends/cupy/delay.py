"""The kernel of delays outside of recurrences: each row of the result is one of the operand, or of the initial state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.types.context import Context
from .compiler import THREADS, blocks_for, compile
from .prelude import prelude
from .sequences import are_plain, run

NONE, ONE, ROWS = "0", "fill[-1 - from]", "fill[(-1 - from) * width + at % width]"
"""What stands where a row reads outside its sequence: nothing, a number for all elements, or a row of as many."""


def text(dtype: Any, fill: str) -> str:
    """The text for such an initial state."""
    outside = "store(out[at], (real)0)" if fill == NONE else f"out[at] = {fill}"
    return f"""{prelude(dtype, "unsigned long long")}
extern "C" __global__ void __launch_bounds__({THREADS})
pick(const stored *x, const stored *fill, const long long *rows, stored *out, size elements, size width) {{
    for (size at = blockIdx.x * (size)blockDim.x + threadIdx.x; at < elements; at += gridDim.x * (size)blockDim.x) {{
        const long long from = rows[at / width];
        if (from >= 0)
            out[at] = x[from * width + at % width];
        else
            {outside};
    }}
}}
"""


class DelayKernel:
    """Operands of the result's static shape, and initial states of that shape or of one element, for all sequences or for each."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any, initial: Any) -> None:
        fill = _fill_of(ctx, out, initial)
        if fill == NONE or x.shape[1:] != out.shape[1:] or not are_plain(out, x, initial) or op.continues(ctx):
            op.forward(ctx, out, x, initial)
        else:
            _pick(ctx, fill, x, initial, ctx.index_from(op.rows_read), out)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, initial: Any) -> None:
        dx, dinitial = grads
        if dinitial is not None and are_plain(grad, dinitial) and _is_summed(ctx, grad, dinitial) and not op.continues(ctx):
            outside = ctx.scratch("gradients outside", grad.shape, grad.dtype)
            _pick(ctx, NONE, grad, None, ctx.index_from(op.rows_outside), outside)
            if ctx.layouts[1] is None:
                ctx.sum_to(outside, dinitial)
            else:
                run("sum", ctx, ctx.layout, outside, dinitial)
            dinitial = None
        if dx is not None and dx.shape == grad.shape and are_plain(grad, dx):
            _pick(ctx, NONE, grad, None, ctx.index_from(op.rows_that_read), dx)
            dx = None
        if dx is not None or dinitial is not None:
            op.backward(ctx, grad, (dx, dinitial), out, x, initial)


def _is_summed(ctx: Context, grad: Any, dinitial: Any) -> bool:
    """Whether the gradient of an initial state is a sum over all rows, or over those of each sequence."""
    layout = ctx.layouts[1]
    return layout is None or (layout.lengths is None and dinitial.shape[1:] == grad.shape[1:])


def _fill_of(ctx: Context, out: Any, initial: Any) -> str:
    """What an initial state gives to a row; NONE where it has another shape."""
    static = initial.shape if ctx.layouts[1] is None else initial.shape[1:]
    if size_of(static) == 1:
        return ONE
    return ROWS if static == out.shape[1:] else NONE


def _pick(ctx: Context, fill: str, x: Any, initial: Any, rows: Any, out: Any) -> None:
    width, elements = size_of(out.shape[1:]), size_of(out.shape)
    compile(text(out.dtype, fill), "pick").bound(
        blocks_for(elements), THREADS, x, initial, rows, out, np.uint64(elements), np.uint64(width)
    )()
