"""The kernel of reductions.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.common.dtypes import is_half
from ...core.common.shape import size_of
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.types.context import Context

TOTALS = "Sum", "Mean"
"""Reductions of columns that have a loop."""

MOST_TERMS = 512
"""Terms of a column that are added up one after another."""


class ReductionKernel:
    """Loops for float32 and float64 if the reduced elements are contiguous, and sums of columns.  All else is left to the operator."""

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, x: Any) -> bool:
        """Whether the operator computes a call itself."""
        return not _extent(op, ctx, x)[0]

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, x: Any) -> Callable[[], None] | None:
        """A function that reduces these arrays; None if loops cannot."""
        found = _call(op, ctx, out, x) if out.flags.carray and x.flags.carray else None
        return None if found is None else found[0].bound(*found[1])

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        found = _call(op, ctx, out, x)
        if found is None:
            op.forward(ctx, out, x)
        else:
            found[0].run(*found[1])

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        (dx,) = grads
        length, behind = _extent(op, ctx, dx)
        if not length or behind > 1:
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


def _call(op: Any, ctx: Context, out: Any, x: Any) -> tuple[Any, Sequence[Any]] | None:
    """The loop that reduces, and its arguments; None where there is none."""
    length, behind = _extent(op, ctx, x)
    if not length:
        return None
    from . import folds

    kind, shared = op.reduction_op_name, x.size >= thresholds.reduction_shared
    factor = 1 / length if kind == "Mean" else 1.0
    if behind > 1:
        return folds.column_totals, (shared, x.reshape(-1, length, behind), out.reshape(-1, behind), factor)
    rows, y = x.reshape(-1, length), out.reshape(-1)
    if kind == "LogSum":
        return folds.log_total, (x.size >= thresholds.exponentials_shared, rows, y)
    if kind in TOTALS:
        return folds.total, (shared, rows, y, factor)
    return folds.greatest if kind == "Max" else folds.least, (shared, rows, y)


def _extent(op: Any, ctx: Context, x: Any) -> tuple[int, int]:
    """How many elements are reduced to one, and how many lie from one of them to the next in memory; 0 where loops do not serve."""
    if x.size < thresholds.reduction_compiled or is_half(x.dtype) or not are_usable():
        return 0, 0
    axes = [axis for axis in op.array_axes(ctx, x) if x.shape[axis] > 1]
    first, last = min(axes, default=x.ndim), max(axes, default=x.ndim - 1)
    length, behind = size_of(x.shape[first : last + 1]), size_of(x.shape[last + 1 :])
    if not all(axis in axes or x.shape[axis] == 1 for axis in range(first, last + 1)):
        return 0, 0
    is_one_matrix = x.size == length * behind  # whose columns the operator adds up by a product
    if behind > 1 and (op.reduction_op_name not in TOTALS or length > MOST_TERMS or is_one_matrix):
        return 0, 0
    return length, behind
