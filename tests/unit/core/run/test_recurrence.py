"""Loops at work: what is bound for one minibatch serves others, and none sees another's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.run import recurrence
from cntk.layers import LSTM, Dense, Recurrence, Sequential


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Sweeps that have been bound."""
    made: list[Any] = []
    close = recurrence.LoopSchedule.close

    def noted(self: Any, passing: Any) -> None:
        made.append(self)
        close(self, passing)

    monkeypatch.setattr(recurrence.LoopSchedule, "close", noted)
    return made


def minibatch(*lengths: int) -> list[Any]:
    random = np.random.default_rng(sum(lengths))
    return [random.standard_normal((length, 3)).astype(np.float32) for length in lengths]


def gradients(loss: Any, data: list[Any]) -> list[Any]:
    (x,) = loss.arguments
    found, value = loss.grad({x: data}, wrt=loss.parameters, outputs=[loss.output])
    return [np.concatenate([np.ravel(row) for row in value]), *found.values()]


def loss_of(seed: int) -> Any:
    C.cntk_py.set_fixed_random_seed(seed)
    h = Sequential([Recurrence(LSTM(5)), Dense(4)])(C.sequence.input_variable(3))
    return C.reduce_sum(C.sin(h), 0)


def test_sweeps_serve_minibatches_that_take_as_much_room(sweeps: list[Any]) -> None:
    loss = loss_of(1)
    gradients(loss, minibatch(20, 20, 23))
    assert len(sweeps) == 2  # one for each direction
    for lengths in [(20, 20, 22), (21, 20, 21), (30, 31), (23, 20, 20)]:
        gradients(loss, minibatch(*lengths))
    assert len(sweeps) == 2
    gradients(loss, minibatch(20, 20, 24))  # more rows than have been bound
    gradients(loss, minibatch(20, 43))
    assert len(sweeps) == 4
    gradients(loss, minibatch(20, 20, 25))  # more than there is room for
    assert len(sweeps) == 6


def test_numbers_do_not_depend_on_what_sweeps_served_before() -> None:
    batches = [minibatch(*lengths) for lengths in [(20, 20, 23), (20, 20, 22), (30, 31), (20, 20, 24), (7, 9, 13), (20, 20, 23), (61,)]]
    serving = loss_of(1)
    for data in batches:
        for found, expected in zip(gradients(serving, data), gradients(loss_of(1), data), strict=True):
            np.testing.assert_array_equal(found, expected)
