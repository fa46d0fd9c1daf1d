"""Targets of losses and metrics: dense, or sparse with the class's number in place of a row of zeros and a one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import Shape, broadcast, format_shape, size_of
from ...core.types.axis import Axis, static_axis_number
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.sparse import SparseRows
from ...core.types.spec import Spec
from .axes import with_dim


def loss_shape(output: Spec, target: Spec, axis: int | Axis, op: str) -> Shape:
    """The static shape of a loss along *axis* of the output: the operands' broadcast shape with 1 in place of the classes.

    Axes of length 1 in front that only the target has make no axes of the loss.

    Raises:
        ValueError: the shapes do not broadcast, the operands differ in the number of classes, or the axis is outside the output.
    """
    left, right = output.dims, target.dims
    number = static_axis_number(axis, len(left), op) - len(left)
    shape = broadcast(left, right)
    if shape is None or not _agree(left[number], right[number] if len(right) >= -number else 1):
        raise ValueError(
            f"output {format_shape(left)} and target {format_shape(right)} must have the same static shape, or broadcast on other axes "
            f"than that of the classes; {_remedy(left, right, number)}"
        )
    while len(shape) > len(left) and shape[0] == 1:
        shape = shape[1:]
    return with_dim(shape, number, 1)


def _remedy(output: Shape, target: Shape, axis: int) -> str:
    """How to bring an output and a target together that do not fit."""
    if size_of(target) == 1 and size_of(output) > 1:
        return f"class numbers become a target with C.one_hot(target, {output[axis]})"
    if len(output) == len(target) == 1:
        return "the model must have as many outputs as there are classes"
    return "bring one to the other's shape with C.reshape"


def _agree(classes: int, others: int) -> bool:
    return classes == others or classes < 0 or others < 0


def class_axis(ctx: Context, output: Any, axis: int | Axis) -> int:
    """Number of the class axis counted from the end, which is the same in arrays with and without rows."""
    number = axis.static_axis_index() if isinstance(axis, Axis) else axis
    if number < 0:
        return number
    return number - (output.ndim - (ctx.layouts[0] is not None))


class Rows:
    """An output and its target, lined up, and values derived from their shapes, computed once, as an instruction's arrays stay the same.

    Attributes:
        out: the losses.
        axis: axis of the classes, counted from the end.
        rank: number of static axes of the losses.
        z, y: output and target with as many static axes.
        full: shape of the losses with the classes in place of 1.
        is_one_hot: whether the target of this minibatch is sparse and names one class for each loss; found by :meth:`look`.
        largest: room for the place of the largest element of each row of classes, if these are the last axis.
    """

    def __init__(self, ctx: Context, out: Any, inputs: Sequence[Any], axis: int | Axis) -> None:
        self.out, self.axis = out, class_axis(ctx, inputs[0], axis)
        self.rank = out.ndim - (ctx.layout is not None)
        self.z, self.y = z, y = lined_up(inputs, ctx.layouts, self.rank)
        self._layouts = None if z is inputs[0] and y is inputs[1] else tuple(ctx.layouts)
        classes = z.shape[self.axis]
        self.full = with_dim(out.shape, self.axis, classes)
        self.is_one_hot = False
        self._may_be_one_hot = (
            self.axis == -1 and isinstance(y, SparseRows) and y.shape[-1] == classes and z.size == size_of(y.shape) == out.size * classes
        )
        if self.axis == -1:
            self.largest = ctx.scratch("largest", z.shape[:-1], np.intp)

    def look(self) -> bool:
        """Examine the target of this minibatch; whether it is one-hot."""
        self.is_one_hot = self._may_be_one_hot and self.y.is_one_hot
        return self.is_one_hot

    def lined_up(self, grads: Sequence[Any]) -> Sequence[Any]:
        """The operands' gradients, lined up as they are."""
        return grads if self._layouts is None else lined_up(grads, self._layouts, self.rank)


def lined_up(arrays: Sequence[Any], layouts: Sequence[Layout | None], rank: int) -> list[Any]:
    """The arrays with *rank* static axes: axes of length 1 are put in, or left out, in front of those that they have."""
    return [_with_rank(array, layout is not None, rank) for array, layout in zip(arrays, layouts, strict=True)]


def _with_rank(array: Any, has_rows: bool, rank: int) -> Any:
    if array is None or isinstance(array, SparseRows) or array.ndim == rank + has_rows:
        return array
    rows, static = array.shape[:has_rows], array.shape[has_rows:]
    return array.reshape(*rows, *(1,) * (rank - len(static)), *static[max(0, len(static) - rank) :])


def common_rank(ctx: Context, inputs: Sequence[Any]) -> int:
    """The larger number of static axes that operands have."""
    return max(array.ndim - (layout is not None) for array, layout in zip(inputs, ctx.layouts, strict=True))


def dense(ctx: Context, target: Any, rank: int) -> Any:
    """The target, the second operand, as an array of *rank* static axes."""
    if not isinstance(target, SparseRows):
        return target
    array = ctx.scratch("target", target.shape, target.dtype)
    target.to_dense(ctx.xp, array)
    return _with_rank(array, ctx.layouts[1] is not None, rank)
