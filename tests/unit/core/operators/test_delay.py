"""Delays: which operators may close a recurrence, and what one that forgets a method says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.operators.delay import Delay
from cntk.core.operators.effects import Effect


def test_past_and_future_values_are_delays() -> None:
    x = C.sequence.input_variable(2)
    past, future = (f(x, time_step=3).root_function.op for f in (C.sequence.past_value, C.sequence.future_value))
    assert isinstance(past, Delay)
    assert isinstance(past, Effect)
    assert (past.steps_back, future.steps_back) == (3, -3)
    assert not isinstance(C.tanh(x).root_function.op, Delay)


@pytest.mark.parametrize(("name", "arguments"), [("fill", (None, None, None)), ("remember", (None, None))])
def test_a_method_that_is_not_there_is_named(name: str, arguments: Any) -> None:
    unfinished = type("Unfinished", (Delay,), {"steps_back": 1})()
    with pytest.raises(NotImplementedError, match=f"Unfinished.{name}"):
        getattr(unfinished, name)(*arguments)


def test_only_a_delay_closes_a_cycle() -> None:
    x = C.sequence.input_variable(1)

    def closed(delay: Any) -> Any:
        before = C.placeholder()
        total = x + delay(before)
        return total.replace_placeholders({before: total.output})

    np.testing.assert_array_equal(closed(C.sequence.past_value).eval([np.float32([[1], [2], [3]])])[0], [[1], [3], [6]])
    with pytest.raises((ValueError, RuntimeError), match=r"delay|past_value"):
        closed(C.tanh).eval([np.float32([[1], [2], [3]])])
