"""The kernel of convolution and its transpose.

The library is loaded when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cntk.core.common.shape import size_of
from cntk.core.common.windows import Correlation
from cntk.core.extension import plugins
from cntk.extend import Context

PLACE = "cntk.plugins.ops.convolution:Convolution", "numpy"
TRANSPOSED = "cntk.plugins.ops.convolution:ConvolutionTranspose", "numpy"

USED_FROM = 2**24
"""Multiplications in a call from which on the library saves more time than it takes to load it."""

BLOCK = 16
"""Channels, and filters, that the library computes with at a time; for fewer it fills up with zeros."""

FULL = 0.75
"""Share of the multiplications in blocks that must not be of such zeros."""

LARGEST_RANK = 3
"""Axes along which the library's windows slide at most."""


class ConvolutionKernel:
    """oneDNN for float32.  What is small, or it cannot do or does slowly, is left to the kernel behind this one or to the operator."""

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, filters: Any, operand: Any) -> None:
        if _is_for_library(op, ctx, filters, operand):
            from . import correlation

            op.forward(ctx, out, filters, operand, correlation)
        else:
            _behind(op, "forward")(ctx, out, filters, operand)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any) -> None:
        if _is_for_library(op, ctx, filters, operand):
            from . import correlation

            op.backward(ctx, grad, grads, out, filters, operand, correlation)
        else:
            _behind(op, "backward")(ctx, grad, grads, out, filters, operand)


def _behind(op: Any, method: str) -> Any:
    """A method of the kernel that this one stands before, or of the operator."""
    kernel = plugins.kernels.behind(TRANSPOSED if op.transpose else PLACE, ConvolutionKernel)
    return getattr(op, method) if kernel is None else partial(getattr(kernel, method), op)


def _is_for_library(op: Any, ctx: Context, filters: Any, operand: Any) -> bool:
    static = operand.shape if ctx.layouts[1] is None else operand.shape[1:]
    g = op.geometry(filters.shape, static)
    rows = operand.size // size_of(static) if operand.size else 0
    return is_possible(g, operand.dtype) and is_fast(g, rows)


def is_possible(g: Correlation, dtype: Any) -> bool:
    """Whether the library knows the element type, so many axes, and where the windows begin."""
    return bool(dtype == np.float32) and len(g.windows.dims) <= LARGEST_RANK and min(g.windows.lower) >= 0


def is_fast(g: Correlation, rows: int) -> bool:
    """Whether the library is worth its loading, and its blocks are full: of channels, or in planes of groups that have one each.

    What opencntk computes by minimal filtering it computes faster.
    """
    w = g.windows
    is_filtered = g.groups == 1 and w.kernel == (3, 3) and w.strides == w.dilation == (1, 1)
    if is_filtered or rows * size_of(g.weights) * size_of(w.out) < USED_FROM:
        return False
    channels, maps = g.channels // g.groups, g.maps // g.groups
    if channels == maps == 1:
        return g.groups >= BLOCK and len(w.dims) == 2
    return channels * maps >= FULL * _filled_up(channels) * _filled_up(maps)


def _filled_up(channels: int) -> int:
    return -(-channels // BLOCK) * BLOCK
