"""Values brought onto the dynamic axes of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.common.shape import Shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.sparse import SparseRows
from ...core.types.spec import Spec
from .sequence_rows import add_steps, shaped, take_rows


class ReconcileDynamicAxis(SequenceOp):
    """The first operand on the dynamic axes of the second: repeated, or as it is where it has as many steps already."""

    op_name = "ReconcileDynamicAxis"
    gradient_inputs = (0,)
    sparse_inputs: ClassVar[tuple[int, ...]] = (0, 1)
    traits = Traits(layout_inputs=(1,), uniform_inputs=(), expands_operands=False)
    by_rows = False

    def infer(self, *inputs: Spec) -> Spec:
        x, like = inputs
        if like.axes == ():
            raise ValueError("the second operand has no dynamic axes to bring the first one onto; give it one that has, such as an input")
        return x.but(axes=like.axes, sparse=x.sparse and x.axes != ())

    def assume(self, *inputs: Spec) -> Sequence[Spec] | None:
        x, like = inputs
        return None if x.shape is None else (x, shaped(like))

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Layout:
        """Layout of the result: that of the second operand."""
        before, after = layouts
        assert after is not None
        if before is None or before == after or (_one_step_each(before) and before.samples == after.samples):
            return after
        raise ValueError(
            f"the first operand has {before} and the second {after}; it must have the same lengths, or one step, which is repeated: "
            "sequence.last or sequence.reduce_sum leave one of a sequence"
        )

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        (x, _), (before, after) = inputs, ctx.layouts
        assert after is not None
        if before is not None and before.rows != after.rows:
            take_rows(ctx, out, x, after, "sequence_of_row")
        elif isinstance(x, SparseRows):
            out.set(x.data, x.indices, x.indptr)
        else:
            ctx.xp.copyto(out, x)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        before, after = ctx.layouts
        assert after is not None
        if before is None:
            ctx.sum_to(grad, grads[0])
        elif before.rows == after.rows:
            ctx.xp.copyto(grads[0], grad)
        else:
            add_steps(ctx, grad, after, grads[0])


class BroadcastAs(ReconcileDynamicAxis):
    """The same, under the name that is used for sequences."""

    op_name = "Sequence::BroadcastAs"


def _one_step_each(layout: Layout) -> bool:
    return layout.lengths is None or bool((layout.lengths == 1).all())


def _repeated(x: Any, like: Any) -> Any:
    return np.broadcast_to(x, (len(like), *np.shape(x)))


_SAMPLES = (
    sample((2, 3), Operand((4,), kind="sequence", gradient=False), expected=_repeated),
    sample((), Operand((), kind="sequence", gradient=False), expected=_repeated),
    sample(Operand((2, 3), kind="parameter"), Operand((4,), kind="sequence", gradient=False), expected=_repeated),
    sample(Operand((2, 3), kind="parameter"), Operand((4,), gradient=False), expected=lambda x, like: x),
    sample(Operand((2,), kind="sequence"), Operand((4,), kind="sequence", gradient=False), expected=lambda x, like: x),
    sample((2,), Operand((4,), gradient=False), expected=lambda x, like: x),
    sample(Operand((4,), sparse=True, gradient=False), Operand((2,), kind="sequence", gradient=False), expected=_repeated),
)


@operator(*_SAMPLES)
def broadcast_as(operand: TensorLike, broadcast_as_operand: TensorLike, name: str = "") -> Function:
    """Repeat a value along the steps of a sequence.

    Args:
        operand: value without dynamic axes or with a batch axis, of any static shape; may be sparse.  A sequence is taken as it is if it
            has the same lengths.
        broadcast_as_operand: sequence, of any static shape, or value on the batch axis.  No gradient flows to it.
        name: name of the function.

    Returns:
        the value on the dynamic axes of *broadcast_as_operand*.  The gradient is summed over the steps.

    Raises:
        ValueError: *broadcast_as_operand* has no dynamic axes, or *operand* is a sequence of other lengths.

    >>> x = C.sequence.input_variable(2)
    >>> C.sequence.broadcast_as(C.sequence.last(x), x).eval([np.float32([[1, 2], [3, 4]])])
    [array([[3., 4.],
           [3., 4.]], dtype=float32)]
    """
    return BroadcastAs()(operand, broadcast_as_operand, name=name)


@operator(*_SAMPLES)
def reconcile_dynamic_axes(x: TensorLike, dynamic_axes_as: TensorLike, name: str = "") -> Function:
    """Bring a value onto the dynamic axes of another.

    Args:
        x: value of any static shape: without dynamic axes or on the batch axis, and then repeated; or a sequence of the same lengths as
            *dynamic_axes_as*, which comes onto its sequence axis.  May be sparse.
        dynamic_axes_as: value of any static shape with dynamic axes.  No gradient flows to it.
        name: name of the function.

    Returns:
        the value on the dynamic axes of *dynamic_axes_as*.  The gradient is summed over what was repeated.

    Raises:
        ValueError: *dynamic_axes_as* has no dynamic axes, or *x* is a sequence of other lengths.

    >>> x = C.sequence.input_variable(2, sequence_axis=C.Axis('words'))
    >>> y = C.sequence.input_variable(2, sequence_axis=C.Axis('tags'))
    >>> data = {x: [np.float32([[1, 2], [3, 4]])], y: [np.float32([[10, 20], [30, 40]])]}
    >>> (C.reconcile_dynamic_axes(x, y) + y).eval(data)
    [array([[11., 22.],
           [33., 44.]], dtype=float32)]
    """
    return ReconcileDynamicAxis()(x, dynamic_axes_as, name=name)
