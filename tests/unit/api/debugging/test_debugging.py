"""Listing functions, and making runs repeatable."""

from __future__ import annotations

import numpy as np
import pytest

import cntk as C


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


def test_force_deterministic_fixes_seeds_and_algorithms() -> None:
    try:
        C.debugging.force_deterministic(5)
        first, second = (C.parameter(3, init=C.glorot_uniform()).value for _ in range(2))
        np.testing.assert_array_equal(first, second)
        assert C.cntk_py.is_random_seed_fixed()
        assert C.cntk_py.should_force_deterministic_algorithms()
    finally:
        C.cntk_py.reset_random_seed(0)
