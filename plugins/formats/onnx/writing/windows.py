"""Writes windows along the sequence axis, which a convolution meets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .steps import as_column, steps_at, where, within
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def windows(op: Any, to: ModelWriter, filters: Value, x: Value) -> str:
    """Write the steps that the taps of filters meet side by side, zeros where these lie outside of the sequence."""
    kernel, stride, dilation, padded = op.in_time(filters.shape, len(x.shape))
    lengths, axis, reach = as_column(to, to.lengths(x.axes[1])), to.result.axes[1], (kernel - 1) * dilation
    one = to.constant(1, np.int64)
    padding = to.constant([[reach // 2 if padded else 0]], np.int64)
    if axis != x.axes[1]:
        strides = to.constant(stride, np.int64)
        room = to.node("Sub", lengths, to.constant(1 if padded else reach + 1, np.int64))
        places = to.node("Add", to.node("Div", room, strides), one)
        to.new_axis(axis, to.squeeze(places, [1]))
        if padded:
            beside = to.node("Sub", room, to.node("Mul", to.node("Sub", places, one), strides))
            padding = to.node("Sub", padding, to.node("Div", beside, to.constant(2, np.int64)))
    first = to.node("Sub", to.node("Mul", to.positions(axis), to.constant(stride, np.int64)), padding)
    met = to.node("Add", to.unsqueeze(first, [2]), to.integers(*(dilation * tap for tap in range(kernel))))
    met = to.node("Add", met, to.node("Mul", to.unsqueeze(lengths, [2]), to.constant(0, np.int64)))
    inside = to.node("And", to.node("Less", met, to.unsqueeze(lengths, [2])), to.node("GreaterOrEqual", met, to.constant(0, np.int64)))
    taken = Value(steps_at(to, x, within(to, met, x)), (kernel, *x.shape), x.dtype, to.result.axes)
    made = where(to, inside, 3, taken, taken.name, to.constant(0, x.dtype))
    order = list(range(3, taken.rank))
    return to.transpose(made, [0, 1, *order[: op.reduction_rank], 2, *order[op.reduction_rank :]])
