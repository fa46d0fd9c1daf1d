"""The kernel of reductions.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.common.dtypes import is_half
from ...core.common.shape import size_of
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.types.context import Context


class ReductionKernel:
    """Loops for float32 and float64 if the reduced elements are contiguous.  Everything else is left to the operator."""

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, x: Any) -> bool:
        """Whether the operator computes a call itself."""
        return not _length(op, ctx, x)

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        length = _length(op, ctx, x)
        if not length:
            op.forward(ctx, out, x)
            return
        from . import folds

        kind, rows, y = op.reduction_op_name, x.reshape(-1, length), out.reshape(-1)
        if kind == "LogSum":
            folds.log_total.run(x.size >= thresholds.exponentials_shared, rows, y)
        elif kind in ("Max", "Min"):
            (folds.greatest if kind == "Max" else folds.least).run(x.size >= thresholds.reduction_shared, rows, y)
        else:
            folds.total.run(x.size >= thresholds.reduction_shared, rows, y, 1 / length if kind == "Mean" else 1.0)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        (dx,) = grads
        length = _length(op, ctx, dx)
        if not length:
            op.backward(ctx, grad, grads, out, x)
            return
        from . import folds

        kind, rows, dy = op.reduction_op_name, dx.reshape(-1, length), grad.reshape(-1)
        if kind == "LogSum":
            folds.spread_by_powers.run(dx.size >= thresholds.exponentials_shared, x.reshape(rows.shape), out.reshape(-1), dy, rows)
        elif kind in ("Max", "Min"):
            folds.spread_to_equal.run(dx.size >= thresholds.reduction_shared, x.reshape(rows.shape), out.reshape(-1), dy, rows)
        else:
            folds.spread.run(dx.size >= thresholds.reduction_shared, dy, dx.dtype.type(1 / length if kind == "Mean" else 1), rows)


def _length(op: Any, ctx: Context, x: Any) -> int:
    """How many elements, one after another in memory, are reduced to one; 0 where loops do not serve."""
    if x.size < thresholds.reduction_compiled or is_half(x.dtype) or not are_usable():
        return 0
    axes = op.array_axes(ctx, x)
    first = min(axes, default=x.ndim)
    lie_together = all(axis in axes or x.shape[axis] == 1 for axis in range(first, x.ndim))
    return size_of(x.shape[first:]) if lie_together else 0
