"""Softmax over the steps of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.common.shape import size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.spec import Spec
from .sequence_rows import add_steps, sequence_axes, sequences, steps


class SequenceSoftmax(SequenceOp):
    """Exponentials that sum to 1 over the steps of a sequence, for each element by itself."""

    op_name = "Sequence::Softmax"
    whole_sequences = True
    keep_output = True
    by_rows = False

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        return x.but(axes=sequence_axes(x))

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """For each element a maximum, a difference, an exponential, a sum and a quotient."""
        return 5 * size_of(out.shape)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp, (x,) = ctx.xp, inputs
        layout, _ = sequences(ctx.layouts[0])
        edge = ctx.scratch("edge", (layout.samples, *x.shape[1:]), x.dtype)
        for rows, count in steps(layout):
            if rows.start == 0:
                xp.copyto(edge, x[rows])
            else:
                alive = edge[:count]
                xp.maximum(alive, x[rows], out=alive)
        for rows, count in steps(layout):
            xp.subtract(x[rows], edge[:count], out=out[rows])
        xp.exp(out, out=out)
        total = _sums(ctx, out, layout)
        for rows, count in steps(layout):
            step = out[rows]
            xp.divide(step, total[:count], out=step, casting="same_kind")

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp, dx = ctx.xp, grads[0]
        layout, _ = sequences(ctx.layouts[0])
        xp.multiply(grad, out, out=dx)
        inner = _sums(ctx, dx, layout)
        for rows, count in steps(layout):
            xp.subtract(grad[rows], inner[:count], out=dx[rows], casting="same_kind")
        xp.multiply(dx, out, out=dx)


def _sums(ctx: Context, x: Any, layout: Layout) -> Any:
    """The sums over the steps of sequences, in packed order."""
    sums = ctx.scratch("sums", (layout.samples, *x.shape[1:]), computing_type(x.dtype))
    add_steps(ctx, x, layout, sums)
    return sums[ctx.index(layout, "order")]


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=0))
    return powers / powers.sum(axis=0)


@operator(
    sample(Operand((2, 3), kind="sequence"), expected=_softmax),
    sample(Operand((), kind="sequence"), expected=_softmax),
    sample(Operand((2,), 500, 510, kind="sequence"), expected=_softmax),
)
def softmax(seq: TensorLike, name: str = "") -> Function:
    r"""Softmax over the steps of each sequence, :math:`e^{x_t} / \sum_s e^{x_s}`, for each element by itself.

    Args:
        seq: sequence of any static shape.
        name: name of the function.

    Returns:
        numbers in [0, 1] of the operand's shape and dynamic axes, which sum to 1 over the steps; nothing overflows on the way.

    Raises:
        ValueError: *seq* is not a sequence.

    >>> x = C.sequence.input_variable(())
    >>> C.sequence.softmax(x).eval([np.float32([1, 1]), np.float32([7])])
    [array([0.5, 0.5], dtype=float32), array([1.], dtype=float32)]
    """
    return SequenceSoftmax()(seq, name=name)
