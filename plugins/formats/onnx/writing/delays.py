"""Writes delays outside of recurrences: all steps at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .ends import END
from .steps import as_column, steps_at, where, within
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def delay(op: Any, to: ModelWriter, x: Value, initial: Value) -> str:
    """Write values of earlier or later steps."""
    x = to.result.called(to.repeated(x, to.result))
    return _earlier(to, x, initial, op.steps_back) if op.steps_back > 0 else _later(to, x, initial, -op.steps_back)


def _earlier(to: ModelWriter, x: Value, initial: Value, count: int) -> str:
    if len(initial.axes) == 2:
        initial = replace(initial_steps(to, initial, count), axes=x.axes)
    joined = to.node("Concat", _of_steps(to, initial, count, x), x.name, axis=1)
    return str(to.node("Slice", joined, to.integers(0), to.steps(x.axes[1]), to.integers(1)))


def _later(to: ModelWriter, x: Value, initial: Value, count: int) -> str:
    axis, result = x.axes[1], to.result
    if not to.has_lengths(axis):
        if len(initial.axes) == 2:
            initial = replace(first_steps(to, initial, count), axes=x.axes)
        joined = to.node("Concat", x.name, _of_steps(to, initial, count, x), axis=1)
        return str(to.node("Slice", joined, to.integers(count), to.integers(END), to.integers(1)))
    there = to.node("Add", to.positions(axis), to.constant(count, np.int64))
    if len(initial.axes) == 2:
        beyond = to.node("Sub", there, as_column(to, to.lengths(axis)))
        only = to.node("Equal", as_column(to, to.lengths(initial.axes[1])), to.constant(1, np.int64))
        number = to.node("Where", only, to.constant(0, np.int64), within(to, beyond, initial))
        behind = to.repeated(Value(steps_at(to, initial, number), initial.shape, x.dtype, x.axes), result)
    else:
        behind = to.lined_up_with(initial, x.axes, len(result.shape))
    taken = to.node("Gather", x.name, to.squeeze(within(to, there, x), [0]), axis=1)
    inside = to.node("Less", there, as_column(to, to.lengths(axis)))
    return where(to, inside, 2, result, taken, behind)


def initial_steps(to: ModelWriter, initial: Value, count: int) -> Value:
    """The last steps of initial states that are sequences, one for each step of a delay, or of a sequence of one step this one."""
    lengths = as_column(to, to.lengths(initial.axes[1]))
    number = to.node("Add", to.node("Sub", lengths, to.constant(count, np.int64)), to.integers(*range(count)))
    return initial.called(steps_at(to, initial, to.node("Max", number, to.constant(0, np.int64))))


def first_steps(to: ModelWriter, initial: Value, count: int) -> Value:
    """The first steps of initial states that are sequences, one for each step of a delay, or of a sequence of one step this one."""
    lengths = as_column(to, to.lengths(initial.axes[1]))
    number = to.node("Min", to.integers(*range(count)), to.node("Sub", lengths, to.constant(1, np.int64)))
    return initial.called(steps_at(to, initial, number))


def _of_steps(to: ModelWriter, initial: Value, count: int, like: Value) -> str:
    """Initial states for so many steps of each sequence."""
    name = to.lined_up_with(initial, like.axes, len(like.shape))
    return str(to.node("Expand", name, to.shape([to.batch(), count, *to.static_sizes(like)])))
