"""Kernels for softmax and its logarithm.  Narrow rows are handled by one thread each, with the bodies of the loops for the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.common.dtypes import is_half
from ...core.common.shape import size_of
from ...core.types.axis import static_axis_number
from ...core.types.context import Context
from ..fused import distributions
from . import rows
from .arrays import place, put, whole
from .compiler import Kernel, Launch, once
from .rows import WIDE


class SoftmaxKernel:
    """Softmax of float32 and float64 along contiguous axes; other axes fall back to the operator."""

    narrow, wide = Kernel.of(distributions.softmax), rows.softmax
    narrow_gradient, wide_gradient = Kernel.of(distributions.softmax_gradient), rows.softmax_gradient

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *_: Any) -> bool:
        """Whether to fall back to the operator."""
        return not out.size or not _classes(op, ctx, out)

    @classmethod
    def bind(cls, op: Any, ctx: Context, out: Any, x: Any) -> Callable[[], None] | None:
        """Return the launch; None if arrays are not contiguous."""
        if cls.declines(op, ctx, out) or not (out.flags.c_contiguous and x.flags.c_contiguous):
            return None
        classes = _classes(op, ctx, out)
        return _bound(cls.narrow, cls.wide, classes, (x, out))

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out):
            op.forward(ctx, out, x)
            return
        _launch(ctx, cls.narrow, cls.wide, _classes(op, ctx, out), (x,), out, 0)

    @classmethod
    def backward(cls, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out):
            op.backward(ctx, grad, grads, out, x)
            return
        _launch(ctx, cls.narrow_gradient, cls.wide_gradient, _classes(op, ctx, out), (out, grad), grads[0], 1)


class LogSoftmaxKernel(SoftmaxKernel):
    """Logarithm of softmax, with the same types and axes."""

    narrow, wide = Kernel.of(distributions.log_softmax), rows.log_softmax
    narrow_gradient, wide_gradient = Kernel.of(distributions.log_softmax_gradient), rows.log_softmax_gradient


def _launch(ctx: Context, narrow: Kernel, wide: Kernel, classes: int, operands: Sequence[Any], result: Any, at: int) -> None:
    """Run a kernel over rows of classes; the context caches the launches of the forward and the backward pass."""
    arrays = [whole(ctx, f"operand {i}", x) for i, x in enumerate(operands)]
    arrays.append(place(ctx, "result", result))
    held = list(ctx.state or (None, None))
    held[at] = once(held[at], arrays, lambda: _bound(narrow, wide, classes, arrays))
    ctx.state = held
    held[at][1]()
    put(ctx, result, arrays[-1])


def _bound(narrow: Kernel, wide: Kernel, classes: int, arrays: Sequence[Any]) -> Launch:
    matrices = [array.reshape(-1, classes) for array in arrays]
    return (narrow if classes < WIDE else wide).bound(len(matrices[0]), *matrices)


def _classes(op: Any, ctx: Context, x: Any) -> int:
    """Return the number of classes, which are adjacent in memory; 0 to fall back to the operator."""
    if is_half(x.dtype):
        return 0
    static = x.shape if ctx.layouts[0] is None else x.shape[1:]
    if op.axis is None:
        return size_of(static)
    axis = static_axis_number(op.axis, len(static), op.op_name)
    return static[axis] if size_of(static[axis + 1 :]) == 1 else 0
