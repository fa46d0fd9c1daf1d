"""Sums, means and products over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type, limits_of
from ...core.common.shape import size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.samples import operator
from ...core.types.context import Context
from .axes import mean_over
from .reduction_base import Axes, Reduction, reduce_over, samples


class ReduceSum(Reduction):
    """Sum."""

    reduction_op_name = "Sum"

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        ctx.sum_to(x, y)

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        ctx.xp.copyto(dx, dy)


class ReduceMean(Reduction):
    """Arithmetic mean."""

    reduction_op_name = "Mean"

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        mean_over(ctx, x, axes, y)

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        ctx.xp.multiply(dy, size_of(dy.shape) / size_of(dx.shape), out=dx)


class ReduceProd(Reduction):
    """Product."""

    reduction_op_name = "Prod"
    keep_inputs = (0,)

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        x.prod(axis=axes, out=y, keepdims=True)

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        order = (*(axis for axis in range(x.ndim) if axis not in axes), *axes)
        last = x.transpose(order)
        factors = ctx.scratch("factors", last.shape, x.dtype)
        others = ctx.scratch("others", last.shape, x.dtype)
        ctx.xp.copyto(factors, last)
        n = size_of(tuple(x.shape[axis] for axis in axes))
        _products_of_others(ctx.xp, factors.reshape(-1, n), others.reshape(-1, n))
        ctx.xp.multiply(others, dy.transpose(order), out=dx.transpose(order))


def _products_of_others(xp: Any, factors: Any, others: Any) -> None:
    """Write the product of the other factors in each row: of those before and those after, since a factor may be zero."""
    others[:, 0] = 1
    xp.cumprod(factors[:, :-1], axis=1, out=others[:, 1:])
    backwards = factors[:, ::-1]
    xp.cumprod(backwards, axis=1, out=backwards)
    others[:, :-1] *= factors[:, 1:]


class ReduceLogSum(Reduction):
    """Logarithm of the sum of the exponentials."""

    reduction_op_name = "LogSum"
    keep_inputs = (0,)
    keep_output = True

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        xp = ctx.xp
        highest = ctx.scratch("highest", y.shape, x.dtype)
        powers = ctx.scratch("powers", x.shape, x.dtype)
        x.max(axis=axes, out=highest, keepdims=True)
        limits = limits_of(x.dtype)
        xp.clip(highest, limits.min, limits.max, out=highest)  # an infinite maximum must not give inf - inf
        xp.subtract(x, highest, out=powers)
        xp.exp(powers, out=powers)
        total = ctx.scratch("total", y.shape, computing_type(y.dtype))
        ctx.sum_to(powers, total)
        xp.log(total, out=total)
        xp.add(total, highest, out=y)

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        xp = ctx.xp
        total = ctx.scratch("total", y.shape, computing_type(y.dtype))
        xp.subtract(x, y, out=dx)
        xp.exp(dx, out=dx)
        ctx.sum_to(dx, total)  # 1 but for the rounding of a large y
        xp.divide(dy, total, out=total)
        xp.multiply(dx, total, out=dx)


def _log_sum_exp(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


@operator(*samples(np.sum))
def reduce_sum(x: TensorLike, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
    """Sum over axes.

    Args:
        x: operand of any shape.
        axis: static axis, tuple of axes, ``Axis.default_batch_axis()``, ``Axis.all_axes()``, or None for all static axes.
        keepdims: keep each reduced static axis as 1; all static axes together are dropped in any case.
        name: name of the Function.

    Returns:
        the sum of each sample, shape () or with ones for *axis*; over the batch axis or all axes, a value without dynamic axes.

    Raises:
        ValueError: an axis outside the shape, a sequence axis, or ``keepdims=False`` together with all axes.

    >>> C.reduce_sum([[1, 2, 3], [4, 5, 6]], axis=0).eval()
    array([[5., 7., 9.]], dtype=float32)
    """
    return reduce_over("reduce_sum", ReduceSum, x, axis, keepdims, name)


@operator(*samples(np.mean))
def reduce_mean(x: TensorLike, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
    """Mean over axes; over the batch or all axes, of every row there is.

    Args:
        x: operand of any shape.
        axis: static axis, tuple of axes, ``Axis.default_batch_axis()``, ``Axis.all_axes()``, or None for all static axes.
        keepdims: keep each reduced static axis as 1; all static axes together are dropped in any case.
        name: name of the Function.

    Returns:
        the mean of each sample, shape () or with ones for *axis*; over the batch axis or all axes, a value without dynamic axes.

    Raises:
        ValueError: an axis outside the shape, a sequence axis, or ``keepdims=False`` together with all axes.

    >>> C.reduce_mean([[1, 2, 3], [4, 5, 6]], axis=1).eval()
    array([[2.],
           [5.]], dtype=float32)
    """
    return reduce_over("reduce_mean", ReduceMean, x, axis, keepdims, name)


@operator(*samples(np.prod))
def reduce_prod(x: TensorLike, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
    """Product over axes.  The gradient is right for factors of zero too.

    Args:
        x: operand of any shape.
        axis: static axis, tuple of axes, ``Axis.default_batch_axis()``, ``Axis.all_axes()``, or None for all static axes.
        keepdims: keep each reduced static axis as 1; all static axes together are dropped in any case.
        name: name of the Function.

    Returns:
        the product of each sample, shape () or with ones for *axis*; over the batch axis or all axes, a value without dynamic axes.

    Raises:
        ValueError: an axis outside the shape, a sequence axis, or ``keepdims=False`` together with all axes.

    >>> C.reduce_prod([[1, 2, 3], [4, 5, 6]], axis=0).eval()
    array([[ 4., 10., 18.]], dtype=float32)
    """
    return reduce_over("reduce_prod", ReduceProd, x, axis, keepdims, name)


@operator(*samples(_log_sum_exp))
def reduce_log_sum_exp(x: TensorLike, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
    """Logarithm of the sum of the exponentials over axes, computed so that nothing overflows.

    Args:
        x: operand of any shape.
        axis: static axis, tuple of axes, ``Axis.default_batch_axis()``, ``Axis.all_axes()``, or None for all static axes.
        keepdims: keep each reduced static axis as 1; all static axes together are dropped in any case.
        name: name of the Function.

    Returns:
        the logarithm of each sample, shape () or with ones for *axis*; over the batch axis or all axes, a value without dynamic axes.

    Raises:
        ValueError: an axis outside the shape, a sequence axis, or ``keepdims=False`` together with all axes.

    >>> C.reduce_log_sum_exp([[1000, 1000]], axis=1).eval().round(3)
    array([[1000.693]], dtype=float32)
    """
    return reduce_over("reduce_log_sum_exp", ReduceLogSum, x, axis, keepdims, name)
