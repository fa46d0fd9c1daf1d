"""Recurrent layers as ONNX's own operators: each gives what its Scan does, and what differs in anything stays a Scan."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragged_models import LENGTHS, agree, operators, run, samples, sequences, written

import cntk as C
from cntk import sequence as S
from cntk.layers import GRU, LSTM, Fold, Recurrence, RecurrenceFrom, RNNStep

X = C.sequence.input_variable(3, name="x")
STATE, CELL = C.input_variable(4, name="state"), C.input_variable(4, name="cell")
RANDOM = {"init": C.uniform(0.8, seed=1), "init_bias": C.uniform(0.8, seed=2)}

STEPS: dict[str, Any] = {
    f"LSTM{' with peepholes' * peepholes}{', stabilised' * stabilized}": (
        "LSTM",
        lambda p=peepholes, s=stabilized: LSTM(4, use_peepholes=p, enable_self_stabilization=s, **RANDOM),
    )
    for peepholes, stabilized in product((False, True), repeat=2)
}
STEPS["GRU"] = ("GRU", lambda: GRU(4, **RANDOM))
STEPS["RNN"] = ("RNN", lambda: RNNStep(4, **RANDOM))
STEPS["RNN, stabilised"] = ("RNN", lambda: RNNStep(4, enable_self_stabilization=True, **RANDOM))
for activation in (C.relu, C.sigmoid, C.tanh, C.softsign, C.softplus):
    for op_type, step in (("LSTM", LSTM), ("GRU", GRU), ("RNN", RNNStep)):
        STEPS[f"{op_type}, {activation.__name__}"] = (op_type, lambda a=activation, s=step: s(4, activation=a, **RANDOM))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_layers(name: str, backwards: bool) -> None:
    op_type, step = STEPS[name]
    function = Recurrence(step(), go_backwards=backwards, initial_state=0.3)(X)
    for parameter in function.parameters:
        if parameter.name == "alpha":
            parameter.value = np.float32(0.7)
    for lengths in (LENGTHS, (1,), (4, 4)):
        feeds = {X: sequences(3, lengths)}
        matched = agree(function, feeds, behind=1)
        assert operators(matched).count(op_type) == 1
        assert "Scan" not in operators(matched)
        stepwise = agree(function, feeds, behind=1, match=False)
        assert op_type not in operators(stepwise)
        (one,), (other,) = (run(model, function, feeds).values() for model in (matched, stepwise))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    agree(function, {X: sequences(3, (4, 4))}, lengths=False)


def _matched(function: Any, feeds: dict[Any, Any] | None = None, **options: Any) -> list[str]:
    """Which of the operators of recurrences a model has, once it agrees."""
    model = agree(function, feeds or {X: sequences(3)}, **options)
    return sorted(set(operators(model)) & {"LSTM", "GRU", "RNN", "Scan"})


def test_what_the_operator_stands_for_is_not_written_beside_it() -> None:
    model = written(Recurrence(GRU(4))(X))
    assert not {"MatMul", "Sigmoid", "Tanh", "Slice"} & set(operators(model))


def test_initial_states() -> None:
    feeds = {X: sequences(3), STATE: samples(4), CELL: samples(4, seed=1)}
    assert _matched(RecurrenceFrom(LSTM(4))(STATE, CELL, X), feeds) == ["LSTM"]
    assert _matched(Recurrence(GRU(4), initial_state=C.parameter(4, init=np.float32([1, 2, 3, 4])))(X)) == ["GRU"]
    other = C.sequence.input_variable(4, sequence_axis=C.Axis("other"), name="other")
    assert _matched(RecurrenceFrom(GRU(4))(other, X), {X: sequences(3), other: sequences(4, (2, 1, 5))}) == ["GRU"]
    assert _matched(RecurrenceFrom(GRU(4), go_backwards=True)(other, X), {X: sequences(3), other: sequences(4, (2, 1, 5))}) == ["GRU"]


@pytest.mark.parametrize("name", ["LSTM with peepholes, stabilised", "GRU", "RNN"])
def test_models_that_are_loaded(name: str, tmp_path: Path) -> None:
    op_type, step = STEPS[name]
    Recurrence(step())(X).save(str(tmp_path / "layer.model"))
    loaded = C.load_model(str(tmp_path / "layer.model"))
    assert _matched(loaded, {loaded.arguments[0]: sequences(3)}) == [op_type]


@pytest.mark.parametrize("opset", [17, 22])
def test_versions_of_operators(opset: int) -> None:
    layers = C.splice(Recurrence(LSTM(4))(X), Recurrence(GRU(4), go_backwards=True)(X), Recurrence(RNNStep(4))(X))
    assert _matched(layers, opset=opset) == ["GRU", "LSTM", "RNN"]


def test_layers_on_each_other() -> None:
    both = C.splice(Recurrence(LSTM(4))(X), Recurrence(LSTM(4), go_backwards=True)(X))
    assert _matched(Fold(GRU(2))(both)) == ["GRU", "LSTM"]


def test_float16_and_float64() -> None:
    for dtype, wanted in ((np.float16, ["LSTM"]), (np.float64, ["Scan"])):
        with C.default_options(dtype=dtype):
            x = C.sequence.input_variable(3, dtype=dtype, name="x")
            assert _matched(Recurrence(LSTM(4))(x), {x: sequences(3, dtype=dtype)}) == wanted


def test_one_hot_words() -> None:
    x = C.sequence.input_variable(3, is_sparse=True, name="x")
    numbers, eye = [[2, 0, 1, 1], [1], [0, 2]], np.eye(3, dtype=np.float32)
    data = {x: C.Value.one_hot(numbers, 3)}
    assert _matched(Recurrence(LSTM(4))(x), {x: [eye[one] for one in numbers]}, data=data) == ["LSTM"]
    chosen: Any = {x: [np.array(one, np.int64) for one in numbers]}
    assert _matched(Recurrence(LSTM(4))(x), chosen, data=data, sparse="indices") == ["Scan"]


def _gru(h: Any, x: Any, **changes: Any) -> Any:
    """The step of a GRU by hand, with changes."""
    order, one, last = changes.get("order", (0, 1, 2)), changes.get("one", 1), changes.get("last", 2)
    W, R, R1, b = (C.parameter(shape, init=C.uniform(0.5, seed=1)) for shape in ((3, 12), (4, 8), (4, 4), changes.get("bias", 12)))
    x_part, h_part = b + C.times(x, W), C.times(h, R)
    parts = [C.slice(x_part, -1, 4 * i, 4 * i + 4) for i in order]
    z = C.sigmoid(parts[0] + C.slice(h_part, -1, 0, 4))
    r = C.sigmoid(parts[1] + C.slice(h_part, -1, 4, 8))
    return (one - z) * C.tanh(parts[last] + C.times(h * r, R1)) + z * h


def _by_hand(**changes: Any) -> Any:
    state = C.placeholder()
    made = _gru(S.past_value(state, 0, time_step=changes.pop("time_step", 1)), X, **changes)
    return made.replace_placeholders({state: made.output})


def test_layers_are_known_by_their_graph_and_not_by_their_name() -> None:
    assert _matched(_by_hand()) == ["GRU"]


@pytest.mark.parametrize("change", [{"order": (1, 0, 2)}, {"one": 2}, {"last": 1}, {"bias": 1}, {"time_step": 2}], ids=str)
def test_another_graph_stays_a_scan(change: dict[str, Any]) -> None:
    assert _matched(_by_hand(**change)) == ["Scan"]


def test_what_the_operator_does_not_give_stays_a_scan() -> None:
    assert _matched(Recurrence(LSTM(4), return_full_state=True)(X)) == ["Scan"]
    assert _matched(Recurrence(LSTM(4, cell_shape=5))(X)) == ["Scan"]
    assert _matched(Recurrence(GRU(4, enable_self_stabilization=True))(X)) == ["Scan"]
    assert _matched(Recurrence(RNNStep(4, activation=None))(X)) == ["Scan"]
    assert _matched(Recurrence(RNNStep(4, activation=C.sin))(X)) == ["Scan"]


def test_a_state_that_feeds_its_own_operand_stays_a_scan() -> None:
    step = GRU(4)
    assert _matched(Recurrence(lambda h, x: step(h, C.splice(x, h)))(X)) == ["Scan"]
