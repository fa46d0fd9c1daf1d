"""The largest elements along an axis, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op
from ...core.operators.samples import Operand, operator, sample
from ...core.types.axis import Axis, static_axis_number
from ...core.types.context import Context
from ...core.types.spec import Spec
from .axes import static_axes


class TopK(Op):
    """The k largest elements along an axis and their places; gradients go to the elements chosen."""

    op_name = "TopK"
    by_rows = False
    outputs = 2

    def infer(self, x: Spec) -> tuple[Spec, Spec]:
        axis = static_axis_number(self.axis, x.rank, self.op_name)
        if 0 <= x.dims[axis] < self.num_items:
            raise ValueError(f"cannot take the {self.num_items} largest of {x.dims[axis]} elements; lower k or choose another axis")
        dims = list(x.dims)
        dims[axis] = self.num_items
        chosen = self.common(x).but(shape=tuple(dims))
        return chosen, chosen

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        values, places = out
        (x,) = inputs
        (axis,) = static_axes(ctx, 0, x, self.axis, self.op_name)
        descending = ctx.scratch("descending", x.shape, x.dtype)
        xp.negative(x, out=descending)
        order = xp.argsort(descending, axis=axis, kind="stable")
        first = (slice(None),) * axis + (slice(self.num_items),)
        chosen = ctx.keep("chosen", values.shape, np.intp)
        xp.copyto(chosen, order[first])
        xp.copyto(places, chosen)
        xp.copyto(values, xp.take_along_axis(x, chosen, axis))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        dx = grads[0]
        dx[...] = 0
        if grad[0] is not None:
            (axis,) = static_axes(ctx, 0, dx, self.axis, self.op_name)
            chosen = ctx.keep("chosen", grad[0].shape, np.intp)
            ctx.xp.put_along_axis(dx, chosen, grad[0], axis)


def _top(k: int, axis: int) -> Any:
    def expected(x: Any) -> Any:
        order = np.take(np.argsort(-x, axis=axis, kind="stable"), range(k), axis=axis)
        return np.take_along_axis(x, order, axis), order.astype(x.dtype)

    return expected


_DISTINCT = np.array([[3.0, -1.0, 2.0, 0.5], [0.25, 4.0, -2.0, 1.0]])


@operator(
    sample(Operand((5,)), k=1, expected=_top(1, -1)),
    sample(Operand((2, 4)), k=3, expected=_top(3, -1)),
    sample(Operand((4, 2)), k=2, axis=0, expected=_top(2, 0)),
    sample(Operand(_DISTINCT, kind="parameter"), k=4, expected=_top(4, -1)),
)
def top_k(x: TensorLike, k: int, axis: int | Axis = -1, name: str = "") -> Function:
    """The *k* largest elements along an axis, largest first.  Of equal ones the earlier counts as larger.

    Args:
        x: operand of rank 1 or more.
        k: how many to take.
        axis: static axis to search along.
        name: name of the Function.

    Returns:
        a Function with two outputs on the operand's dynamic axes, both with *axis* of size *k*: the values, through which
        gradients flow, and their indices along the axis, as floats.

    Raises:
        ValueError: *k* is below 1 or above the size of the axis, or the axis is outside the shape.

    >>> top = C.top_k([3, 9, 5], k=2)
    >>> [value.tolist() for value in top.eval().values()]
    [[9.0, 5.0], [1.0, 2.0]]
    """
    if k < 1:
        raise ValueError(f"top_k: expected k of 1 or more, got {k}")
    return TopK(num_items=int(k), axis=axis)(x, name=name)
