"""The kernel of gathering rows of a matrix by their numbers.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.types.axis import static_axis_number
from ...core.types.context import Context


class GatherKernel:
    """A loop for elements of the first axis, in float32 and float64.  Other axes, small results and gradients are left to the operator."""

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, reference: Any, indices: Any) -> Callable[[], None] | None:
        """A function that gathers from these arrays; None if the loop cannot."""
        arrays = out, reference, indices
        if out.size < thresholds.gather_compiled or static_axis_number(op.axis, reference.ndim, op.op_name) != 0:
            return None
        if out.dtype.char not in "fd" or not all(x.dtype == out.dtype and x.flags.carray for x in arrays) or not are_usable():
            return None
        from .gathered_rows import bound_take

        take, refused = bound_take(*arrays)

        def call() -> None:
            take()
            if refused[0]:
                refused[0] = 0
                op.forward(ctx, *arrays)  # which says what is wrong

        return call

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, reference: Any, indices: Any) -> None:
        call = GatherKernel.bind(op, ctx, out, reference, indices)
        if call is None:
            op.forward(ctx, out, reference, indices)
        else:
            call()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, reference: Any, indices: Any) -> None:
        op.backward(ctx, grad, grads, out, reference, indices)
