"""The kernel of pooling.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.context import Context
from ...core.shape import size_of
from ...core.windows import Windows

FUSED_FROM = 2**13
"""Elements of all windows in a call from which on loops save more time than it takes to load them."""

LARGEST_WINDOW = 256
"""Elements of a window that numbers of eight bits tell apart."""

MAXIMUM = 0


class PoolingKernel:
    """Loops for maxima of float32 and float64.  Averages, and what is small, are left to the operator."""

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        planes, w = _planes(op, ctx, x)
        if op.pooling_type != MAXIMUM or not is_for_loops(w, len(planes), x.dtype):
            op.forward(ctx, out, x)
            return
        from .pools import find_maxima

        find_maxima(ctx, out, _taps(ctx, planes, w), planes, w)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        planes, w = _planes(op, ctx, x)
        if op.pooling_type != MAXIMUM or not ctx.training or not is_for_loops(w, len(planes), x.dtype):
            op.backward(ctx, grad, grads, out, x)
            return
        from .pools import send_back

        send_back(ctx, grads[0].reshape(planes.shape), grad, _taps(ctx, planes, w), w)


def is_for_loops(w: Windows, planes: int, dtype: Any) -> bool:
    """Whether loops are faster, and no window meets nothing but padding."""
    kernel = size_of(w.kernel)
    if dtype == np.float16 or planes * size_of(w.out) * kernel < FUSED_FROM or kernel > LARGEST_WINDOW or w.kernel == w.padded:
        return False
    return w.meet_elements


def _planes(op: Any, ctx: Context, x: Any) -> tuple[Any, Windows]:
    """The operand as rows of what the windows slide over."""
    w = op.windows(x.shape if ctx.layouts[0] is None else x.shape[1:]).moving
    return x.reshape(-1, *w.dims), w


def _taps(ctx: Context, planes: Any, w: Windows) -> Any:
    """Space for the number of the maximum in each window."""
    space = ctx.keep if ctx.training else ctx.scratch
    return space("taps", (len(planes), *w.out), np.uint8)
