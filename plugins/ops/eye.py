"""Matrices of zeros with ones along the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec
from .product import times


class EyeLike(Op):
    """Ones along the diagonal of a matrix of the operand's rows and columns."""

    op_name = "EyeLikeOp"
    gradient_inputs = ()
    traits = Traits(layout_inputs=(0,))
    by_rows = False
    OutputSparse: bool

    def infer(self, x: Spec) -> Spec:
        if x.axes is not None and len(x.axes) > 1:
            raise ValueError("the operand must have no sequence axis; reduce it with sequence.last, or unpack it with sequence.unpack")
        if x.axes is not None and len(x.axes) + x.rank != 2:
            raise ValueError(f"the operand must have two axes, counting the batch axis; it has {len(x.axes) + x.rank}")
        return x.but(sparse=self.OutputSparse)

    def forward(self, ctx: Context, out: Any, x: Any) -> None:
        xp = ctx.xp
        rows, columns = out.shape
        ones = min(rows, columns)
        if self.OutputSparse:
            starts = xp.minimum(xp.arange(rows + 1), ones)
            out.set(xp.ones(ones, out.dtype), xp.arange(ones), starts)
        else:
            out[...] = 0
            out.reshape(rows * columns)[: ones * columns : columns + 1] = 1


@operator(
    sample(Operand((2, 3), kind="parameter", gradient=False), sparse_output=False, expected=lambda x: np.eye(2, 3)),
    sample(Operand((4, 2), kind="parameter", gradient=False), sparse_output=False, expected=lambda x: np.eye(4, 2)),
    sample(
        Operand((2, 3), kind="parameter", gradient=False),
        Operand((3, 4), kind="parameter"),
        call=lambda f, x, w: times(f(x), w),
        expected=lambda x, w: w[:2],
    ),
)
def eye_like(x: TensorLike, sparse_output: bool = True, name: str = "") -> Function:
    """A matrix of zeros with ones along the diagonal, as many rows and columns as *x* has.

    Args:
        x: operand with two axes: a static shape of two, or one beside the batch axis, whose samples are the rows then.
        sparse_output: whether the result is sparse; evaluated it comes as CSR matrix.
        name: name of the function.

    Returns:
        Function of the shape, dynamic axes and element type of *x*, which gets no gradient.

    Raises:
        ValueError: *x* has a sequence axis, or other than two axes, counting the batch axis.

    >>> x = C.input_variable(3)
    >>> C.eye_like(x, sparse_output=False).eval({x: np.zeros((2, 3), np.float32)})
    array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    return EyeLike(OutputSparse=bool(sparse_output))(x, name=name)
