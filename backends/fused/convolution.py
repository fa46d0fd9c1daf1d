"""The kernel of convolution and its transpose.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.context import Context
from ...core.shape import size_of
from ...core.windows import Correlation

FUSED_FROM = 2**24
"""Multiplications in a call from which on loops save more time than it takes to load them."""

LARGEST_FILTERS = 2**21
"""Weights up to which their gradient is summed in parts."""


class ConvolutionKernel:
    """Loops for float32 and float64.  What is small is left to the operator."""

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, filters: Any, operand: Any) -> None:
        op.forward(ctx, out, filters, operand, *_loops(op, ctx, filters, operand, is_backward=op.transpose))

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any) -> None:
        op.backward(ctx, grad, grads, out, filters, operand, *_loops(op, ctx, filters, operand, is_backward=True))


def _loops(op: Any, ctx: Context, filters: Any, operand: Any, is_backward: bool) -> Sequence[Any]:
    """The module that correlates; none if the operator is to use its own."""
    static = operand.shape if ctx.layouts[1] is None else operand.shape[1:]
    g = op.geometry(filters.shape, static)
    rows = operand.size // size_of(static) if operand.size else 0
    if not is_for_loops(g, rows, operand.dtype, is_backward):
        return ()
    from . import correlation

    return (correlation,)


def is_for_loops(g: Correlation, rows: int, dtype: Any, is_backward: bool) -> bool:
    """Whether loops are faster."""
    weights = size_of(g.weights)
    if dtype == np.float16 or rows * weights * size_of(g.windows.out) < FUSED_FROM:
        return False
    return not is_backward or weights <= LARGEST_FILTERS
