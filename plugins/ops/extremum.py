"""Largest and smallest elements over axes, and their places."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.samples import Operand, Sample, operator, sample
from ...core.types.axis import Axis
from ...core.types.context import Context
from ...core.types.spec import Spec
from .axes import kept_shape
from .reduction_base import ALL_STATIC, Axes, Reduction, reduce_over, samples


class _Extremum(Reduction):
    """Maximum or minimum; the gradient goes to every element that equals it."""

    keep_inputs = (0,)
    keep_output = True

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        chosen = ctx.scratch("chosen", x.shape, np.bool_)
        ctx.xp.equal(x, y, out=chosen)
        ctx.xp.multiply(chosen, dy, out=dx)


class ReduceMax(_Extremum):
    """Maximum."""

    reduction_op_name = "Max"

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        ctx.xp.maximum.reduce(x, axes, None, y, True)


class ReduceMin(_Extremum):
    """Minimum."""

    reduction_op_name = "Min"

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        ctx.xp.minimum.reduce(x, axes, None, y, True)


class _Arg(Reduction):
    """Place of an extremum as a float; among equals the first counts."""

    gradient_inputs = ()

    def infer(self, x: Spec) -> Spec:
        axis, *more = self.axis_vec
        if more or not (axis.is_static_axis or self.axis_vec == ALL_STATIC):
            raise ValueError("the place of an element is a number on one static axis, or on all of them (axis=None)")
        return super().infer(x)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        (x,) = inputs
        if self.axis_vec == ALL_STATIC:
            x, axis = x.reshape((*out.shape, -1)), -1
        else:
            (axis,) = self.array_axes(ctx, x)
        kept = kept_shape(x.shape, (axis % x.ndim,))
        place = ctx.scratch("place", kept, np.intp)
        self.find(x, axis, place)
        ctx.xp.copyto(out.reshape(kept), place)

    def find(self, x: Any, axis: int, place: Any) -> None:
        """Write the places on *axis* into *place*."""
        raise NotImplementedError(f"{type(self).__name__}.find")


class ArgMax(_Arg):
    """Place of the maximum."""

    reduction_op_name = "Argmax"

    def find(self, x: Any, axis: int, place: Any) -> None:
        x.argmax(axis=axis, out=place, keepdims=True)


class ArgMin(_Arg):
    """Place of the minimum."""

    reduction_op_name = "Argmin"

    def find(self, x: Any, axis: int, place: Any) -> None:
        x.argmin(axis=axis, out=place, keepdims=True)


def _places(expected: Any) -> tuple[Sample, ...]:
    """Samples of argmax and argmin."""

    def over(axis: int) -> Any:
        return lambda x: expected(x, axis=axis, keepdims=True).astype(x.dtype)

    return (
        sample(Operand((2, 3), gradient=False), expected=lambda x: expected(x).astype(x.dtype)),
        sample(Operand((4, 3), gradient=False), axis=0, expected=over(0)),
        sample(Operand((4, 2, 3), gradient=False), axis=-1, expected=over(-1)),
        sample(Operand((5,), gradient=False, kind="parameter"), axis=0, expected=over(0)),
    )


@operator(*samples(np.max))
def reduce_max(x: TensorLike, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
    """Largest element over axes.  The gradient goes to every element that is the largest.

    Args:
        x: operand of any shape.
        axis: static axis, tuple of axes, ``Axis.default_batch_axis()``, ``Axis.all_axes()``, or None for all static axes.
        keepdims: keep each reduced static axis as 1; all static axes together are dropped in any case.
        name: name of the Function.

    Returns:
        the maximum of each sample, shape () or with ones for *axis*; over the batch axis or all axes, a value without dynamic axes.

    Raises:
        ValueError: an axis outside the shape, a sequence axis, or ``keepdims=False`` together with all axes.

    >>> C.reduce_max([[1, 5, 3], [4, 2, 6]], axis=0).eval()
    array([[4., 5., 6.]], dtype=float32)
    """
    return reduce_over("reduce_max", ReduceMax, x, axis, keepdims, name)


@operator(*samples(np.min))
def reduce_min(x: TensorLike, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
    """Smallest element over axes.  The gradient goes to every element that is the smallest.

    Args:
        x: operand of any shape.
        axis: static axis, tuple of axes, ``Axis.default_batch_axis()``, ``Axis.all_axes()``, or None for all static axes.
        keepdims: keep each reduced static axis as 1; all static axes together are dropped in any case.
        name: name of the Function.

    Returns:
        the minimum of each sample, shape () or with ones for *axis*; over the batch axis or all axes, a value without dynamic axes.

    Raises:
        ValueError: an axis outside the shape, a sequence axis, or ``keepdims=False`` together with all axes.

    >>> C.reduce_min([[1, 5, 3], [4, 2, 6]], axis=0).eval()
    array([[1., 2., 3.]], dtype=float32)
    """
    return reduce_over("reduce_min", ReduceMin, x, axis, keepdims, name)


@operator(*_places(np.argmax))
def argmax(x: TensorLike, axis: int | Axis | None = None, name: str = "") -> Function:
    """Place of the largest element, as a float; the first of equal ones.  No gradient flows through it.

    Args:
        x: operand of any shape.
        axis: static axis to search along, or None for the whole sample in row-major order.
        name: name of the Function.

    Returns:
        the index along *axis*, which stays as 1; the index in the flattened sample, shape (), when *axis* is None.

    Raises:
        ValueError: the axis is outside the shape or not static.

    >>> C.argmax([[1, 5, 3], [4, 2, 6]], axis=1).eval()
    array([[1.],
           [2.]], dtype=float32)
    """
    return reduce_over("argmax", ArgMax, x, axis, True, name)


@operator(*_places(np.argmin))
def argmin(x: TensorLike, axis: int | Axis | None = None, name: str = "") -> Function:
    """Place of the smallest element, as a float; the first of equal ones.  No gradient flows through it.

    Args:
        x: operand of any shape.
        axis: static axis to search along, or None for the whole sample in row-major order.
        name: name of the Function.

    Returns:
        the index along *axis*, which stays as 1; the index in the flattened sample, shape (), when *axis* is None.

    Raises:
        ValueError: the axis is outside the shape or not static.

    >>> C.argmin([[1, 5, 3], [4, 2, 6]], axis=1).eval()
    array([[0.],
           [1.]], dtype=float32)
    """
    return reduce_over("argmin", ArgMin, x, axis, True, name)
