"""The kernels of softmax and its logarithm.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.common.dtypes import is_half
from ...core.common.shape import size_of
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.types.axis import static_axis_number
from ...core.types.context import Context


class SoftmaxKernel:
    """Loops for float32 and float64 along contiguous elements.  Other axes and small operands are left to the operator."""

    loop = "softmax"

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *_: Any) -> bool:
        """Whether the operator computes a call itself."""
        return out.size < thresholds.softmax_compiled or not _classes(op, ctx, out) or not are_usable()

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out):
            op.forward(ctx, out, x)
            return
        from . import distributions

        classes = _classes(op, ctx, out)
        getattr(distributions, cls.loop).run(out.size >= thresholds.exponentials_shared, x.reshape(-1, classes), out.reshape(-1, classes))

    @classmethod
    def backward(cls, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out):
            op.backward(ctx, grad, grads, out, x)
            return
        from . import distributions

        classes = _classes(op, ctx, out)
        arrays = (array.reshape(-1, classes) for array in (out, grad, grads[0]))
        getattr(distributions, f"{cls.loop}_gradient").run(out.size >= thresholds.exponentials_shared, *arrays)


class LogSoftmaxKernel(SoftmaxKernel):
    """The same for the logarithm."""

    loop = "log_softmax"


def _classes(op: Any, ctx: Context, x: Any) -> int:
    """How many elements, one after another in memory, sum to 1; 0 where loops do not serve."""
    if is_half(x.dtype):
        return 0
    static = x.shape if ctx.layouts[0] is None else x.shape[1:]
    if op.axis is None:
        return size_of(static)
    axis = static_axis_number(op.axis, len(static), op.op_name)
    return static[axis] if size_of(static[axis + 1 :]) == 1 else 0
