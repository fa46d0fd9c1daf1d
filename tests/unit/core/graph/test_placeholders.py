"""Binding placeholders: what primitives know about those behind them is right, whatever is bound to what, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.core.graph.clone import open_placeholders
from cntk.core.graph.placeholders import open_primitives

STEPS = st.lists(st.tuples(st.sampled_from(["new", "apply", "bind", "bind late"]), st.integers(0, 20), st.integers(0, 20)), max_size=25)


def bind(function: Any, which: int, variable: Any) -> None:
    if function.placeholders:
        end = function.placeholders[which % len(function.placeholders)]
        if end is not variable:
            function.replace_placeholders({end: variable})


@settings(deadline=None)
@given(STEPS)
def test_all_placeholders_behind_a_function_are_found(steps: list[tuple[str, int, int]]) -> None:
    ends: list[Any] = [C.placeholder(), C.placeholder()]
    functions: list[Any] = [ends[0] + ends[1]]
    for what, one, other in steps:
        function, operand = functions[one % len(functions)], functions[other % len(functions)]
        if what == "new":
            ends.append(C.placeholder())
            functions.append(function + ends[-1])
        elif what == "apply":
            functions.append(function * C.sequence.past_value(operand))
        elif what == "bind":
            bind(function, other, C.sequence.past_value(operand).output)
        else:
            bind(function, other, ends[other % len(ends)])
        for made in functions:
            assert open_placeholders(made) == set(made.placeholders)
            for end in made.placeholders:
                late = open_primitives(made.root_function, since=end.number)
                assert any(end in node.inputs for node in late)


def test_a_function_that_shares_what_was_bound_takes_later_placeholders() -> None:
    early = C.placeholder()
    part = early + 1
    whole = part * 2
    assert set(whole.placeholders) == {early}
    late = C.placeholder()
    part.replace_placeholders({early: late})
    x = C.input_variable(3)
    assert whole.replace_placeholders({late: x}).shape == (3,)
    assert part.shape == (3,)


def test_parameters_are_resolved_through_what_was_not_bound() -> None:
    W, end, x = C.parameter((-1, 3), init=1), C.placeholder(), C.input_variable(5)
    twice = W + W
    y = C.times(end, W) + C.times(x, twice)
    y.replace_placeholders({end: x})
    assert (W.shape, twice.shape, y.shape) == ((5, 3), (5, 3), (3,))


def test_only_placeholders_of_the_function_are_bound() -> None:
    one, other = C.placeholder(name="one"), C.placeholder(name="other")
    with pytest.raises(ValueError, match=r"Placeholder\('other'.* is not a placeholder of .*; those are .*'one'"):
        (one + 1).replace_placeholders({other: C.input_variable(1)})
    with pytest.raises(ValueError, match="is not a placeholder of"):
        (one + 1).replace_placeholders({C.input_variable(1): C.input_variable(1)})


def test_arguments_keep_the_order_in_which_a_function_declares_them() -> None:
    f = C.Function(lambda a, b: b * C.sequence.past_value(a))
    x, y, end = C.sequence.input_variable(2, name="x"), C.sequence.input_variable(2, name="y"), C.placeholder(name="end")
    assert [v.name for v in f(x + y, end).arguments] == ["x", "y", "end"]
    h = f(x + end, y)
    assert [v.name for v in h.arguments] == ["x", "end", "y"]
    h.replace_placeholders({end: h.output})
    assert [v.name for v in h.arguments] == ["x", "y"]
