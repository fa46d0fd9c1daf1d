"""The kernel of cross entropy with softmax.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import is_half
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.types.axis import Axis
from ...core.types.context import Context
from ...core.types.sparse import SparseRows


class CrossEntropyKernel:
    """Loops for logits of float32 and float64 whose classes are the last axis, and targets of the same shape, dense or sparse.

    Exponentials are computed again for the gradient, which takes less time than to write and read them.
    """

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> bool:
        """Whether the operator computes a call itself."""
        if (
            z.size < thresholds.cross_entropy_compiled
            or is_half(z.dtype)
            or y.shape != z.shape
            or (ctx.layouts[0] is None) != (ctx.layouts[1] is None)
        ):
            return True
        axis = op.axis.static_axis_index() if isinstance(op.axis, Axis) else op.axis
        return axis not in (-1, z.ndim - (ctx.layouts[0] is not None) - 1) or not are_usable()

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> None:
        if CrossEntropyKernel.declines(op, ctx, out, z, y):
            op.forward(ctx, out, z, y)
            return
        from . import distributions as loops

        shared, (logits, edge, total) = z.size >= thresholds.exponentials_shared, _rows(ctx, z)
        if isinstance(y, SparseRows):
            loops.sparse_cross_entropy.run(shared, logits, *y.parts, edge, total, out.reshape(-1))
        else:
            loops.cross_entropy.run(shared, logits, y.reshape(logits.shape), edge, total, out.reshape(-1))

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, z: Any, y: Any) -> None:
        if CrossEntropyKernel.declines(op, ctx, out, z, y):
            op.backward(ctx, grad, grads, out, z, y)
            return
        from . import distributions as loops

        shared, (logits, edge, total) = z.size >= thresholds.exponentials_shared, _rows(ctx, z)
        grad, (dz, dy) = grad.reshape(-1), grads
        if dz is not None and isinstance(y, SparseRows):
            loops.sparse_cross_entropy_gradient.run(shared, logits, *y.parts, edge, total, grad, dz.reshape(logits.shape))
        elif dz is not None:
            loops.cross_entropy_gradient.run(shared, logits, y.reshape(logits.shape), edge, total, grad, dz.reshape(logits.shape))
        if dy is not None:
            np.multiply(logits, -grad[:, None], out=dy.reshape(logits.shape))


def _rows(ctx: Context, z: Any) -> tuple[Any, Any, Any]:
    """The logits by rows, and space for the largest of each and for the sum of the exponentials."""
    logits = z.reshape(-1, z.shape[-1])
    return logits, ctx.keep("edge", (len(logits),), z.dtype), ctx.keep("total", (len(logits),), z.dtype)
