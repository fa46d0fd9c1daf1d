"""Norms over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type, limits_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.samples import operator
from ...core.types.context import Context
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


class ReduceL2(Reduction):
    """Euclidean norm, right wherever the norm itself is a number of the element type."""

    op_name = "ReduceL2"
    reduction_op_name = "L2"
    keep_inputs = (0,)
    keep_output = True

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        measure(ctx, x, axes, y)

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        length, is_origin = ctx.scratch("length", y.shape, y.dtype), ctx.scratch("is_origin", y.shape, np.bool_)
        ctx.xp.equal(y, 0, out=is_origin)
        ctx.xp.add(y, is_origin, out=length)  # the gradient at the origin is 0
        ctx.xp.divide(x, length, out=dx)  # first, for dy / length may be more than there are numbers for
        ctx.xp.multiply(dx, dy, out=dx)


def measure(ctx: Context, x: Any, axes: tuple[int, ...], out: Any, factor: float = 1) -> None:
    """Write the Euclidean norm over *axes*, which stay as 1, times a factor into *out*; of float16 it is measured in float32."""
    xp = ctx.xp
    wide = computing_type(x.dtype)
    squares, norms = ctx.scratch("squares", x.shape, wide), ctx.scratch("norms", out.shape, wide)
    xp.multiply(x, x, out=squares, dtype=wide)
    ctx.sum_to(squares, norms)
    xp.sqrt(norms, out=norms)
    low, high = _exact_range(wide)
    if norms.size and not low < norms.min() <= norms.max() < high:
        _measure_scaled(ctx, x, axes, squares, norms, (norms <= low) | (norms >= high))
    xp.multiply(norms, factor, out=out, casting="same_kind")


def _exact_range(dtype: Any) -> tuple[float, float]:
    """Norms between these are sums of squares of which none that counts was rounded away, and none overflowed."""
    limits = limits_of(dtype)
    return float(limits.tiny / limits.eps) ** 0.5, float(limits.max) ** 0.5


def _measure_scaled(ctx: Context, x: Any, axes: tuple[int, ...], squares: Any, norms: Any, where: Any) -> None:
    """Write those norms whose squares are too small or too large, as the norm of quotients by the largest magnitude."""
    xp = ctx.xp
    xp.absolute(x, out=squares)
    limits = limits_of(norms.dtype)
    unit = xp.clip(squares.max(axis=axes, keepdims=True), limits.tiny, limits.max)  # normal, as GPUs take smaller numbers for 0
    xp.divide(squares, unit, out=squares)
    xp.multiply(squares, squares, out=squares)
    scaled = ctx.scratch("scaled", norms.shape, norms.dtype)
    ctx.sum_to(squares, scaled)
    xp.sqrt(scaled, out=scaled)
    xp.multiply(scaled, unit, out=scaled)
    xp.copyto(norms, scaled, where=where)


def _l1(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(np.abs(x), axis=axis, keepdims=keepdims)


def _l2(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


def _sum_square(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(x * x, axis=axis, keepdims=keepdims)


@operator(*samples(_l1, low=0.2))
def reduce_l1(x: TensorLike, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
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
def reduce_l2(x: TensorLike, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
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
def reduce_sum_square(x: TensorLike, axis: Axes = None, keepdims: bool = True, name: str = "") -> Function:
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
