"""The kernel of sums over the steps of sequences.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.common.sums import FEW
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.types.context import Context


class SequenceReduceSumKernel:
    """A loop for float32 and float64, which adds one step after another.

    Small operands, long sequences, and gradients, which NumPy copies as fast, are left to the operator.
    """

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, x: Any) -> bool:
        """Whether the operator computes a call itself."""
        return (
            x.size < thresholds.sequence_sum_compiled
            or x.dtype.char not in "fd"
            or not (x.flags.carray and out.flags.carray)
            or len(ctx.layouts[0].alive) > FEW  # type: ignore[union-attr]
            or not are_usable()
        )

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out, x):
            op.forward(ctx, out, x)
            return
        from .steps import add_steps

        layout: Any = ctx.layouts[0]
        rows, sums = x.reshape(layout.rows, -1), out.reshape(layout.samples, -1)
        add_steps.run(x.size >= thresholds.rows_shared, rows, layout.first_rows, layout.order, sums)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        op.backward(ctx, grad, grads, out, *inputs)
