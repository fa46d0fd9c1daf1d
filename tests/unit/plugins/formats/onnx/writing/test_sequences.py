"""Operators on sequences in ONNX models: padding, whatever is in it, reaches no result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ragged_models import agree, samples, sequences

import cntk as C
from cntk import sequence as S
from cntk.layers import PastValueWindow
from cntk.plugins.ops.sequence_windows import SequenceWindows

X = C.sequence.input_variable(3, name="x")
SCALAR = C.sequence.input_variable((), name="n")
STATE = C.input_variable(3, name="state")
OTHER = C.sequence.input_variable(3, sequence_axis=C.Axis("other"), name="other")
MATRIX = C.sequence.input_variable((2, 3), name="matrix")
STATIC = C.input_variable((5, 3), name="static")
COUNT = C.input_variable((), name="count")
TABLE = C.parameter((3, 4), init=np.float32(np.arange(12).reshape(3, 4) / 10))


def _large(x: Any) -> Any:
    """At least the last step of each sequence."""
    return C.greater(C.times(x, np.ones((3, 1), x.dtype)) + 100 * S.is_last(x), 0)


FUNCTIONS: dict[str, Any] = {
    "past value": lambda: S.past_value(X),
    "past value, further than there are steps": lambda: S.past_value(X, 7, time_step=6),
    "past value, state of each sample": lambda: S.past_value(X, STATE, time_step=2),
    "past value, parameter": lambda: S.past_value(X, C.parameter(3, init=0.5), time_step=2),
    "past value, state of another shape": lambda: S.past_value(X, C.parameter((2, 1), init=0.5), time_step=1),
    "past value, sequence as state": lambda: S.past_value(X, OTHER, time_step=2),
    "past value of scalars": lambda: S.past_value(SCALAR, 3),
    "future value": lambda: S.future_value(X),
    "future value, further than there are steps": lambda: S.future_value(X, 7, time_step=6),
    "future value, state of each sample": lambda: S.future_value(X, STATE, time_step=2),
    "future value, state of another shape": lambda: S.future_value(X, C.parameter((2, 1), init=0.5), time_step=1),
    "future value, sequence as state": lambda: S.future_value(X, OTHER, time_step=2),
    "future value of scalars": lambda: S.future_value(SCALAR, 3),
    "past value of free dimension": lambda: S.past_value(S.broadcast_as(S.unpack(OTHER, 0, no_mask_output=True), X), 7, time_step=2),
    "future value of free dimension": lambda: S.future_value(S.broadcast_as(S.unpack(OTHER, 0, no_mask_output=True), X), 7, time_step=2),
    "window": lambda: PastValueWindow(3, axis=-2)(X),
    "window backwards": lambda: PastValueWindow(3, axis=-2, go_backwards=True)(X),
    "first": lambda: S.first(X),
    "last": lambda: S.last(X),
    "last of scalars": lambda: S.last(SCALAR),
    "is first": lambda: S.is_first(X),
    "is last": lambda: S.is_last(X),
    "last but one, of delayed": lambda: S.slice(S.past_value(X), -1, 0),
    "sum": lambda: S.reduce_sum(MATRIX),
    "maximum": lambda: S.reduce_max(MATRIX),
    "softmax": lambda: S.softmax(MATRIX),
    "product over steps": lambda: C.times(X, X, infer_input_rank_to_map=C.TIMES_REDUCE_SEQUENCE_AXIS_WITHOUT_INFERRED_INPUT_RANK),
    "where": lambda: S.where(_large(X)),
    "where, fractions": lambda: S.where(S.broadcast_as(0.4, X)),
    "where, repeated": lambda: S.where(S.broadcast_as(2.5, X)),
    "where, negative numbers": lambda: S.where(1.5 - 2.5 * S.past_value(S.is_first(X))),
    "gather": lambda: S.gather(X, _large(X)),
    "gather, repeated": lambda: S.gather(MATRIX, S.broadcast_as(2.5, MATRIX)),
    "gather one": lambda: S.gather(X, S.is_first(X), new_sequence_axis_typeinfo=(0, 1)),
    "scatter": lambda: S.scatter(S.gather(X, _large(X)) * 2, _large(X)),
    "scatter, several to one": lambda: S.scatter(S.gather(X, S.broadcast_as(2, X)) * 2, S.broadcast_as(2, X)),
    "scatter one": lambda: S.scatter(S.last(X), S.is_first(X), new_sequence_axis_typeinfo=(0, 1)),
    "broadcast": lambda: S.broadcast_as(STATE, X),
    "broadcast a number": lambda: S.reduce_sum(S.broadcast_as(1, X)),
    "broadcast a table": lambda: S.broadcast_as(TABLE, X),
    "last broadcast": lambda: X - S.broadcast_as(S.last(X), X),
    "reconciled": lambda: C.reconcile_dynamic_axes(C.to_sequence_like(STATIC, X), OTHER),
    "unpacked": lambda: S.unpack(X, 0, no_mask_output=True),
    "unpacked, with mask": lambda: S.unpack(X, -5),
    "unpacked, then calculated with": lambda: S.unpack(X, -5, no_mask_output=True) * TABLE[0, :3],
    "made of static axis": lambda: C.to_sequence(STATIC) * 2,
    "delayed, made of static axis": lambda: S.past_value(C.to_sequence(STATIC)),
    "made of static axis, with lengths": lambda: S.past_value(C.to_sequence(STATIC, COUNT)),
    "made like another": lambda: S.future_value(C.to_sequence_like(STATIC, X)) + X,
    "batch unpacked and back": lambda: C.to_batch(C.unpack_batch(STATE) * 2),
}
for kernel, stride, dilation, padding in (
    (3, 1, 1, True),
    (2, 1, 1, True),
    (3, 2, 1, True),
    (2, 3, 1, True),
    (2, 1, 1, False),
    (2, 2, 1, False),
    (2, 1, 2, True),
):
    FUNCTIONS[f"windows of {kernel}, {stride} apart, {dilation} wide{', padded' * padding}"] = (
        lambda kernel=kernel, stride=stride, dilation=dilation, padding=padding: SequenceWindows(
            (1, stride, 1), (1, dilation, 1), (False, padding, False), 1
        )(C.parameter((4, 2, kernel, 3), init=1), MATRIX)
    )
for begin, end in ((1, 0), (0, -1), (0, 2), (-2, 0), (-3, -1), (2, 3), (-1, 0), (-2, -1), (1, -1), (-3, 7)):
    FUNCTIONS[f"slice {begin} to {end}"] = lambda begin=begin, end=end: S.slice(X, begin, end)


@pytest.fixture
def feeds() -> Any:
    def made(lengths: tuple[int, ...]) -> dict[Any, Any]:
        count = len(lengths)
        other = [4] * count
        return {
            X: sequences(3, lengths),
            SCALAR: sequences((), lengths),
            MATRIX: sequences((2, 3), lengths),
            STATE: samples(3, count),
            OTHER: sequences(3, other),
            STATIC: samples((5, 3), count),
            COUNT: np.float32([5, 1, 3][:count]),
        }

    return made


def _given(function: Any, feeds: dict[Any, Any]) -> dict[Any, Any]:
    return {variable: values for variable, values in feeds.items() if variable in function.arguments}


@pytest.mark.parametrize("lengths", [(4, 4, 4), (4, 3, 5), (3,)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(name: str, lengths: tuple[int, ...], feeds: Any) -> None:
    function = FUNCTIONS[name]()
    given = _given(function, feeds(lengths))
    if name == "reconciled":
        given[OTHER] = sequences(3, lengths)
    agree(function, given)
    if "unpacked" not in name:
        agree(function, given, behind=2)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if "slice" not in name and ("windows" not in name or "padded" in name)])
def test_sequences_of_one_step(name: str, feeds: Any) -> None:
    function = FUNCTIONS[name]()
    given = _given(function, feeds((4, 1, 3)))
    if name == "reconciled":
        given[OTHER] = sequences(3, (4, 1, 3))
    agree(function, given)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_lengths(name: str, feeds: Any) -> None:
    function = FUNCTIONS[name]()
    model = agree(function, _given(function, feeds((4, 4, 4))), lengths=False)
    assert not [one.name for one in model.graph.input if one.name.endswith("_lengths")]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_element_types(dtype: Any) -> None:
    x = C.sequence.input_variable(3, dtype=dtype, name="x")
    picked = S.gather(x, _large(x))
    results = [
        S.past_value(x, 0.5, time_step=2),
        S.future_value(x),
        S.softmax(x),
        S.reduce_max(x),
        S.reduce_sum(x),
        S.slice(x, -1, 0),
        S.is_last(x),
        S.unpack(x, 0, no_mask_output=True),
        picked,
        S.scatter(S.gather(x, S.is_first(x)), S.is_first(x)),
    ]
    agree(C.combine(results), {x: sequences(3, dtype=dtype)})
