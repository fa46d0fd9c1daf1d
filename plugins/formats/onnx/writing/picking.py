"""Writes operators that pick elements by numbers, and that make such numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.common.dtypes import is_bfloat16
from .....core.types.axis import static_axis_number
from .reductions import masked
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def gather(op: Any, to: ModelWriter, reference: Value, numbers: Value) -> str:
    """Write the elements that numbers choose; dynamic axes go to the front."""
    at = static_axis_number(op.axis, len(reference.shape), op.op_name)
    chosen = to.cast(masked(to, numbers, 0).name, np.int64)
    if to.stepping:  # in a recurrence there are steps that belong to no sequence, whatever their numbers are
        last = to.node("Sub", to.squeeze(to.size(reference.name, at), [0]), to.constant(1, np.int64))
        chosen = str(to.node("Min", to.node("Max", chosen, to.constant(0, np.int64)), last))
    made = str(to.node("Gather", reference.name, chosen, axis=at))
    dynamic = range(at, at + numbers.leading)
    rank = numbers.leading + len(to.result.shape)
    return to.transpose(made, [*dynamic, *(axis for axis in range(rank) if axis not in dynamic)])


def one_hot(op: Any, to: ModelWriter, x: Value) -> Value:
    """Write vectors with a 1 at the place of a number; of numbers that are no place, vectors of zeros."""
    at = static_axis_number(op.onehot_axis, len(x.shape) + 1, op.op_name)
    numbers, result = to.cast(x.name, np.int64), to.result
    if at == len(x.shape):
        return result.called(numbers).as_indices()
    places = np.arange(op.num_class).reshape(-1, *(1,) * (len(x.shape) - at))
    same = to.node("Equal", to.unsqueeze(numbers, [x.leading + at]), to.constant(places, np.int64))
    return result.called(to.cast(same, result.dtype))


def top(op: Any, to: ModelWriter, x: Value) -> tuple[str, str]:
    """Write the largest elements and their places."""
    axis = x.axis(static_axis_number(op.axis, len(x.shape), op.op_name))
    wide = to.widened(x) if is_bfloat16(x.dtype) else x
    values, places = to.node("TopK", wide.name, to.integers(op.num_items), outputs=2, axis=axis)
    return to.narrowed(wide.called(values), x.dtype), to.cast(places, x.dtype)


def eye(op: Any, to: ModelWriter, x: Value) -> str:
    """Write a matrix with ones along the diagonal."""
    made = to.node("EyeLike", to.dense(x).name, dtype=1)
    return str(made) if x.dtype == np.float32 else to.cast(made, x.dtype)


def constant(op: Any, to: ModelWriter, x: Value) -> str:
    """Write one number, as often as the operand has elements."""
    return str(to.node("Expand", to.constant(op.fill_value, x.dtype), to.shape(to.sizes(x))))
