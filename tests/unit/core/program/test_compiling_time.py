"""Large graphs are built, closed, cloned and compiled in time in proportion to their nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from counting import calls_of

import cntk as C
from cntk.core.extension.device import backend_named
from cntk.core.program.program import Program
from cntk.core.run.evaluate import feeds_for
from cntk.core.run.workspace import Workspace

FEW, TIMES_AS_MANY, AT_MOST = 200, 4, 5
"""Nodes of the smaller graph, and how many times as many nodes may take how many times as many calls."""


def fan(nodes: int) -> Any:
    """One value with as many terms of its gradient as there are readers."""
    x = C.input_variable(2) * C.parameter(2)
    return C.splice(*(C.sin(x) for _ in range(nodes)))


def layers(nodes: int) -> Any:
    return C.layers.Sequential([C.layers.Dense(2, activation=C.tanh) for _ in range(nodes // 3)])(C.input_variable(2))


def calls(nodes: int) -> Any:
    f = C.BlockFunction("Step", "step")(lambda x: C.tanh(x + 1))
    y = C.input_variable(2) * C.parameter(2)
    for _ in range(nodes // 2):
        y = f(y)
    return y


def loops(nodes: int, x: Any = None) -> Any:
    y = C.sequence.input_variable(2) * C.parameter(2) if x is None else x
    for _ in range(nodes // 3):
        before = C.placeholder()
        y = C.tanh(y + C.sequence.past_value(before))
        y.replace_placeholders({before: y.output})
    return y


def loops_without_input(nodes: int) -> Any:
    return loops(nodes, C.placeholder())


def cycle(nodes: int) -> Any:
    """A single recurrence with all operators in it."""
    before = C.placeholder(2)
    y = C.sequence.input_variable(2) * C.parameter(2) + C.sequence.past_value(before)
    for _ in range(nodes):
        y = C.tanh(y)
    return y.replace_placeholders({before: y.output})


def unrolled(nodes: int) -> Any:
    x, R, h, states = C.input_variable(nodes // 2), C.parameter((1, 1)), C.constant(0, 1), []
    for step in range(nodes // 4):
        h = C.tanh(C.slice(x, 0, 2 * step, 2 * step + 1) + C.times(h, R))
        states.append(h)
    return C.splice(*states)


GRAPHS: list[Callable[[int], Any]] = [fan, layers, calls, loops, cycle, unrolled]


def bound(function: Any) -> Any:
    """Compile for training and bind, to a sequence of one step or a sample."""
    program = Program(
        function.outputs, backend_named("numpy"), wrt=function.parameters, gradient_roots=[function.outputs[0]], training=True
    )
    (x,) = function.arguments
    data = np.ones((1, *x.shape), np.float32)
    return Workspace(program).load(feeds_for(program, {x: [data] if len(x.dynamic_axes) > 1 else data}))


def check_growth(work: Callable[[Any], Any], small: Any, large: Any) -> None:
    for argument in (small, large):
        work(argument)  # what is done the first time only is no matter
    assert calls_of(lambda: work(large)) < AT_MOST * calls_of(lambda: work(small))


@pytest.mark.parametrize("make", [*GRAPHS, loops_without_input])
def test_building_takes_calls_in_proportion(make: Callable[[int], Any]) -> None:
    check_growth(make, FEW, FEW * TIMES_AS_MANY)


@pytest.mark.parametrize("make", [layers, loops, cycle])
def test_cloning_takes_calls_in_proportion(make: Callable[[int], Any]) -> None:
    check_growth(lambda function: function.clone("clone"), make(FEW), make(FEW * TIMES_AS_MANY))


@pytest.mark.parametrize("make", GRAPHS)
def test_compiling_and_binding_take_calls_in_proportion(make: Callable[[int], Any]) -> None:
    check_growth(bound, make(FEW), make(FEW * TIMES_AS_MANY))


def test_ten_thousand_nodes_are_compiled_by_less_than_a_thousand_calls_each() -> None:
    function = C.input_variable(2) * C.parameter(2)
    for _ in range(10_000):
        function = C.tanh(function)
    calls = calls_of(lambda: bound(function)) / 10_000
    assert calls < 1000
