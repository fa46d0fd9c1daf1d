"""Writes operators that pick steps of sequences by their number, or mark them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .steps import as_column, step, steps_at, within
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter

END = 2**31 - 1
"""What stands for the end of an axis."""


def is_first(op: Any, to: ModelWriter, x: Value) -> str:
    """Write 1 at the first step, 0 at the others."""
    return _marked(to, to.constant([[0]], np.int64))


def is_last(op: Any, to: ModelWriter, x: Value) -> str:
    """Write 1 at the last step, 0 at the others."""
    return _marked(to, to.node("Sub", as_column(to, to.lengths(to.result.axes[1])), to.constant(1, np.int64)))


def _marked(to: ModelWriter, number: str) -> str:
    result = to.result
    found = to.cast(to.node("Equal", to.positions(result.axes[1]), number), result.dtype)
    return str(to.node("Expand", found, to.shape([to.batch(), to.steps(result.axes[1])])))


def cut_steps(op: Any, to: ModelWriter, x: Value) -> Value:
    """Write the steps from one number up to another."""
    begin, end = op.begin_index, op.end_index
    if op.is_one_step:
        made = step(to, x, begin)
    elif to.has_lengths(x.axes[1]):
        made = _several_steps(to, x, begin, end)
    else:
        made = to.node("Slice", x.name, to.integers(begin), to.integers(end or END), to.integers(1))
    return replace(to.result.called(made), indices=x.indices)


def _several_steps(to: ModelWriter, x: Value, begin: int, end: int) -> str:
    lengths, axis = to.lengths(x.axes[1]), to.result.axes[1]
    first, last = (_place(to, number, number < 0 or (number == 0 and behind), lengths) for number, behind in ((begin, False), (end, True)))
    to.new_axis(axis, to.node("Sub", last, first))
    if begin >= 0:
        behind = to.node("Add", to.longest(axis), to.integers(begin))
        return str(to.node("Slice", x.name, to.integers(begin), behind, to.integers(1)))
    return steps_at(to, x, within(to, to.node("Add", to.positions(axis), as_column(to, first)), x))


def _place(to: ModelWriter, number: int, from_end: bool, lengths: str) -> str:
    """The number of a step of each sequence, which is not outside of it."""
    if from_end:
        return str(to.node("Max", to.node("Add", lengths, to.constant(number, np.int64)), to.constant(0, np.int64)))
    return str(to.node("Min", lengths, to.constant(number, np.int64)))
