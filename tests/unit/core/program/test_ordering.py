"""The order of operators, and the recurrences among them, on graphs made by hand and at random."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.graph.variable import Output
from cntk.core.program.ordering import Cycle, in_order


def owner_of(variable: Any) -> Any:
    return variable.owner if isinstance(variable, Output) else None


def ordered(*functions: Any) -> list[Any]:
    return in_order([output for function in functions for output in function.outputs], owner_of)


def nodes_of(part: Any) -> Iterable[Any]:
    return part.nodes if isinstance(part, Cycle) else (part,)


def recurrence(x: Any, delay: Callable[[Any], Any] = C.sequence.past_value, name: str = "") -> Any:
    """The sum of steps up to each one."""
    before = C.placeholder()
    total = C.plus(x, delay(before), name=name)
    return total.replace_placeholders({before: total.output})


@pytest.mark.parametrize("seed", range(10))
def test_each_operator_comes_once_and_after_those_it_needs(seed: int) -> None:
    random = np.random.default_rng(seed)
    made: list[Any] = [C.input_variable(()), C.input_variable(())]
    for _ in range(40):
        left, right = (made[i] for i in random.integers(len(made), size=2))
        made.append(C.plus(left, right))
    roots = [made[i] for i in random.integers(2, len(made), size=3)]
    order = ordered(*roots)
    assert len(set(order)) == len(order)
    for place, node in enumerate(order):
        assert all(owner in order[:place] for variable in node.inputs if (owner := owner_of(variable)) is not None)
    # Nothing else comes: each is a root, or is needed by one that comes later.
    wanted = {root.root_function for root in roots}
    for node in reversed(order):
        assert node in wanted
        wanted.update(owner for variable in node.inputs if (owner := owner_of(variable)) is not None)


def test_leaves_need_no_operator() -> None:
    assert in_order([C.input_variable(()), C.parameter(())], owner_of) == []


def test_depth_is_no_matter() -> None:
    x = f = C.input_variable(())
    for _ in range(5000):
        f = C.negate(f)
    assert len(ordered(f)) == 5000
    assert next(iter(ordered(f))).inputs == (x,)


@pytest.mark.parametrize(("delay", "forward"), [(C.sequence.past_value, True), (C.sequence.future_value, False)])
def test_a_recurrence_comes_as_one_and_knows_its_direction(delay: Any, forward: bool) -> None:
    x = C.sequence.input_variable(())
    total = recurrence(C.exp(x), delay)
    before, cycle, after = ordered(C.tanh(total))
    assert (before.op_name, after.op_name) == ("Exp", "Tanh")
    assert cycle.forward is forward
    assert sorted(node.op_name for node in cycle.nodes) == sorted([delay(x).root_function.op_name, "Plus"])


def test_within_a_step_operators_come_after_those_they_need() -> None:
    x, state = C.sequence.input_variable(()), C.placeholder()
    step = C.tanh(C.exp(C.negate(C.sequence.past_value(state))) + x)
    (cycle,) = ordered(step.replace_placeholders({state: step.output}))
    assert [node.op_name for node in cycle.nodes] == ["PastValue", "Negate", "Exp", "Plus", "Tanh"]


def test_recurrences_that_follow_one_another_stay_apart() -> None:
    x = C.sequence.input_variable(())
    one = recurrence(x)
    other = recurrence(C.exp(one), C.sequence.future_value)
    parts = ordered(other)
    assert [type(part).__name__ for part in parts] == ["Cycle", "Primitive", "Cycle"]
    assert [parts[0].forward, parts[2].forward] == [True, False]
    assert one.root_function in parts[0].nodes
    assert other.root_function in parts[2].nodes


def test_what_is_read_for_its_layout_alone_is_outside() -> None:
    """The number that is broadcast along the sequence of the recurrence's result needs its layout and no value."""
    x, state = C.sequence.input_variable(()), C.placeholder()
    like = C.sequence.broadcast_as(C.input_variable(()), C.sequence.past_value(state))
    total = x + like
    parts = ordered(total.replace_placeholders({state: total.output}))
    assert [node.op_name for part in parts for node in nodes_of(part)].count("Plus") == 1
    assert not any(isinstance(part, Cycle) for part in parts)


def test_a_cycle_without_delay_is_refused() -> None:
    x, state = C.sequence.input_variable(()), C.placeholder()
    total = x + C.exp(state)
    total.replace_placeholders({state: total.output})
    with pytest.raises(ValueError, match=r"the graph has a cycle here that goes through no delay \(past_value or future_value\)"):
        ordered(total)


@pytest.mark.parametrize("through", [C.exp, lambda operand: operand], ids=["two operators", "one"])
def test_a_cycle_without_delay_within_a_recurrence_is_refused(through: Callable[[Any], Any]) -> None:
    x, state, short = C.sequence.input_variable(()), C.placeholder(), C.placeholder()
    inner = through(short) + C.sequence.past_value(state)
    total = x + inner
    total.replace_placeholders({state: total.output, short: inner.output})
    with pytest.raises(ValueError, match="goes through no delay"):
        ordered(total)


def test_a_recurrence_that_steps_both_ways_is_refused() -> None:
    x, state = C.sequence.input_variable(()), C.placeholder()
    total = x + C.sequence.past_value(state) + C.sequence.future_value(state)
    total.replace_placeholders({state: total.output})
    with pytest.raises(ValueError, match="a recurrence goes through past_value and future_value; it must step one way"):
        ordered(total)
