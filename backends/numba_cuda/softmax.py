"""The kernels of softmax and its logarithm, whose bodies are those of the loops for the CPU: a thread to a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.types.axis import static_axis_number
from ...core.types.context import Context
from ..fused import distributions
from .arrays import place, put, whole
from .compiler import Kernel, once


class SoftmaxKernel:
    """Kernels for float32 and float64 where what sums to 1 lies together.  Other axes are left to the operator."""

    by_row = Kernel.of(distributions.softmax)
    gradient_by_row = Kernel.of(distributions.softmax_gradient)

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *_: Any) -> bool:
        """Whether a call is left to the operator."""
        return not out.size or not _classes(op, ctx, out)

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out):
            op.forward(ctx, out, x)
            return
        _launch(op, ctx, cls.by_row, (x,), out, 0)

    @classmethod
    def backward(cls, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out):
            op.backward(ctx, grad, grads, out, x)
            return
        _launch(op, ctx, cls.gradient_by_row, (out, grad), grads[0], 1)


class LogSoftmaxKernel(SoftmaxKernel):
    """The same for the logarithm."""

    by_row = Kernel.of(distributions.log_softmax)
    gradient_by_row = Kernel.of(distributions.log_softmax_gradient)


def _launch(op: Any, ctx: Context, kernel: Kernel, operands: Sequence[Any], result: Any, at: int) -> None:
    """Run a kernel over rows of classes; what is bound is kept in the context, the way forward and the way back side by side."""
    classes = _classes(op, ctx, result)
    arrays = [whole(ctx, f"operand {i}", x) for i, x in enumerate(operands)]
    arrays.append(place(ctx, "result", result))
    held = list(ctx.state or (None, None))
    held[at] = once(held[at], arrays, lambda: kernel.bound(result.size // classes, *(x.reshape(-1, classes) for x in arrays)))
    ctx.state = held
    held[at][1]()
    put(ctx, result, arrays[-1])


def _classes(op: Any, ctx: Context, x: Any) -> int:
    """How many elements, one after another in memory, sum to 1; 0 where kernels do not serve."""
    if x.dtype == np.float16:
        return 0
    static = x.shape if ctx.layouts[0] is None else x.shape[1:]
    if op.axis is None:
        return size_of(static)
    axis = static_axis_number(op.axis, len(static), op.op_name)
    return static[axis] if size_of(static[axis + 1 :]) == 1 else 0
