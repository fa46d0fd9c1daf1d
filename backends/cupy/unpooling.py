"""Unpooling: values are put back to where the maxima of another array's windows are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.common.windows import Windows
from ...core.types.context import Context
from . import pools
from .calls import Work


class UnpoolingKernel:
    """Kernel for ``unpooling`` of contiguous arrays; taps found forward are kept for the gradient."""

    recordable = True

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, values: Any, pooled: Any) -> bool:
        """Whether to fall back to the operator."""
        return not pools.can_pool(out, values, pooled, windows=_windows(op, ctx, out))

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, values: Any, pooled: Any) -> Callable[[], None]:
        """Return a function that puts back these values."""
        w = _windows(op, ctx, out)
        taps = pools.taps_of(ctx, pooled, w)
        return Work([pools.maxima(pooled, w, None, taps), pools.put_back(values, taps, w, out)])

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, values: Any, pooled: Any) -> None:
        if UnpoolingKernel.declines(op, ctx, out, values, pooled):
            op.forward(ctx, out, values, pooled)
        else:
            UnpoolingKernel.bind(op, ctx, out, values, pooled)()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, values: Any, pooled: Any) -> None:
        w = _windows(op, ctx, grad)
        if pools.can_pool(grad, grads[0], windows=w):
            pools.picked(grad, pools.taps_of(ctx, grad, w), w, grads[0])()
        else:
            op.backward(ctx, grad, grads, out, values, pooled)


def _windows(op: Any, ctx: Context, out: Any) -> Windows:
    w: Windows = op.windows(out.shape if ctx.layout is None else out.shape[1:])
    return w.moving
