"""Norms over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.context import Context
from ...core.function import Function
from ...core.op import operator
from .reduction_base import Axes, Reduction, reduce_over, samples


class ReduceL1(Reduction):
    """Sum of magnitudes."""

    op_name = "ReduceL1"
    reduction_op_name = "L1"
    keep_inputs = (0,)

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        magnitudes = ctx.scratch("magnitudes", x.shape, x.dtype)
        ctx.xp.absolute(x, out=magnitudes)
        ctx.sum_to(magnitudes, y)

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        ctx.xp.sign(x, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


class ReduceSumSquare(Reduction):
    """Sum of squares."""

    op_name = "ReduceSumSquare"
    reduction_op_name = "SumSquare"
    keep_inputs = (0,)

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        squares = ctx.scratch("squares", x.shape, x.dtype)
        ctx.xp.multiply(x, x, out=squares)
        ctx.sum_to(squares, y)

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        ctx.xp.multiply(x, 2, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


class ReduceL2(ReduceSumSquare):
    """Euclidean norm."""

    op_name = "ReduceL2"
    reduction_op_name = "L2"
    keep_output = True

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        super().reduce(ctx, y, x, axes)
        ctx.xp.sqrt(y, out=y)

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        slope = ctx.scratch("slope", y.shape, y.dtype)
        ctx.xp.maximum(y, np.finfo(y.dtype).tiny, out=slope)  # the gradient at the origin is 0
        ctx.xp.divide(dy, slope, out=slope)
        ctx.xp.multiply(x, slope, out=dx)


def _l1(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(np.abs(x), axis=axis, keepdims=keepdims)


def _l2(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


def _sum_square(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(x * x, axis=axis, keepdims=keepdims)


@operator(*samples(_l1, low=0.2))
def reduce_l1(x: Any, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
    """Sum of magnitudes over axes.

    Args:
        x: operand of any shape.
        axis: static axis, tuple of axes, ``Axis.default_batch_axis()``, ``Axis.all_axes()``, or None for all static axes.
        keepdims: keep each reduced static axis as 1; all static axes together are dropped in any case.
        name: name of the Function.

    Returns:
        the L1 norm of each sample, shape () or with ones for *axis*; over the batch axis or all axes, a value without dynamic axes.

    Raises:
        ValueError: an axis outside the shape, a sequence axis, or ``keepdims=False`` together with all axes.

    >>> C.reduce_l1([[1, -2], [-3, 4]], axis=1).eval()
    array([[3.],
           [7.]], dtype=float32)
    """
    return reduce_over("reduce_l1", ReduceL1, x, axis, keepdims, name)


@operator(*samples(_l2, low=0.2))
def reduce_l2(x: Any, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
    """Square root of the sum of squares over axes.  At the origin the gradient is 0.

    Args:
        x: operand of any shape.
        axis: static axis, tuple of axes, ``Axis.default_batch_axis()``, ``Axis.all_axes()``, or None for all static axes.
        keepdims: keep each reduced static axis as 1; all static axes together are dropped in any case.
        name: name of the Function.

    Returns:
        the Euclidean norm of each sample, shape () or with ones for *axis*; over the batch axis or all axes, a value without dynamic axes.

    Raises:
        ValueError: an axis outside the shape, a sequence axis, or ``keepdims=False`` together with all axes.

    >>> C.reduce_l2([[3, -4], [5, 12]], axis=1).eval()
    array([[ 5.],
           [13.]], dtype=float32)
    """
    return reduce_over("reduce_l2", ReduceL2, x, axis, keepdims, name)


@operator(*samples(_sum_square))
def reduce_sum_square(x: Any, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
    """Sum of squares over axes.

    Args:
        x: operand of any shape.
        axis: static axis, tuple of axes, ``Axis.default_batch_axis()``, ``Axis.all_axes()``, or None for all static axes.
        keepdims: keep each reduced static axis as 1; all static axes together are dropped in any case.
        name: name of the Function.

    Returns:
        the sum of each sample, shape () or with ones for *axis*; over the batch axis or all axes, a value without dynamic axes.

    Raises:
        ValueError: an axis outside the shape, a sequence axis, or ``keepdims=False`` together with all axes.

    >>> C.reduce_sum_square([[1, 2], [3, 4]], axis=1).eval()
    array([[ 5.],
           [25.]], dtype=float32)
    """
    return reduce_over("reduce_sum_square", ReduceSumSquare, x, axis, keepdims, name)
