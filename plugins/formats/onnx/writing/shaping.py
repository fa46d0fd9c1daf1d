"""Writes operators that give elements another shape or place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .....core.types.axis import Axis, static_axis_number
from ....ops.shaping import index_of
from ....ops.slicing import positions
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter

FIRST = -(2**63)
"""The end of a slice that goes backwards to the first element."""


def reshape(op: Any, to: ModelWriter, x: Value) -> str:
    """Write another shape for the same elements."""
    return to.shaped_like(x.name, to.result)


def transpose(op: Any, to: ModelWriter, x: Value) -> str:
    """Write another order of the axes."""
    order = [*range(x.leading), *(x.leading + axis for axis in op.order(len(x.shape)))]
    return to.transpose(x.name, order)


def cut(op: Any, to: ModelWriter, x: Value) -> str:
    """Write a range of elements along axes."""
    found = []
    for axis, begin, end, stride in op.cuts:
        number = static_axis_number(axis, len(x.shape), op.op_name)
        if x.shape[number] >= 0:
            begin, end, stride = positions(x.shape[number], begin, end, stride)
            end = FIRST if end < 0 else end
        elif stride < 0:
            begin, end = (end - 1, begin - 1 if begin else FIRST)
        elif end == 0:
            end = 2**63 - 1
        found.append((begin, end, x.leading + number, stride))
    starts, ends, axes, steps = zip(*found, strict=True)
    return str(to.node("Slice", x.name, *(to.integers(*numbers) for numbers in (starts, ends, axes, steps))))


def splice(op: Any, to: ModelWriter, *inputs: Value) -> str:
    """Write operands one after the other along an axis."""
    rank = max(len(x.shape) for x in inputs)
    index = -rank - 1 if op.axis == Axis.new_leading_axis() else index_of(op.axis)
    rank = max(rank, -index)
    at, result = index % rank, to.result
    parts = []
    for x in inputs:
        shape = (1,) * (rank - len(x.shape)) + x.shape
        wanted = (*result.shape[:at], shape[at], *result.shape[at + 1 :])
        leading = max(inputs, key=lambda one: one.leading).axes
        name = to.unsqueeze(x.name, [*range(x.leading, x.leading + rank - len(x.shape))]) if x.axes else x.name
        lined_up = name if x.axes else to.unsqueeze(name, list(range(rank - len(x.shape))))
        if shape != wanted or x.axes != leading:
            lined_up = to.expanded(lined_up, result, at, shape[at])
        parts.append(lined_up)
    return str(to.node("Concat", *parts, axis=result.leading + at))
