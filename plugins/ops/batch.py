"""Ops that turn the batch axis into a static one and back."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.common.shape import FreeDimension, Shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.layout import Layout
from ...core.types.spec import BATCH, Spec
from .shaping import Reshaping


class UnpackBatchAxis(Reshaping, SequenceOp):
    """Makes the batch axis the first static axis."""

    op_name = "UnpackBatchAxis"

    def infer(self, x: Spec) -> Spec:
        if x.axes is not None and len(x.axes) != 1:
            raise RuntimeError("the operand must have a batch axis and no sequence axis")
        return x.but(shape=(FreeDimension, *x.dims), axes=())

    def array_shape(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Shape:
        """Shape of the result's array: the operand's, rows included."""
        return shapes[0]


class ToBatchAxis(Reshaping, SequenceOp):
    """Makes the first static axis the batch axis."""

    op_name = "ToBatchAxis"

    def infer(self, x: Spec) -> Spec:
        if x.axes:
            raise RuntimeError("the operand must have no dynamic axes")
        if not x.dims:
            raise RuntimeError("the operand is a scalar; it needs a first axis to become the batch axis")
        return x.but(shape=x.dims[1:], axes=BATCH)

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Layout:
        """Layout of the result: a sample for each element of the operand's first axis."""
        return Layout(shapes[0][0])


@operator(sample((2, 3), sequences="none"), sample((), sequences="none"))
def unpack_batch(x: TensorLike, name: str = "") -> Function:
    """Turn the batch axis into a first static axis of free dimension.

    Args:
        x: operand of static shape ``S`` with a batch axis and no sequence axis.
        name: name of the function.

    Returns:
        Function of static shape ``(FreeDimension, *S)`` without dynamic axes.

    Raises:
        RuntimeError: the operand has no batch axis, or a sequence axis.

    >>> C.unpack_batch(C.input_variable((2, 3))).shape
    (-3, 2, 3)
    """
    return UnpackBatchAxis()(x, name=name)


@operator(sample(Operand((4, 2), kind="parameter")), sample(Operand((4, 2), kind="static")))
def to_batch(x: TensorLike, name: str = "") -> Function:
    """Turn the first static axis into the batch axis.

    Args:
        x: operand of static shape ``(N, *S)`` without dynamic axes.
        name: name of the function.

    Returns:
        Function of static shape ``S`` with a batch axis of ``N`` samples.

    Raises:
        RuntimeError: the operand has dynamic axes, or is a scalar.

    >>> C.to_batch(C.constant(np.zeros((4, 2), dtype=np.float32))).shape
    (2,)
    """
    return ToBatchAxis()(x, name=name)
