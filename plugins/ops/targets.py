"""Targets of losses and metrics: dense, or sparse with the class's number in place of a row of zeros and a one."""

from __future__ import annotations

from typing import Any

from ...core.axis import Axis, static_axis_number
from ...core.context import Context
from ...core.shape import Shape, broadcast
from ...core.sparse import SparseRows
from ...core.spec import Spec


def common_shape(output: Spec, target: Spec, axis: int | Axis, op: str) -> tuple[Shape, int]:
    """The static shape that output and target share, and the number of the class axis in it.

    Raises:
        ValueError: the shapes differ, or the axis is outside them.
    """
    left, right = output.dims, target.dims
    fits = len(left) == len(right) and all(a == b or min(a, b) < 0 for a, b in zip(left, right, strict=True))
    shape = broadcast(left, right) if fits else None
    if shape is None:
        raise ValueError("output and target must have the same static shape; bring one to the other's shape with C.reshape")
    return shape, static_axis_number(axis, len(shape), op)


def class_axis(ctx: Context, output: Any, axis: int | Axis) -> int:
    """Number of the class axis counted from the end, which is the same in arrays with and without rows."""
    number = axis.static_axis_index() if isinstance(axis, Axis) else axis
    if number < 0:
        return number
    return number - (output.ndim - (ctx.layouts[0] is not None))


def is_one_hot(target: Any, output: Any) -> bool:
    """Whether *target* is sparse, lies in the rows of *output* and names one class a row."""
    return isinstance(target, SparseRows) and target.shape == output.shape and target.is_one_hot


def dense(ctx: Context, target: Any) -> Any:
    """The target as an array."""
    if not isinstance(target, SparseRows):
        return target
    array = ctx.scratch("target", target.shape, target.dtype)
    target.to_dense(ctx.xp, array)
    return array
