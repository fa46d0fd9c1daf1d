"""Kernels for operators that mark steps.

The value that they write is read from device memory, because CuPy would copy it from the host each time, which cannot be recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.types.context import Context


class EndKernel:
    """``sequence.is_first`` and ``sequence.is_last``."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        op.mark(ctx, out, _one(ctx, out))

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        op.backward(ctx, grad, grads, out, x)


class UnpackKernel:
    """``sequence.unpack`` with a mask."""

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
