"""Kernel for dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import is_half
from ...core.machine.language import prange
from ...core.types.context import Context
from .arrays import place, put, whole
from .compiler import Kernel, flat, once
from .random import HALVES, bits_of, half_of, key_of

SPARE = np.uint32(8)
"""Bits of each 32-bit word that are not used for the random number."""


def _drop(x: Any, y: Any, mask: Any, draw: int, k0: int, k1: int, k2: int, k3: int, least: int, scale: Any) -> None:
    zero, limit = x.dtype.type(0), np.uint32(least)
    for group in prange((x.size + HALVES - 1) // HALVES):
        words = bits_of(group, draw, k0, k1, k2, k3)
        for at in range(min(HALVES, x.size - group * HALVES)):
            i = group * HALVES + at
            is_kept = half_of(words, at) >> SPARE >= limit
            mask[i] = is_kept
            y[i] = x[i] * (scale if is_kept else zero)


def _drop_gradient(dy: Any, dx: Any, mask: Any, scale: Any) -> None:
    zero = dy.dtype.type(0)
    for i in prange(dy.size):
        dx[i] = dy[i] * (scale if mask[i] else zero)


DROP, DROP_GRADIENT = Kernel(_drop, "R1 R1 B1 q q q q q q r"), Kernel(_drop_gradient, "R1 R1 B1 r")


class DropoutKernel:
    """Dropout of float32 and float64 in training, with the same random numbers as the operator."""

    in_place = True

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *_: Any) -> bool:
        """Whether to fall back to the operator."""
        return not ctx.training or is_half(out.dtype) or not out.size

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        if DropoutKernel.declines(op, ctx, out):
            op.forward(ctx, out, x)
            return
        rate, seed, draw = op.begin_draw()
        scale = 1 / (1 - rate)
        source, target, mask = whole(ctx, "operand", x), place(ctx, "result", out), _mask(ctx, out)
        turns = -(-out.size // HALVES)
        held, held_back, _ = ctx.state or (None, None, 0)
        held = once(held, (source, target), lambda: DROP.bound(turns, flat(source), flat(target), mask))
        held[1](draw, *key_of(seed), math.ceil(np.float32(rate) * 2**24), scale)
        ctx.state = held, held_back, scale
        put(ctx, out, target)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if DropoutKernel.declines(op, ctx, grad):
            op.backward(ctx, grad, grads, out, x)
            return
        source, target, mask = whole(ctx, "operand", grad), place(ctx, "result", grads[0]), _mask(ctx, grad)
        held, held_back, scale = ctx.state
        held_back = once(held_back, (source, target), lambda: DROP_GRADIENT.bound(grad.size, flat(source), flat(target), mask))
        held_back[1](scale)
        ctx.state = held, held_back, scale
        put(ctx, grads[0], target)


def _mask(ctx: Context, like: Any) -> Any:
    """Return a buffer for the mask of kept elements, one byte per element."""
    return ctx.keep("kept", (like.size,), np.uint8)
