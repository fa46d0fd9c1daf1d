"""Conversion of graphs: nodes, blocks, loops, and stacks of recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.layers import GRU, LSTM, Dense, Dropout, Recurrence, RNNStep, Sequential
from cntk.misc import convert, convert_optimized_rnnstack
from cntk.testing import assert_close


def named(*names: str) -> Any:
    return lambda node: node.op_name in names


def operators(function: Any, depth: int = -1) -> list[str]:
    return [node.op_name for node in C.logging.depth_first_search(function, lambda node: isinstance(node, C.Function), depth)]


def to_tanh(node: Any) -> Any:
    return C.tanh(node.inputs[0])


@pytest.fixture
def x() -> Any:
    return C.input_variable(2, name="x")


DATA = np.array([[1, -2], [0.5, 3]], np.float32)


def test_a_function_without_such_nodes_is_returned_itself(x: Any) -> None:
    model = C.relu(x) + 1
    assert convert(model, lambda node: False, to_tanh) is model


def test_nodes_one_behind_the_other_and_inputs_used_elsewhere(x: Any) -> None:
    model = C.plus(C.relu(C.relu(x)), x)
    converted = convert(model, named("ReLU"), to_tanh)
    assert operators(converted) == ["Plus", "Tanh", "Tanh"]
    assert converted.arguments == (x,)
    assert_close(converted.eval(DATA), np.tanh(np.tanh(DATA)) + DATA)
    assert_close(model.eval(DATA), np.maximum(DATA, 0) + DATA, "the original is as it was")


def test_nodes_inside_blocks(x: Any) -> None:
    model = Sequential([Dense(3, activation=C.relu, name="hidden"), Dense(2)])(x)
    converted = convert(model, named("ReLU"), to_tanh)
    assert operators(converted) == ["Dense", "Dense", "Plus", "Times", "Tanh", "Plus", "Times"]
    assert converted.parameters == model.parameters
    hidden = np.tanh(DATA @ model.hidden.W.value + model.hidden.b.value)
    assert str(converted.hidden) == "hidden: Dense(x: Tensor[2]) -> Tensor[3]"
    assert_close(C.combine([converted.hidden]).eval(DATA), hidden)


def test_blocks_themselves(x: Any) -> None:
    model = Sequential([Dense(3), Dropout(0.5), Dense(2)])(x)
    converted = convert(model, named("Dropout"), lambda node: node.inputs[-1])
    assert operators(converted, 0) == ["Dense", "Dense"]
    assert_close(converted.eval(DATA), model.eval(DATA))


def test_the_root_and_one_of_several_results(x: Any) -> None:
    assert str(convert(C.relu(x), named("ReLU"), lambda node: C.tanh(node.inputs[0], name="t"))) == "t: Tanh(x: Tensor[2]) -> Tensor[2]"
    both = convert(C.combine([x * 2, C.relu(x)], name="both"), named("ReLU"), to_tanh)
    assert both.name == "both"
    values = both.eval(DATA)
    assert_close(values[both.outputs[0]], DATA * 2)
    assert_close(values[both.outputs[1]], np.tanh(DATA))


@pytest.mark.parametrize("in_block", [True, False])
def test_nodes_in_a_loop(in_block: bool) -> None:
    x = C.sequence.input_variable(2)
    step = RNNStep(2, activation=C.relu) if in_block else lambda h, x: C.relu(h - x)
    model = Recurrence(step)(x)
    if in_block:
        for parameter in model.parameters:
            parameter.value = np.linspace(-1, 1, parameter.value.size, dtype=np.float32).reshape(parameter.shape)
    converted = convert(model, named("ReLU"), to_tanh)
    assert "ReLU" not in operators(converted)
    W, H, b = (p.value for p in model.parameters) if in_block else (-np.eye(2), np.eye(2), 0)
    h, expected = np.zeros(2), []
    for row in DATA:
        h = np.tanh(row @ W + h @ H + b)
        expected.append(h)
    assert_close(converted.eval([DATA])[0], np.stack(expected))


def test_a_conversion_that_would_never_end_is_refused(x: Any) -> None:
    with pytest.raises(RuntimeError, match="1 nodes before the conversion and 2 after"):
        convert(C.relu(x) + 1, named("ReLU"), lambda node: C.relu(C.relu(node.inputs[0])))


def test_another_number_of_results_is_refused(x: Any) -> None:
    with pytest.raises(ValueError, match="made 2 results"):
        convert(C.relu(x) + 1, named("ReLU"), lambda node: C.combine([node.inputs[0], x * 2]))


# ---- stacks of recurrent layers ----

OPERATORS = {"lstm": LSTM, "rnnTanh": RNNStep, "rnnReLU": RNNStep}


def stack(x: Any, recurrent_op: str, bidirectional: bool = False, dtype: Any = np.float32) -> tuple[Any, Any]:
    """A stack of two layers of three cells, and its weights."""
    weights = C.Parameter((C.InferredDimension, 3), init=C.glorot_uniform(), dtype=dtype)
    return C.optimized_rnnstack(x, weights, 3, 2, bidirectional, recurrent_op, name="rnn"), weights


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("recurrent_op", OPERATORS)
def test_layers_compute_what_a_stack_does(recurrent_op: str, bidirectional: bool, dtype: Any) -> None:
    x = C.sequence.input_variable(4, dtype)
    model, weights = stack(x, recurrent_op, bidirectional, dtype)
    random = np.random.default_rng(1)
    weights.value = random.uniform(-0.7, 0.7, weights.shape).astype(dtype)
    converted = convert_optimized_rnnstack(C.plus(model, dtype(1)))
    names = ["rnn_fw0", "rnn_bw0", "rnn_fw1", "rnn_bw1"] if bidirectional else ["rnn_0", "rnn_1"]
    for name in names:
        assert converted.find_by_name(name, -1).op_name == OPERATORS[recurrent_op](3).root_function.op_name
    data = [random.normal(size=(length, 4)).astype(dtype) for length in (2, 5, 1)]
    for found, expected in zip(converted.eval(data), model.eval(data), strict=True):
        assert_close(found, expected + 1)


def test_stacks_with_common_weights_have_common_layers() -> None:
    x = C.sequence.input_variable(4)
    first, weights = stack(x, "lstm")
    second = C.optimized_rnnstack(x * 2, weights, 3, 2, name="again")
    converted = convert_optimized_rnnstack(C.plus(first, second))
    assert len(converted.parameters) == 6


def test_stacks_that_cannot_be_converted() -> None:
    x = C.sequence.input_variable(4)
    with pytest.raises(ValueError, match="gru"):
        convert_optimized_rnnstack(stack(x, "gru")[0])
    with pytest.raises(ValueError, match="not known yet"):
        convert_optimized_rnnstack(stack(C.placeholder(), "lstm")[0])
    without = Recurrence(GRU(2))(x)
    assert convert_optimized_rnnstack(without) is without
