"""The kernel of dropout.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.common.dtypes import is_half
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.types.context import Context


class DropoutKernel:
    """Loops for float32 and float64 in training; the numbers, and so the results, are the operator's.  Small operands are left to it."""

    in_place = True

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *_: Any) -> bool:
        """Whether the operator computes a call itself."""
        return not ctx.training or is_half(out.dtype) or out.size < thresholds.dropout_compiled or not are_usable()

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        if DropoutKernel.declines(op, ctx, out):
            op.forward(ctx, out, x)
            return
        from .masks import drop

        rate, seed, draw = op.begin_draw()
        source, target = _whole(ctx, x), _place(ctx, out)
        words, bits = _bits(ctx, out)
        ctx.state = math.ceil(np.float32(rate) * 2**24), out.dtype.type(1 / (1 - rate))
        arrays = source.reshape(-1), target.reshape(-1), words, bits
        drop.run(out.size >= thresholds.dropout_bits_shared, *arrays, _key(seed), draw, *ctx.state)
        if target is not out:
            np.copyto(out, target)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if DropoutKernel.declines(op, ctx, grad):
            op.backward(ctx, grad, grads, out, x)
            return
        from .masks import drop_gradient

        source, target = _whole(ctx, grad), _place(ctx, grads[0])
        drop_gradient.run(grad.size >= thresholds.dropout_shared, source.reshape(-1), target.reshape(-1), _bits(ctx, grad)[1], *ctx.state)
        if target is not grads[0]:
            np.copyto(grads[0], target)


def _bits(ctx: Context, like: Any) -> tuple[Any, Any]:
    """Space for random bits in words of 64, four of which come together, and the same in words of 32."""
    words = ctx.keep("bits", (-(-like.size // 8) * 4,), np.uint64)
    return words, words.view(np.uint32)


def _place(ctx: Context, array: Any) -> Any:
    """The array, or space for one that is a part of another."""
    return array if array.flags.c_contiguous else ctx.scratch("result", array.shape, array.dtype)


def _whole(ctx: Context, array: Any) -> Any:
    """The array, or a copy of one that is a part of another."""
    if array.flags.c_contiguous:
        return array
    copied = ctx.scratch("operand", array.shape, array.dtype)
    np.copyto(copied, array)
    return copied


@lru_cache(maxsize=256)
def _key(seed: int) -> Any:
    """What NumPy's generator makes of a seed."""
    return np.random.Philox(key=seed).state["state"]["key"]
