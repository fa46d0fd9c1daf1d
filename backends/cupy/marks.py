"""Kernels of operators that mark steps: the number that they write is in the device's memory, where CuPy would send it each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.types.context import Context


class EndKernel:
    """Marks of the first and the last step."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        op.mark(ctx, out, _one(ctx, out))

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        op.backward(ctx, grad, grads, out, x)


class UnpackKernel:
    """Steps on a static axis, and a mask."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        op.unpack(ctx, out, x, _one(ctx, out[1]))

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        op.backward(ctx, grad, grads, out, x)


def _one(ctx: Context, like: Any) -> Any:
    one = ctx.scratch("one", (), like.dtype)
    one.fill(1)
    return one
