"""Walks over graphs: what they find, once each, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.graph.graph import depth_first_search, find_all_with_name, find_by_name, find_by_uid, function_of, leaves_behind, leaves_of
from cntk.core.graph.graph import primitives_of as walked


def primitives_of(*functions: Any, **options: Any) -> list[Any]:
    return walked([function.root_function for function in functions], **options)


@pytest.mark.parametrize("seed", range(10))
def test_primitives_come_once_and_after_those_they_need(seed: int) -> None:
    random = np.random.default_rng(seed)
    made: list[Any] = [C.input_variable(()), C.parameter(())]
    for _ in range(30):
        left, right = (made[i] for i in random.integers(len(made), size=2))
        made.append(C.plus(left, right))
    found = primitives_of(made[-1], made[-2])
    assert len(set(found)) == len(found)
    for place, node in enumerate(found):
        assert all(variable.owner in found[:place] for variable in node.inputs if variable.is_output)


def test_a_walk_goes_round_a_recurrence_once() -> None:
    x, state = C.sequence.input_variable(()), C.placeholder()
    total = C.exp(x) + C.sequence.past_value(state)
    total = total.replace_placeholders({state: total.output})
    assert sorted(node.op_name for node in primitives_of(total)) == ["Exp", "PastValue", "Plus"]
    assert leaves_of(total.root_function)[0] is x
    assert len(depth_first_search(total, lambda node: node is x)) == 1


def test_a_walk_stops_where_it_is_told_to() -> None:
    x = C.input_variable(())
    middle = C.exp(x)
    f = C.tanh(middle)
    assert [node.op_name for node in primitives_of(f, stop=lambda variable: variable is middle.output)] == ["Tanh"]


def test_a_block_counts_as_one() -> None:
    f = C.layers.Dense(2, name="layer")(C.input_variable(3))
    assert [node.op_name for node in primitives_of(f)] == ["Dense"]
    assert "Times" in [node.op_name for node in depth_first_search(f, lambda node: hasattr(node, "op_name"), -1)]
    assert "Times" not in [node.op_name for node in depth_first_search(f, lambda node: hasattr(node, "op_name"), 0)]


def test_leaves_come_depth_first_and_once() -> None:
    a, b, c = (C.input_variable((), name=name) for name in "abc")
    f = (a + b) * (b + c) + a
    assert leaves_of(f.root_function) == [a, b, c]
    assert leaves_behind([c, f.output, a]) == [c, a, b]


def test_operands_of_products_come_right_before_left_in_the_engines_order() -> None:
    left, right = C.parameter((2, 3)), C.parameter((3, 4))
    product = C.times(left, right).root_function
    assert leaves_of(product) == [left, right]
    assert leaves_of(product, engine_order=True) == [right, left]
    one, other = C.parameter(()), C.parameter(())
    assert leaves_of((one - other).root_function, engine_order=True) == [one, other]


def test_depth_is_no_matter() -> None:
    x = f = C.input_variable(())
    for _ in range(5000):
        f = C.negate(f)
    assert len(primitives_of(f)) == 5000
    assert leaves_of(f.root_function) == [x]
    assert len(depth_first_search(f, lambda node: True)) == 5001


def test_nodes_come_before_what_they_depend_on() -> None:
    x = C.input_variable((), name="x")
    y = C.input_variable((), name="y")
    f = C.plus(C.tanh(C.exp(x, name="inner"), name="outer"), y, name="sum")
    assert [node.name for node in depth_first_search(f, lambda node: True)] == ["sum", "outer", "inner", "x", "y"]


def test_finding_by_name_and_uid() -> None:
    x = C.input_variable((), name="x")
    inner = C.exp(x, name="twice")
    f = C.tanh(inner, name="twice") + 1
    assert find_by_name(f, "x") is x
    assert find_by_name(f, "nothing") is None
    assert [node.op_name for node in find_all_with_name(f, "twice")] == ["Tanh", "Exp"]
    assert find_by_uid(f, inner.root_function.uid) is inner.root_function
    assert find_by_uid(f, "nothing") is None
    with pytest.raises(ValueError, match="2 nodes are called 'twice'; names must be unique"):
        find_by_name(f, "twice")


@pytest.mark.parametrize(("find", "what"), [(find_all_with_name, "name"), (find_by_name, "name"), (find_by_uid, "uid")])
def test_names_are_texts(find: Any, what: str) -> None:
    with pytest.raises(ValueError, match=rf"expected a {what} \(str\), got int"):
        find(C.exp(C.input_variable(())), 3)


def test_what_is_behind_a_function_or_an_output() -> None:
    x = C.input_variable(())
    f = C.exp(x)
    assert function_of(f) is function_of(f.output) is f.root_function
    assert function_of(x) is None
