"""The kernel of batch normalisation in training.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.context import Context

FUSED_FROM = 2**20
"""Values in a call from which on loops save more time than it takes to load them."""

LEAST_PLACES = 16
"""Values of a feature side by side that are worth lanes."""


class BatchNormalizationKernel:
    """Loops for float32 and float64.  What is small, or uses running statistics, is left to the operator."""

    in_place = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, *inputs: Any) -> None:
        op.forward(ctx, out, *inputs, loops=_loops(op, ctx, inputs))

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        op.backward(ctx, grad, grads, out, *inputs, loops=_loops(op, ctx, inputs))


def _loops(op: Any, ctx: Context, inputs: Sequence[Any]) -> Any:
    """The module of loops; None if the operator is to use its own."""
    x, scale = inputs[:2]
    if not ctx.training or x.dtype == np.float16 or x.size < FUSED_FROM or op.by_feature(ctx, x, scale.size).shape[2] < LEAST_PLACES:
        return None
    return _module()


@lru_cache(maxsize=1)
def _module() -> Any:
    from . import features

    return features
