"""The kernels of softmax and its logarithm.  Narrow rows have a thread each, and the bodies of the loops for the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.types.axis import static_axis_number
from ...core.types.context import Context
from ..fused import distributions
from . import rows
from .arrays import place, put, whole
from .compiler import Kernel, once
from .rows import WIDE


class SoftmaxKernel:
    """Kernels for float32 and float64 where what sums to 1 lies together.  Other axes are left to the operator."""

    narrow, wide = Kernel.of(distributions.softmax), rows.softmax
    narrow_gradient, wide_gradient = Kernel.of(distributions.softmax_gradient), rows.softmax_gradient

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *_: Any) -> bool:
        """Whether a call is left to the operator."""
        return not out.size or not _classes(op, ctx, out)

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out):
            op.forward(ctx, out, x)
            return
        classes = _classes(op, ctx, out)
        _launch(ctx, cls.narrow if classes < WIDE else cls.wide, classes, (x,), out, 0)

    @classmethod
    def backward(cls, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out):
            op.backward(ctx, grad, grads, out, x)
            return
        classes = _classes(op, ctx, out)
        _launch(ctx, cls.narrow_gradient if classes < WIDE else cls.wide_gradient, classes, (out, grad), grads[0], 1)


class LogSoftmaxKernel(SoftmaxKernel):
    """The same for the logarithm."""

    narrow, wide = Kernel.of(distributions.log_softmax), rows.log_softmax
    narrow_gradient, wide_gradient = Kernel.of(distributions.log_softmax_gradient), rows.log_softmax_gradient


def _launch(ctx: Context, kernel: Kernel, classes: int, operands: Sequence[Any], result: Any, at: int) -> None:
    """Run a kernel over rows of classes; what is bound is kept in the context, the way forward and the way back side by side."""
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
