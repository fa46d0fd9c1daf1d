"""Axes of arrays: where a reduction runs, whether or not the array has rows in front of its static axes."""

from __future__ import annotations

from typing import Any

from ...core.common.dtypes import computing_type
from ...core.common.shape import Shape, size_of
from ...core.types.axis import Axis, static_axis_number
from ...core.types.context import Context


def static_axes(ctx: Context, operand: int, array: Any, axis: int | Axis | None, op: str) -> tuple[int, ...]:
    """Axes of *array*, laid out like the given operand, that stand for one static *axis*, or for all of them when it is None."""
    rows = 0 if ctx.layouts[operand] is None else 1
    if axis is None:
        return tuple(range(rows, array.ndim))
    return (rows + static_axis_number(axis, array.ndim - rows, op),)


def kept_shape(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """The shape that is left after reducing *axes*, which stay as 1."""
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))


def mean_over(ctx: Context, array: Any, axes: tuple[int, ...], out: Any) -> None:
    """Write the mean over *axes*, which stay as 1, into *out*."""
    count = size_of(tuple(array.shape[axis] for axis in axes))
    sums = ctx.scratch("sums", out.shape, computing_type(out.dtype))  # float16 may not hold them
    ctx.sum_to(array, sums)
    ctx.xp.divide(sums, count, out=out, casting="same_kind")


def with_dim(shape: Shape, axis: int, dim: int) -> Shape:
    """The shape with the dimension of one axis, which may be counted from the end, replaced."""
    dims = list(shape)
    dims[axis] = dim
    return tuple(dims)
