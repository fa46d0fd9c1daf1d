"""Listing functions, taking the time of operators, and the switches of cntk.debugging."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core import profiling


@pytest.fixture(autouse=True)
def _nobody_measures_afterwards() -> Any:
    yield
    assert profiling.recorders == ()


def training() -> tuple[Any, Any]:
    """A trainer of one product and its sum, and a minibatch."""
    x, w = C.input_variable(2, name="x"), C.parameter(2, init=1, name="w")
    product = C.element_times(w, x, name="p")
    trainer = C.Trainer(None, (C.reduce_sum(product), C.reduce_sum(product)), C.sgd([w], 0.1))
    return trainer, {x: np.ones((3, 2), np.float32)}


def shapes(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_dump_function(capsys: pytest.CaptureFixture[str]) -> None:
    x = C.input_variable(2, name="x")
    f = C.layers.Dense(3, activation=C.relu, name="d")(x)
    C.debugging.dump_function(f)
    head, *lines = shapes(capsys.readouterr().out)
    assert " ".join(head) == str(f)
    table = {line[0]: " ".join(line[1:]) for line in lines if line[0] != "Parameter"}
    assert list(table) == ["Dense", "Input", "ReLU", "Plus", "Times"]
    assert table["Dense"].startswith("d (")
    assert "x:[b*](2,)" in table["Dense"]
    assert table["Input"].startswith("x Input")
    assert "W:(2, 3)" in table["Times"]
    assert [line[1] for line in lines if line[0] == "Parameter"] == ["W", "b"]


def test_dump_function_names_sequence_axes(capsys: pytest.CaptureFixture[str]) -> None:
    C.debugging.dump_function(C.sequence.input_variable((), name="s") + 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "  Axis defaultDynamicAxis == m*"
    assert "s:[b*,m*]()" in lines[2]


def test_dump_signature(capsys: pytest.CaptureFixture[str]) -> None:
    C.debugging.dump_signature(C.relu(C.input_variable(2, name="x")))
    assert capsys.readouterr().out == "ReLU(x: Tensor[2]) -> Tensor[2]\n"


def test_node_timing(capsys: pytest.CaptureFixture[str]) -> None:
    trainer, data = training()
    C.debugging.set_node_timing(True)
    try:
        for _ in range(2):
            trainer.train_minibatch(data)
        C.relu(C.input_variable(1)).eval([[1]])
        trainer.print_node_timing()
    finally:
        C.debugging.set_node_timing(False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ElementTimes")
    assert all("(fwd# 2|bwd# 2)" in line for line in lines[:2])
    assert not any(line.startswith("ReLU") for line in lines)
    trainer.train_minibatch(data)
    trainer.print_node_timing()
    assert "(fwd# 2|bwd# 2)" in capsys.readouterr().out


def test_node_timing_of_an_evaluator(capsys: pytest.CaptureFixture[str]) -> None:
    x = C.input_variable(2)
    evaluator = C.Evaluator(C.layers.Dense(1, activation=C.reduce_sum)(x))
    evaluator.print_node_timing()
    C.debugging.set_node_timing(True)
    try:
        evaluator.test_minibatch({x: np.ones((3, 2), np.float32)})
    finally:
        C.debugging.set_node_timing(False)
    evaluator.print_node_timing()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:5] for line in lines] == ["Times", "Plus" + lines[1][4], "Reduc"]
    assert all("backward avg 0.000000s (fwd# 1|bwd# 0)" in line for line in lines)


def test_an_error_names_the_operator_while_somebody_measures() -> None:
    x = C.input_variable(1)
    C.debugging.set_checked_mode(True)
    C.debugging.set_node_timing(True)
    try:
        with pytest.raises(ValueError, match=r"Log.*produced NaN"):
            C.log(x, name="l").eval(np.full((1, 1), np.nan, np.float32))
    finally:
        C.debugging.set_node_timing(False)
        C.debugging.set_checked_mode(False)


def test_force_deterministic_fixes_seeds_and_algorithms() -> None:
    try:
        C.debugging.force_deterministic(5)
        first, second = (C.parameter(3, init=C.glorot_uniform()).value for _ in range(2))
        np.testing.assert_array_equal(first, second)
        assert C.cntk_py.is_random_seed_fixed()
        assert C.cntk_py.should_force_deterministic_algorithms()
    finally:
        C.cntk_py.reset_random_seed(0)
