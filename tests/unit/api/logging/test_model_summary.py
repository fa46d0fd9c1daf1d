"""Summaries of functions: layers, shapes, parameters, operations."""

from __future__ import annotations

from pathlib import Path

import pytest

import cntk as C
from cntk.cli import main
from cntk.logging.model_summary import layers_of


def test_layers_of_a_convolutional_network() -> None:
    x = C.input_variable((1, 8, 8), name="image")
    model = C.layers.Sequential(
        [
            C.layers.Convolution2D((3, 3), 4, pad=True, activation=C.relu, name="convolution"),
            C.layers.MaxPooling((2, 2), strides=2, name="pool"),
            C.layers.Dense(10, name="classes"),
        ]
    )(x)
    layers = {layer.path: layer for layer in layers_of(model)}
    assert layers["convolution"].shape == "[batch, 4, 8, 8]"
    assert layers["convolution"].size == 4 * 9 + 4
    assert layers["convolution"].flop is not None
    assert layers["convolution"].flop >= 2 * 9 * 4 * 64
    assert layers["classes"].size == 4 * 16 * 10 + 10
    assert layers["classes"].kind == "Dense"


def test_shared_parameters_count_once_and_steps_are_of_one_sample() -> None:
    x = C.sequence.input_variable(3, name="x")
    dense = C.layers.Dense(3, name="dense")
    both = dense(dense(x))
    found = [layer for layer in layers_of(both) if layer.kind == "Dense"]
    assert [layer.size for layer in found] == [12, 0]
    assert found[0].shape == "[batch, sequence, 3]"
    assert found[0].flop == 2 * 9 + 3


def test_a_function_that_cannot_be_tried_has_no_operations() -> None:
    x = C.input_variable((C.FreeDimension, 3), name="x")
    model = C.reshape(x, (5, 3))  # which takes five, and random data has another number
    assert layers_of(model)[0].flop is None
    assert "?" in C.logging.summary(model)


def test_the_command_shows_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    C.layers.Recurrence(C.layers.LSTM(4), name="hidden")(C.sequence.input_variable(2, name="x")).save(tmp_path / "model.dnn")
    assert main(["show", str(tmp_path / "model.dnn")]) == 0
    shown = capsys.readouterr().out
    assert "inputs: x [batch, sequence, 2]" in shown
    assert "112 parameters (448 bytes)" in shown
    assert main(["show", str(tmp_path / "nothing.dnn")]) == 1
