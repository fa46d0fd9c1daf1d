"""Reductions over the steps of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec
from .sequence_rows import add_steps, fold, sequence_axes, sequences, steps, without_steps


class SequenceReduction(Op):
    """Base of reductions over steps; the result has no sequence axis."""

    op_name = "Sequence::ReduceElements"
    by_rows = False

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        return x.but(axes=without_steps(sequence_axes(x)))

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """One for each element of the operand."""
        return size_of(inputs[0].shape)


class SequenceReduceSum(SequenceReduction):
    """Sum."""

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        layout, _ = sequences(ctx.layouts[0])
        add_steps(ctx, inputs[0], layout, out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        layout, _ = sequences(ctx.layouts[0])
        ctx.xp.take(grad, ctx.index(layout, "sequence_of_row"), axis=0, out=grads[0], mode="clip")


class SequenceReduceMax(SequenceReduction):
    """Maximum; the gradient goes to every step that equals it."""

    keep_inputs = (0,)
    keep_output = True

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        layout, _ = sequences(ctx.layouts[0])
        fold(ctx, ctx.xp.maximum, inputs[0], layout, out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp, dx, (x,) = ctx.xp, grads[0], inputs
        layout, _ = sequences(ctx.layouts[0])
        greatest = ctx.scratch("greatest", out.shape, out.dtype)
        packed = ctx.scratch("packed gradient", grad.shape, grad.dtype)
        order = ctx.index(layout, "order")
        xp.take(out, order, axis=0, out=greatest, mode="clip")
        xp.take(grad, order, axis=0, out=packed, mode="clip")
        for rows, count in steps(layout):
            step = dx[rows]
            xp.equal(x[rows], greatest[:count], out=step)
            xp.multiply(step, packed[:count], out=step)


@operator(
    sample(Operand((2, 3), kind="sequence"), expected=lambda x: x.sum(axis=0)),
    sample(Operand((), kind="sequence"), expected=lambda x: x.sum(axis=0)),
)
def reduce_sum(seq: TensorLike, name: str = "") -> Function:
    """Sum over the steps of each sequence.

    Args:
        seq: sequence of any static shape.
        name: name of the function.

    Returns:
        a value of the operand's static shape with a batch axis only.

    Raises:
        ValueError: *seq* is not a sequence.

    >>> x = C.sequence.input_variable(2)
    >>> C.sequence.reduce_sum(x).eval([np.float32([[1, 2], [3, 4]]), np.float32([[5, 6]])])
    array([[4., 6.],
           [5., 6.]], dtype=float32)
    """
    return SequenceReduceSum()(seq, name=name)


@operator(
    sample(Operand((2, 3), kind="sequence"), expected=lambda x: x.max(axis=0)),
    sample(Operand((), kind="sequence"), expected=lambda x: x.max(axis=0)),
    sample(Operand((2,), -9.0, -8.0, kind="sequence"), expected=lambda x: np.max(x, axis=0)),
)
def reduce_max(seq: TensorLike, name: str = "") -> Function:
    """Largest element over the steps of each sequence, for each element by itself.  The gradient goes to every step that has it.

    Args:
        seq: sequence of any static shape.
        name: name of the function.

    Returns:
        a value of the operand's static shape with a batch axis only.

    Raises:
        ValueError: *seq* is not a sequence.

    >>> x = C.sequence.input_variable(2)
    >>> C.sequence.reduce_max(x).eval([np.float32([[1, 4], [3, 2]]), np.float32([[5, 6]])])
    array([[3., 4.],
           [5., 6.]], dtype=float32)
    """
    return SequenceReduceMax()(seq, name=name)
