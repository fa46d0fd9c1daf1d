"""Large graphs: depth is limited by memory alone, and work grows with the number of nodes and no faster."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from counting import calls_of
from numpy.testing import assert_array_equal

import cntk as C
from cntk.testing import assert_close

DEPTH = 3000
ONES = np.ones((2, 1), np.float32)


def chain(x: Any, length: int) -> Any:
    for _ in range(length):
        x = x + 1
    return x


@pytest.fixture(scope="module")
def deep() -> Any:
    """A chain of operators far longer than Python's stack is deep."""
    assert sys.getrecursionlimit() < DEPTH
    return chain(C.input_variable(1, needs_gradient=True, name="x"), DEPTH)


def test_a_deep_graph_evaluates(deep: Any) -> None:
    assert_array_equal(deep.eval(ONES), (DEPTH + 1) * ONES)


def test_a_deep_graph_is_differentiated() -> None:
    x = C.input_variable(1, needs_gradient=True)
    y = x
    for _ in range(DEPTH):
        y = C.sin(y)
    expected, slope = np.ones(1), np.ones(1)
    for _ in range(DEPTH):
        slope *= np.cos(expected)
        expected = np.sin(expected)
    assert_close(y.grad([[1]]), slope[None])


def test_a_deep_graph_is_walked_printed_and_copied(deep: Any) -> None:
    assert str(deep) == "Composite(x: Tensor[1]) -> Tensor[1]"
    assert deep.find_by_name("x") is deep.arguments[0]
    clone = deep.clone("clone")
    assert_array_equal(clone.eval(ONES), (DEPTH + 1) * ONES)
    assert_array_equal(deep(C.input_variable(1)).eval(ONES), (DEPTH + 1) * ONES)


def test_placeholders_far_down_are_bound() -> None:
    p = C.placeholder()
    deep = chain(p, DEPTH).replace_placeholders({p: C.input_variable(1)})
    assert_array_equal(deep.eval(ONES), (DEPTH + 1) * ONES)


def test_blocks_in_blocks_evaluate() -> None:
    f = C.Function(lambda x: x + 1)
    for depth in range(30):
        f = C.BlockFunction("Level", f"level{depth}")(lambda x, f=f: f(x))
    assert_array_equal(f(C.input_variable(1)).eval(ONES), 2 * ONES)


def shared(levels: int) -> Any:
    """A graph in which the number of paths doubles with every level."""
    x = C.input_variable(1, needs_gradient=True)
    y = x
    for _ in range(levels):
        y = y * 0.5 + y * 0.5
    return y


def test_values_used_twice_are_computed_once() -> None:
    y = shared(60)
    assert_array_equal(y.eval(ONES), ONES)
    assert_array_equal(y.grad(ONES), ONES)


def calls_to_compile(length: int) -> int:
    """Calls that build and compile a chain for training, and run it."""
    return calls_of(lambda: chain(C.input_variable(1, needs_gradient=True), length).grad(ONES))


def test_compiling_takes_calls_in_proportion_to_the_graph() -> None:
    calls_to_compile(10)
    assert calls_to_compile(1000) < 6 * calls_to_compile(200)
