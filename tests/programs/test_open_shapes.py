"""Widths of layers behind a recurrence whose shape is still open when they are applied; all numbers are CNTK 2.7's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.layers import GRU, LSTM, AttentionModel, Dense, Embedding, Fold, LayerNormalization, Recurrence, RNNStep, Sequential

WIDE = C.constant(np.ones((1, 1, 8), np.float32))


def test_a_decoder_with_attention_to_a_window() -> None:
    """Attention to a window gives 1 x 1 x 3, so that the state of 4 becomes 1 x 1 x 4."""
    with C.default_options(init=0.1, enable_self_stabilization=False), pytest.deprecated_call():
        attention, cell, project = AttentionModel(8, 20, -3), LSTM(4), Dense(5, init_bias=0.2)

    @C.Function
    def decode(history: Any, input: Any) -> Any:
        step = C.Function(lambda h, c, x: cell(h, c, C.splice(x, attention(input, h))))
        return project(Recurrence(step)(history))

    history, words = C.sequence.input_variable(2), C.sequence.input_variable(3, sequence_axis=C.Axis("words"))
    decoded = decode(history, words)
    assert project.W.shape == (4, 5)
    assert decoded.shape == (1, 1, 5)
    data = {history: [np.float32([[1, 2], [3, -1]])], words: [np.float32([[1, 0, 2], [0, 1, 0], [2, 2, 2]])]}
    np.testing.assert_allclose(decoded.eval(data)[0], np.full((2, 1, 1, 5), [[[[0.29642463]]], [[[0.3473936]]]]), rtol=1e-6)


def widened(cell: Callable[..., Any], after: Any, direct: bool = False) -> tuple[Any, list[Any]]:
    """Shapes of a layer's result and parameters over a state that becomes 1 x 1 x 4 when the recurrence closes."""
    x = C.sequence.input_variable(6)
    step = C.Function(lambda h, x: cell(h, C.splice(x, C.sequence.broadcast_as(WIDE, h))))
    result = after(Recurrence(step)(x)) if direct else Sequential([Recurrence(step), after])(x)
    return result.shape, [parameter.shape for parameter in after.parameters]


def affine(*bias: Any) -> Callable[..., Any]:
    W = C.parameter((-1, 4), init=0.1)
    return lambda h, x: C.tanh(C.plus(C.times(x, W), *bias) if bias else C.times(x, W))


@pytest.mark.parametrize(
    "cell", [lambda: GRU(4), lambda: RNNStep(4), lambda: affine(C.parameter(4)), lambda: affine(C.constant(np.ones(4, np.float32)))]
)
def test_the_width_is_that_of_the_state_before_the_recurrence_is_closed(cell: Callable[[], Any]) -> None:
    assert widened(cell(), Dense(5)) == ((1, 1, 5), [(4, 5), (5,)])


@pytest.mark.parametrize("bias", [(), (3,), (C.parameter(1),)])
def test_where_nothing_tells_before_it_is_the_whole_shape(bias: Any) -> None:
    assert widened(affine(*bias), Dense(5)) == ((5,), [(1, 1, 4, 5), (5,)])


def test_over_a_recurrence_that_is_closed_it_is_the_whole_shape() -> None:
    assert widened(affine(C.parameter(4)), Dense(5), direct=True) == ((5,), [(1, 1, 4, 5), (5,)])


def test_a_bias_of_more_axes() -> None:
    assert widened(affine(C.parameter((2, 4))), Dense(5)) == ((1, 5), [(2, 4, 5), (5,)])


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (lambda: Sequential([Dense(5), Dense(3)]), ((1, 1, 3), [(5, 3), (3,), (4, 5), (5,)])),
        (lambda: Dense((2, 3)), ((1, 1, 2, 3), [(4, 2, 3), (2, 3)])),
        (lambda: Embedding(3), ((1, 1, 3), [(4, 3)])),
        (lambda: Sequential([LayerNormalization(), Dense(2)]), ((1, 1, 2), [(4, 2), (2,), (4,), (4,)])),
        (lambda: Sequential([C.sequence.last, Dense(2)]), ((1, 1, 2), [(4, 2), (2,)])),
        (lambda: Sequential([Recurrence(RNNStep(3)), Dense(2)]), ((1, 1, 2), [(3, 2), (2,), (4, 3), (3, 3), (3,)])),
        (lambda: Sequential([Fold(RNNStep(3)), Dense(2)]), ((1, 1, 2), [(3, 2), (2,), (4, 3), (3, 3), (3,)])),
    ],
)
def test_layers_after_it(after: Callable[[], Any], expected: Any) -> None:
    assert widened(affine(C.parameter(4)), after()) == expected


def test_a_placeholder_that_is_bound_later() -> None:
    project, p = Dense(5), C.placeholder()
    bias, W = C.parameter(4), C.parameter((-1, 4), init=0.1)
    step = C.Function(lambda h, x: C.tanh(C.times(C.splice(x, C.sequence.broadcast_as(WIDE, h)), W) + bias))
    result = project(Recurrence(step)(p))
    assert result.shape == (-2,)
    result.replace_placeholders({p: C.sequence.input_variable(6)})
    assert (result.shape, project.W.shape) == ((1, 1, 5), (4, 5))


def test_one_result_of_several_can_be_sliced_while_its_shape_is_open() -> None:
    x = C.sequence.input_variable(6)
    assert Sequential([Recurrence(LSTM(4)), lambda r: r[0:2]])(x).shape == (2,)
