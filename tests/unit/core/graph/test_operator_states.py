"""What operators keep from pass to pass: it is taken, given back, and refused where it does not belong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import cntk as C
from cntk.core.graph.operator_states import check_operator_states, operator_states, restore_operator_states

x = C.input_variable(50)
DATA = np.ones((4, 50), np.float32)


def drawing() -> Any:
    """A graph that draws at random in two places, one of them in a block."""
    return C.layers.Dropout(0.5, seed=3)(x) + C.random.uniform_like(x, seed=5)


def drawn(f: Any) -> Any:
    _, values = f.forward({x: DATA}, outputs=f.outputs, keep_for_backward=set(f.outputs))
    return next(iter(values.values()))


def test_operators_go_on_from_where_they_stood() -> None:
    f = drawing()
    drawn(f)
    states = operator_states(f)
    following = [drawn(f), drawn(f)]
    assert (following[0] != following[1]).any()
    restore_operator_states(f, states)
    assert_array_equal(drawn(f), following[0])
    another = drawing()
    restore_operator_states(another, states)
    assert_array_equal(drawn(another), following[0])


def test_each_operator_has_a_place_whether_it_keeps_something_or_not() -> None:
    states = operator_states(drawing())
    assert sum(bool(state) for state in states) == 2
    assert {} in states


def test_looking_changes_nothing() -> None:
    f = drawing()
    drawn(f)
    states = operator_states(f)
    following = drawn(f)
    restore_operator_states(f, states)
    check_operator_states(f, operator_states(drawing()))
    assert_array_equal(drawn(f), following)


def test_states_of_another_graph_are_refused() -> None:
    f = drawing()
    states = operator_states(f)
    with pytest.raises(RuntimeError, match=f"checkpoint of a graph with {len(states) - 1} operators given to one with {len(states)}"):
        restore_operator_states(f, states[1:])
    with pytest.raises(RuntimeError, match="checkpoint of a graph with no operators given"):
        check_operator_states(f, "nothing")
    with pytest.raises(RuntimeError, match=r"expected what .* keeps, a dictionary, got int 3"):
        check_operator_states(f, [3, *states[1:]])
