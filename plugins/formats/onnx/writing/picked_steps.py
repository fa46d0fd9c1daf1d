"""Writes steps of sequences picked by the values of another sequence: where, gather and scatter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.common.dtypes import limits_of
from ..messages import ValueInfo
from .steps import as_column, numbers_of_sequences, steps_at, within
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def where(op: Any, to: ModelWriter, condition: Value) -> Value:
    """Write the numbers of the steps that a condition picks."""
    result, taken = to.result, _taken(to, condition)
    lengths = to.node("Gather", taken, to.constant(-1, np.int64), axis=1)
    longest = to.node("ReduceMax", lengths)
    picked = _steps_of_places(to, taken, longest)
    if len(result.axes) == 2:
        to.new_axis(result.axes[1], lengths)
    else:
        picked = to.node("Gather", picked, to.constant(0, np.int64), axis=1)
    made = to.cast(picked, result.dtype)
    to.once(("picked", made), lambda: picked)
    return result.called(made)


def _taken(to: ModelWriter, condition: Value) -> str:
    """How many steps have been taken up to each step: integers ``[batch, time]``.

    Fractions add up, and a step is taken as often as the sum passes a whole number.
    """
    axis = condition.axes[1]
    exact, zero = replace(condition, dtype=np.dtype(np.float64)), to.constant(0, np.float64)
    exact = exact.called(to.reshape(to.cast(condition.name, np.float64), [0, 0]))
    exact = replace(exact, shape=())
    known = exact.called(to.node("Where", to.node("IsNaN", exact.name), zero, exact.name))
    counted = to.masked(known, axis, 0) if to.has_lengths(axis) else known
    total = to.node("CumSum", counted.name, to.constant(1, np.int64))
    rounding = 1 - limits_of(np.promote_types(condition.dtype, np.float32)).eps
    whole = to.node("Ceil", to.node("Mul", total, to.constant(rounding, np.float64)))
    return to.cast(_highest_so_far(to, whole), np.int64)


def _highest_so_far(to: ModelWriter, x: str) -> str:
    """The maximum of each number and those before it, and 0."""
    nothing = to.node("Expand", to.constant(0, np.float64), to.size(x, 0))
    with to.inside("highest") as body:
        before, number = to.unique("before"), to.unique("number")
        highest = to.node("Max", before, number)
        body.input = [ValueInfo(before), ValueInfo(number)]
        body.output = [ValueInfo(highest), ValueInfo(to.node("Identity", highest))]
    _, found = to.node("Scan", nothing, x, outputs=2, body=body, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1])
    return str(found)


def _steps_of_places(to: ModelWriter, taken: str, longest: str) -> str:
    """The step from which each place of the result comes: the number of steps up to which no more have been taken than come before."""
    room = to.node("Add", longest, to.integers(1))
    none = to.node("Expand", to.constant(0, np.int64), to.shape([to.size(taken, 0), room]))
    ones = to.node("Expand", to.constant(1, np.int64), to.node("Shape", taken))
    counts = to.node("ScatterElements", none, taken, ones, axis=1, reduction="add")
    steps = to.node("CumSum", counts, to.constant(1, np.int64))
    return str(to.node("Slice", steps, to.integers(0), longest, to.integers(1)))


def _picked(to: ModelWriter, positions: Value) -> str:
    """The numbers of steps that :func:`where` has found, as integers."""
    return to.once(("picked", positions.name), lambda: to.cast(positions.name, np.int64))


def gather(op: Any, to: ModelWriter, x: Value, condition: Value, positions: Value) -> Value:
    """Write the steps that a condition picks."""
    return replace(to.result.called(steps_at(to, x, within(to, _picked(to, positions), x))), indices=x.indices)


def scatter(op: Any, to: ModelWriter, x: Value, condition: Value, positions: Value) -> str:
    """Write steps put where a condition says, with zeros between; padding goes to a place of its own, which is cut off."""
    x, picked, result = to.dense(x), _picked(to, positions), to.result
    beyond = to.steps(result.axes[1])
    picked = to.node("Where", to.mask(positions.axes[1]), picked, beyond) if len(positions.axes) == 2 else as_column(to, picked)
    name = x.name if len(x.axes) == 2 else to.unsqueeze(x.name, [1])
    own = to.node("Expand", numbers_of_sequences(to), to.node("Shape", picked))
    places = to.node("Concat", to.unsqueeze(own, [2]), to.unsqueeze(picked, [2]), axis=2)
    room = to.node("Add", beyond, to.integers(1))
    summed = np.promote_types(result.dtype, np.float32)  # ONNX Runtime adds up no float16 here
    empty = to.node("Expand", to.constant(0, summed), to.shape([to.batch(), room, *to.static_sizes(x)]))
    filled = to.node("ScatterND", empty, places, to.cast(name, summed), reduction="add")
    return to.cast(to.node("Slice", filled, to.integers(0), beyond, to.integers(1)), result.dtype)
