"""Stepping through a model: what is shown, and where each command stops."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.debugging import DEBUG_USAGE, debug_model

DATA = np.array([[1, 2]], np.float32)


def model_of() -> tuple[Any, Any, Any]:
    x = C.input_variable(2, needs_gradient=True, name="x")
    w = C.parameter((2, 2), init=1, name="w")
    return C.tanh(C.times(x, w, name="t"), name="z"), x, w


def session(commands: str, gradient: bool = False) -> tuple[list[str], str]:
    """The nodes that waited for a command, by pass and name, and all that was shown."""
    model, _, _ = model_of()
    out = io.StringIO()
    stepped = debug_model(model, io.StringIO(commands), out, exit_func=lambda code: out.write(f"exit {code}"))
    value = stepped.grad(DATA) if gradient else stepped.eval(DATA)
    np.testing.assert_array_equal(value, model.grad(DATA) if gradient else model.eval(DATA))
    lines = out.getvalue().splitlines()
    stops = [i for i, line in enumerate(lines) if line.startswith("[CNTK")]
    return [f"{lines[i][6:].split(']')[0]} {lines[i - 1].split(' with uid')[0]}" for i in stops], out.getvalue()


X, W = "forward Input('x', [#], [2])", "forward Parameter('w', [], [2 x 2])"
T, Z = "forward t: Times(Tensor[2], ParameterTensor[2,2]) -> Tensor[2]", "forward z: Tanh(Tensor[2]) -> Tensor[2]"
BACK = [stop.replace("forward", "backward") for stop in (Z, T, X)]


@pytest.mark.parametrize(
    ("commands", "stops"),
    [
        ("n\nn\nc\n", [X, W, T]),
        ("n 3\nc\n", [X, Z]),
        ("c\n", [X]),
        ("u t\nc\n", [X, T]),
        ("u lambda arg, node: np.abs(arg).max() == 3\nc\n", [X, T]),
        ("u b\nn\nc\n", [X, *BACK[:2]]),
        ("u b\nu x\nc\n", [X, BACK[0], BACK[2]]),
    ],
)
def test_where_commands_stop(commands: str, stops: list[str]) -> None:
    assert session(commands, gradient=True)[0] == stops


def test_both_passes_have_a_heading() -> None:
    shown = session("c\n", gradient=True)[1]
    assert [line.strip("= ") for line in shown.splitlines() if line.startswith("===")] == ["forward", "backward"]


def test_printing_data() -> None:
    assert "shape (1, 2):\n[[1. 2.]]" in session("p\nc\n")[1]


def test_what_is_no_command_shows_the_usage() -> None:
    for wrong in ("help", "n x", "u lambda :", "cc"):
        assert DEBUG_USAGE in session(f"{wrong}\nc\n")[1]


def test_q_ends_the_program() -> None:
    assert "exit 0" in session("q\nc\n")[1]


def test_the_end_of_the_input_waits_for_nothing() -> None:
    assert session("")[0] == [X, W, T, Z]


def test_training_goes_on_as_without() -> None:
    model, x, w = model_of()
    y = C.input_variable(2)
    stepped = debug_model(model, io.StringIO("c\n"), io.StringIO())
    trainer = C.Trainer(stepped, C.squared_error(stepped, y), C.sgd([w], 0.1))
    assert trainer.train_minibatch({x: DATA, y: DATA})
    assert (w.value != 1).any()
