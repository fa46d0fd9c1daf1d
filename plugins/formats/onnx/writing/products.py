"""Writes products of matrices and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.common.shape import Shape, size_of
from ....ops.product import TransposeTimes
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def times(op: Any, to: ModelWriter, left: Value, right: Value) -> str:
    """Write a product that sums over the last axes of the left operand and the first of the right one."""
    if isinstance(op, TransposeTimes):
        right, output_rank = _transposed(to, right), 1
    else:
        output_rank = op.output_rank
    summed = len(right.shape) - output_rank
    rest, outer = left.shape[: len(left.shape) - summed], right.shape[summed:]
    if left.indices and summed == 1 and not right.axes:
        return _embedding(to, left, right, rest, outer)
    left = to.dense(left)
    right = to.dense(right)
    if right.axes:
        return _by_rows(to, left, right, summed, rest, outer)
    rows = left.name if summed == 1 else to.with_static(left, [*rest, -1])
    weights = right.name if summed == 1 == output_rank else to.with_static(right, [-1, size_of(outer)])
    made = to.node("MatMul", rows, weights)
    if output_rank == 1 and (left.axes or rest):
        return str(made)
    return to.shaped_like(made, to.result)


def user_times(op: Any, to: ModelWriter, weights: Value, x: Value) -> str:
    """Write CNTK's example of a native user function."""
    return str(to.node("MatMul", x.name, weights.name))


def _by_rows(to: ModelWriter, left: Value, right: Value, summed: int, rest: Shape, outer: Shape) -> str:
    """A product of matrices for each sample, or step."""
    axes = to.result.axes
    a = to.with_static(left, [_count(rest), -1] if len(left.shape) != 2 or summed != 1 else None)
    b = to.with_static(right, [-1, _count(outer)] if len(right.shape) != 2 or summed != 1 else None)
    matrices = [to.lined_up_with(Value(name, (0, 0), x.dtype, x.axes), axes, 2) for name, x in ((a, left), (b, right))]
    return to.shaped_like(to.node("MatMul", *matrices), to.result)


def _count(shape: Shape) -> int:
    """How many elements a shape has; -1 where that is known with the data."""
    return size_of(shape) if all(size >= 0 for size in shape) else -1


def _embedding(to: ModelWriter, left: Value, right: Value, rest: Shape, outer: Shape) -> str:
    """The rows of a matrix that numbers choose; of a number that is none of a row, zeros."""
    zero = to.constant(0, np.int64)
    is_row = to.node("And", to.node("GreaterOrEqual", left.name, zero), to.node("Less", left.name, to.constant(left.shape[-1], np.int64)))
    rows = to.node("Gather", right.name, to.node("Where", is_row, left.name, zero), axis=0)
    rank = left.leading + len(rest)
    there = to.unsqueeze(is_row, range(rank, rank + len(outer)))
    return str(to.node("Where", there, rows, to.constant(0, right.dtype)))


def _transposed(to: ModelWriter, right: Value) -> Value:
    right = to.dense(right)
    if len(right.shape) == 1:
        return Value(to.unsqueeze(right.name, [right.rank]), (*right.shape, 1), right.dtype, right.axes)
    order = [*range(right.leading), right.leading + 1, right.leading]
    return Value(to.transpose(right.name, order), right.shape[::-1], right.dtype, right.axes)
