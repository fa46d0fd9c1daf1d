"""The order of operators: of any graph, each after what it needs, and those that need one another together."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.core.operators.delay import Delay
from cntk.core.operators.op import Traits
from cntk.core.program.ordering import Cycle, _components, in_order

Edges = dict[int, list[int]]

edges: st.SearchStrategy[Edges] = st.integers(1, 7).flatmap(
    lambda count: st.fixed_dictionaries({i: st.lists(st.integers(0, count - 1), max_size=3) for i in range(count)})
)
laws = settings(max_examples=200, deadline=None)


def behind(of: Edges, start: int) -> set[int]:
    """What is reached from a node, in one step or more."""
    found: set[int] = set()
    fresh = set(of[start])
    while fresh:
        found |= fresh
        fresh = {operand for node in fresh for operand in of[node]} - found
    return found


def alike(of: Edges, node: int) -> set[int]:
    """The nodes that need one another, this one among them."""
    return {node} | {other for other in behind(of, node) if node in behind(of, other)}


@laws
@given(edges, st.data())
def test_components_are_nodes_that_need_one_another(of: Edges, data: Any) -> None:
    starts = data.draw(st.lists(st.sampled_from(sorted(of)), max_size=3))
    among = data.draw(st.none() | st.sets(st.sampled_from(sorted(of))))
    seen: Edges = of if among is None else {node: [o for o in of[node] if o in among] for node in of}
    groups: list[list[int]] = list(_components(starts, seen.__getitem__))  # type: ignore[arg-type, type-var]
    assert list(_components(starts, of.__getitem__, among)) == groups  # type: ignore[arg-type, type-var]
    done: set[int] = set()
    for group in groups:
        assert len(set(group)) == len(group)
        assert all(alike(seen, node) == set(group) for node in group)
        assert not done & set(group)
        done |= set(group)
        assert all(behind(seen, node) <= done for node in group)
    assert done == set(starts).union(*(behind(seen, start) for start in starts))


class Op:
    """An operator, as far as its place goes."""

    def __init__(self, traits: Traits) -> None:
        self.traits = traits


class Back(Op, Delay):
    """One that reads the step before."""

    steps_back = 1


class Node(SimpleNamespace):
    """An operator, which is equal to itself alone."""

    __hash__, __eq__ = object.__hash__, object.__eq__  # type: ignore[assignment]


def graph(of: Edges, delays: Iterable[int], layouts: Iterable[int] = ()) -> list[Any]:
    """Nodes that read these; of delays the first operand is read at another step, of *layouts* the last for its layout alone."""
    return [
        Node(
            number=node,
            inputs=of[node],
            op=(Back if node in delays else Op)(Traits(layout_inputs=(len(of[node]) - 1,) if node in layouts and of[node] else ())),
        )
        for node in sorted(of)
    ]


@laws
@given(edges, st.data())
def test_each_operator_comes_once_and_after_what_it_needs(of: Edges, data: Any) -> None:
    """Every edge back is made one of a delay's first operand, so that there are no cycles but recurrences."""
    ahead: Edges = {node: [o for o in of[node] if o < node] for node in of}
    delays = data.draw(st.sets(st.sampled_from(sorted(of))))
    read = {node: [data.draw(st.sampled_from(sorted(of))), *ahead[node]] if node in delays else ahead[node] for node in of}
    nodes = graph(read, delays)
    order = in_order([max(of)], nodes.__getitem__)  # type: ignore[list-item, arg-type]
    done: set[int] = set()
    for part in order:
        if isinstance(part, Cycle):
            group = [node.number for node in part.nodes]  # type: ignore[attr-defined]
            assert part.forward
            assert alike(read, group[0]) == set(group)
            for i, node in enumerate(group):
                now = read[node][1:] if node in delays else read[node]
                assert all(operand in done or operand in group[:i] for operand in now)
                assert all(operand in done or operand in group for operand in read[node])
        else:
            assert part is not None
            group = [part.number]  # type: ignore[attr-defined]
            assert group[0] not in behind(read, group[0])
            assert all(operand in done for operand in read[group[0]])
        assert not done & set(group)
        done |= set(group)
    assert done == {max(of)} | behind(read, max(of))


def test_an_operand_read_for_its_layout_alone_is_no_part_of_the_recurrence() -> None:
    """Operator 2 takes the layout of recurrence 0, 1, which reads it."""
    nodes = graph({0: [1, 2], 1: [0], 2: [1]}, {0}, {2})
    outer, cycle = in_order([0], nodes.__getitem__)  # type: ignore[list-item, arg-type]
    assert outer is nodes[2]
    assert isinstance(cycle, Cycle)
    assert cycle.nodes == (nodes[0], nodes[1])


def test_a_layout_read_within_a_step_does_not_order_it() -> None:
    """Operator 1 takes the layout of 2, which reads its value, beside the delay 0."""
    nodes = graph({0: [2], 1: [0, 2], 2: [1]}, {0}, {1})
    (cycle,) = in_order([0], nodes.__getitem__)  # type: ignore[list-item, arg-type]
    assert isinstance(cycle, Cycle)
    assert cycle.nodes == (nodes[0], nodes[1], nodes[2])


def test_an_operator_that_reads_only_its_own_last_step_is_a_recurrence() -> None:
    (node,) = nodes = graph({0: [0]}, {0})
    assert in_order([0], nodes.__getitem__) == [Cycle((node,), True)]  # type: ignore[list-item, arg-type]


def test_leaves_have_no_place() -> None:
    x = C.input_variable(2)
    assert in_order([x], lambda variable: None) == []


@pytest.mark.parametrize(("delay", "forward"), [(C.sequence.past_value, True), (C.sequence.future_value, False)])
def test_steps_follow_the_direction_of_the_delay(delay: Any, forward: bool) -> None:
    before = C.placeholder()
    y = C.sequence.input_variable(2) + delay(before)
    y = y.replace_placeholders({before: y.output})
    (cycle,) = in_order(y.outputs, lambda variable: variable.owner if variable.is_output else None)
    assert isinstance(cycle, Cycle)
    assert cycle.forward is forward
