"""Writes operators that bring values onto other dynamic axes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .steps import as_column, steps_at
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def repeat(op: Any, to: ModelWriter, x: Value, like: Value) -> Value:
    """Write a value brought onto the dynamic axes of another, with which it has its steps in common, or that repeat it."""
    result = replace(to.result, indices=x.indices)
    if len(x.axes) == 2 and x.axes != result.axes:
        last = to.node("Sub", as_column(to, to.lengths(x.axes[1])), to.constant(1, np.int64))
        numbers = to.node("Min", to.positions(result.axes[1]), last) if len(result.axes) == 2 else to.squeeze(last, [1])
        return result.called(steps_at(to, x, numbers))
    return result.called(to.repeated(x, result))


def unpack(op: Any, to: ModelWriter, x: Value) -> str:
    """Write steps as a static axis."""
    axis = x.axes[1]
    if not to.has_lengths(axis):
        return x.name
    return _without_excess(to, to.masked(x, axis, op.sequence_unpack_padding_value).name, x)


def unpack_with_mask(op: Any, to: ModelWriter, x: Value) -> tuple[str, str]:
    """Write steps as a static axis, and which of them there are."""
    mask = to.cast(to.mask(x.axes[1]), to.results[1].dtype)
    return unpack(op, to, x), _without_excess(to, mask, x)


def _without_excess(to: ModelWriter, name: str, x: Value) -> str:
    """Without the steps behind the longest sequence."""
    if not to.with_lengths:
        return name
    return str(to.node("Slice", name, to.integers(0), to.longest(x.axes[1]), to.integers(1)))


def to_sequence(op: Any, to: ModelWriter, x: Value) -> Value:
    """Write a static axis as steps."""
    result = replace(to.result, indices=x.indices)
    if to.with_lengths:
        to.new_axis(result.axes[1], to.node("Expand", to.size(x.name, 1), to.size(x.name, 0)))
    return result.called(x.name)


def to_sequence_of_lengths(op: Any, to: ModelWriter, x: Value, lengths: Value) -> Value:
    """Write a static axis as steps, of which there are as many as a value says."""
    result = replace(to.result, indices=x.indices)
    axis = result.axes[1]
    to.new_axis(axis, to.cast(to.reshape(lengths.name, [-1]), np.int64))
    return result.called(to.node("Slice", x.name, to.integers(0), to.longest(axis), to.integers(1)))


def to_sequence_like(op: Any, to: ModelWriter, x: Value, like: Value) -> Value:
    """Write a static axis as steps, of which there are as many as another sequence has."""
    result = replace(to.result, indices=x.indices)
    last = to.node("Sub", to.size(x.name, 1), to.integers(1))
    numbers = to.node("Min", to.squeeze(to.positions(result.axes[1]), [0]), last)
    return result.called(to.node("Gather", x.name, numbers, axis=1))


def same_elements(op: Any, to: ModelWriter, x: Value) -> str:
    """Write nothing: the batch axis, which comes first, becomes the first static axis, or that the batch axis."""
    return x.name
