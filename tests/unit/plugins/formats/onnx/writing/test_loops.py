"""Recurrences in ONNX models: any cycle through delays is a Scan over padded sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ragged_models import LENGTHS, agree, operators, samples, sequences

import cntk as C
from cntk import sequence as S
from cntk.layers import GRU, LSTM, Fold, Recurrence, RecurrenceFrom, RNNStep, UnfoldFrom

X = C.sequence.input_variable(3, name="x")
STATE = C.input_variable(4, name="state")
OTHER = C.sequence.input_variable(4, sequence_axis=C.Axis("other"), name="other")


def _closed(build: Any) -> Any:
    """The recurrence that a function of its own result says."""
    before = C.placeholder()
    made = build(before)
    return made.replace_placeholders({before: made.output})


def _into(x: Any) -> Any:
    """A vector of four numbers for each step."""
    return C.times(x, C.parameter((3, 4), init=np.float32(np.arange(12).reshape(3, 4) / 10)))


def _fibonacci(begin: Any, backwards: bool = False) -> Any:
    delay = S.future_value if backwards else S.past_value
    return _closed(
        lambda before: 0.5 * delay(before, begin) + 0.3 * delay(before, 0.2, time_step=3) - delay(before, time_step=2) + _into(X)
    )


def _two_states() -> Any:
    one, two = C.placeholder(), C.placeholder()
    first = 0.5 * S.past_value(two, STATE) + _into(X)
    second = C.tanh(first) - S.past_value(one, 0.25)
    both = C.combine([first, second])
    return both.replace_placeholders({one: first.output, two: second.output})


def _one_after_the_other() -> Any:
    first = Recurrence(RNNStep(4))(X)
    return Recurrence(RNNStep(3), go_backwards=True)(first * S.broadcast_as(S.last(first), first))


def _on_two_axes() -> Any:
    """A recurrence whose steps are those of a sequence on another axis as well."""

    def step(before: Any) -> Any:
        on_other = C.reconcile_dynamic_axes(0.5 * S.past_value(before, STATE), OTHER) + OTHER
        return C.reconcile_dynamic_axes(on_other, X) + _into(X)

    return _closed(step)


RECURRENCES: dict[str, Any] = {
    "delays of several lengths": lambda: _fibonacci(STATE),
    "delays of several lengths, backwards": lambda: _fibonacci(STATE, True),
    "parameter as state": lambda: _fibonacci(C.parameter(4, init=np.float32([1, 2, 3, 4]))),
    "two states": _two_states,
    "state of another shape": lambda: _closed(lambda before: 0.5 * S.past_value(before, C.constant([[1], [2]])) + _into(X)),
    "sequence as state": lambda: _closed(lambda before: 0.5 * S.past_value(before, OTHER, time_step=2) + _into(X)),
    "sequence as state, backwards": lambda: _closed(lambda before: 0.5 * S.future_value(before, OTHER, time_step=2) + _into(X)),
    "steps counted": lambda: _closed(lambda before: S.past_value(before) + S.broadcast_as(1, X)),
    "steps counted from a number": lambda: UnfoldFrom(lambda s: s * 2)(C.constant([1]), X),
    "unfolded until": lambda: UnfoldFrom(lambda s: s * 2, until_predicate=lambda s: C.greater(s, 5), length_increase=2)(C.constant([1]), X),
    "maximum so far": lambda: Recurrence(C.element_max)(X),
    "LSTM, all states": lambda: Recurrence(LSTM(4), return_full_state=True)(X),
    "LSTM, folded": lambda: Fold(LSTM(4, use_peepholes=True, enable_self_stabilization=True))(X),
    "LSTM, projected, backwards": lambda: Fold(LSTM(4, cell_shape=5, enable_self_stabilization=True), go_backwards=True)(X),
    "GRU, projected": lambda: Recurrence(GRU(4, cell_shape=5))(X),
    "GRU from a state": lambda: RecurrenceFrom(GRU(4))(STATE, X),
    "samples counted in a step": lambda: RecurrenceFrom(lambda h, x: x * C.splice(C.constant(2, (1,)), C.slice(h, 0, 1, 3)))(S.last(X), X),
    "both ways": lambda: C.splice(Recurrence(RNNStep(4))(X), Recurrence(GRU(2), go_backwards=True)(X)),
    "one after the other": _one_after_the_other,
    "steps of another axis": _on_two_axes,
}


def _feeds(function: Any, lengths: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for variable in function.arguments:
        if len(variable.dynamic_axes) == 1:
            found[variable] = samples(variable.shape, len(lengths))
        else:
            found[variable] = sequences(variable.shape, lengths, seed=len(variable.name))
    return found


@pytest.mark.parametrize("lengths", [LENGTHS, (1,), (2, 5)], ids=str)
@pytest.mark.parametrize("name", RECURRENCES)
def test_recurrences(name: str, lengths: Any) -> None:
    function = RECURRENCES[name]()
    feeds = _feeds(function, lengths)
    if "sequence as state" in name:
        feeds[OTHER] = sequences(4, [2] * len(lengths))
    agree(function, feeds)
    agree(function, feeds, behind=2)


@pytest.mark.parametrize("name", RECURRENCES)
def test_without_lengths(name: str) -> None:
    function = RECURRENCES[name]()
    agree(function, _feeds(function, (4, 4)), lengths=False)


@pytest.mark.parametrize("opset", [17, 24])
@pytest.mark.parametrize("name", RECURRENCES)
def test_versions_of_operators(name: str, opset: int) -> None:
    function = RECURRENCES[name]()
    agree(function, _feeds(function, (2, 5)), opset=opset)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("step", [RNNStep, GRU, LSTM])
def test_element_types(dtype: Any, step: Any) -> None:
    with C.default_options(dtype=dtype):
        x = C.sequence.input_variable(3, dtype=dtype, name="x")
        agree(Recurrence(step(4), go_backwards=True)(x), {x: sequences(3, dtype=dtype)})


def test_only_what_is_read_leaves_the_loop() -> None:
    model = agree(_fibonacci(0), {X: sequences(3)})
    (scan,) = (node for node in model.graph.node if node.op_type == "Scan")
    assert len(scan.output) == 6 + 1
    assert operators(model).count("Scan") == 1


def test_states_of_free_dimension_are_known_before_the_first_step() -> None:
    other = C.sequence.input_variable((), sequence_axis=C.Axis("other"), name="other")
    x = C.sequence.input_variable((), name="x")
    free = S.unpack(other, 0, no_mask_output=True)
    feeds = {x: sequences(), other: sequences((), (2, 3, 1), seed=5)}
    agree(_closed(lambda before: 0.5 * S.past_value(before, free) + x), feeds)
    with pytest.raises(ValueError, match=r"have free dimensions, .* initial state of the shape \[\*\] \[built at .*test_loops.py"):
        agree(_closed(lambda before: 0.5 * S.past_value(before) + x + S.broadcast_as(free, x)), feeds)
