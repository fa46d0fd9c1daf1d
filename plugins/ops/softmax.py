"""Softmax, its logarithm, and the hard maximum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.common.shape import size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op
from ...core.operators.samples import Operand, operator, sample
from ...core.types.axis import Axis, static_axis_number
from ...core.types.context import Context
from ...core.types.spec import Spec
from .arithmetic import minus
from .axes import kept_shape, static_axes
from .reduction import reduce_log_sum_exp


class Softmax(Op):
    """Exponentials that sum to 1 along an axis, or over all static axes when the axis is None."""

    op_name = "Softmax"
    keep_output = True

    def __init__(self, *, axis: Axis | int | None = None) -> None:
        if axis == Axis.all_static_axes():
            axis = None
        super().__init__(axis=Axis(axis) if isinstance(axis, int) else axis)

    def infer(self, x: Spec) -> Spec:
        if self.axis is not None:
            static_axis_number(self.axis, x.rank, self.op_name)
        return self.common(x).but(shape=x.shape)

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """For each element a maximum, a difference, an exponential, a sum, and a quotient or difference."""
        return 5 * size_of(out.shape)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        (x,) = inputs
        axes = static_axes(ctx, 0, x, self.axis, self.op_name)
        edge = ctx.scratch("edge", kept_shape(x.shape, axes), x.dtype)
        x.max(axis=axes, out=edge, keepdims=True)
        xp.subtract(x, edge, out=out)
        xp.exp(out, out=out)
        total = ctx.scratch("total", edge.shape, computing_type(x.dtype))
        ctx.sum_to(out, total)
        xp.divide(out, total, out=out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        dx = grads[0]
        axes = static_axes(ctx, 0, dx, self.axis, self.op_name)
        inner = ctx.scratch("total", kept_shape(dx.shape, axes), computing_type(dx.dtype))
        xp.multiply(grad, out, out=dx)
        ctx.sum_to(dx, inner)
        xp.subtract(grad, inner, out=dx)
        xp.multiply(dx, out, out=dx)


class LogSoftmax(Softmax):
    """Logarithm of the softmax."""

    op_name = "LogSoftmax"

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        (x,) = inputs
        axes = static_axes(ctx, 0, x, self.axis, self.op_name)
        edge = ctx.scratch("edge", kept_shape(x.shape, axes), x.dtype)
        powers = ctx.scratch("powers", x.shape, x.dtype)
        x.max(axis=axes, out=edge, keepdims=True)
        xp.subtract(x, edge, out=out)
        xp.exp(out, out=powers)
        total = ctx.scratch("total", edge.shape, computing_type(x.dtype))
        ctx.sum_to(powers, total)
        xp.log(total, out=total)
        xp.subtract(out, total, out=out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        dx = grads[0]
        axes = static_axes(ctx, 0, dx, self.axis, self.op_name)
        total = ctx.scratch("total", kept_shape(dx.shape, axes), computing_type(dx.dtype))
        ctx.sum_to(grad, total)
        xp.exp(out, out=dx)
        xp.multiply(dx, total, out=dx)
        xp.subtract(grad, dx, out=dx)


class Hardmax(Op):
    """1 at the largest element of a sample, the first of equal ones, and 0 elsewhere."""

    op_name = "Hardmax"
    gradient_inputs = ()

    def infer(self, x: Spec) -> Spec:
        return self.common(x).but(shape=x.shape)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        (x,) = inputs
        rows = 1 if ctx.layouts[0] is None else len(x)
        place = ctx.scratch("place", (rows, 1), np.intp)
        x.reshape(rows, -1).argmax(axis=1, out=place, keepdims=True)
        flat = out.reshape(rows, -1)
        xp.equal(xp.arange(flat.shape[1]), place, out=flat)


def _softmax(axis: Any) -> Any:
    def expected(x: Any) -> Any:
        powers = np.exp(x - x.max(axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)

    return expected


def _log_softmax(axis: Any) -> Any:
    return lambda x: np.log(_softmax(axis)(x))


def _hardmax(x: Any) -> Any:
    y = np.zeros_like(x)
    y.flat[x.argmax()] = 1
    return y


@operator(
    sample((3,), expected=_softmax(None)),
    sample((2, 3), expected=_softmax(None)),
    sample((), expected=np.ones_like),
    sample((2, 3), axis=Axis.all_static_axes(), expected=_softmax(None)),
    sample((2, 3), axis=0, expected=_softmax(0)),
    sample((2, 3, 2), axis=-2, expected=_softmax(1)),
    sample(Operand((2, 3), 500, 900), axis=1, expected=_softmax(1)),
    sample(Operand((2, 3), kind="parameter"), axis=Axis(1), expected=_softmax(1)),
)
def softmax(x: TensorLike, axis: int | Axis | None = None, name: str = "") -> Function:
    r"""Softmax :math:`e^{x_i} / \sum_j e^{x_j}`, computed so that nothing overflows.

    Args:
        x: operand of any shape.
        axis: static axis along which the result sums to 1; None, or ``Axis.all_static_axes()``, for all static axes *jointly*.
        name: name of the Function.

    Returns:
        numbers in [0, 1] of the operand's shape and dynamic axes.

    Raises:
        ValueError: the axis is outside the shape.

    >>> C.softmax([[1, 1, 2, 3]]).eval().round(4)
    array([[0.0826, 0.0826, 0.2245, 0.6103]], dtype=float32)
    >>> C.softmax([[1, 1], [2, 2]], axis=1).eval()
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    return Softmax(axis=axis)(x, name=name)


@operator(
    sample((3,), expected=_log_softmax(-1)),
    sample((2, 3), expected=_log_softmax(-1)),
    sample((2, 3), axis=0, expected=_log_softmax(0)),
    sample(Operand((2, 3), 50, 60), axis=-1, expected=_log_softmax(1)),
    sample(Operand((4,), kind="parameter"), axis=0, expected=_log_softmax(0)),
)
def log_softmax(x: TensorLike, axis: int | Axis | None = None, name: str = "") -> Function:
    r"""Logarithm of the softmax, :math:`x_i - \log \sum_j e^{x_j}`; exact where the softmax itself rounds to 0.

    Args:
        x: operand of any shape but ().
        axis: static axis to normalise, or the batch axis; None for the last static one (unlike :func:`softmax`).
        name: name of the Function.

    Returns:
        numbers not above 0 of the operand's shape and dynamic axes.

    Raises:
        ValueError: the axis is outside the shape.

    >>> C.log_softmax([[1, 1, 2, 3]]).eval().round(4)
    array([[-2.4938, -2.4938, -1.4938, -0.4938]], dtype=float32)
    """
    if isinstance(axis, Axis) and axis.is_batch_axis:
        return minus(x, reduce_log_sum_exp(x, axis), name=name)
    return LogSoftmax(axis=-1 if axis is None else axis)(x, name=name)


@operator(
    sample(Operand((3,), gradient=False), expected=_hardmax),
    sample(Operand((2, 3), gradient=False), expected=_hardmax),
    sample(Operand((), gradient=False), expected=np.ones_like),
    sample(Operand(np.array([[1.0, 3.0], [3.0, 2.0]]), gradient=False), expected=_hardmax),
)
def hardmax(x: TensorLike, name: str = "") -> Function:
    """1 at the largest element of each sample, over all static axes, and 0 elsewhere.  No gradient flows through it.

    Args:
        x: operand of any shape.
        name: name of the Function.

    Returns:
        zeros and a one of the operand's shape and dynamic axes; the first of equal maxima is chosen.

    >>> C.hardmax([[1, 5, 5], [2, 0, 1]]).eval()
    array([[0., 1., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    return Hardmax()(x, name=name)
