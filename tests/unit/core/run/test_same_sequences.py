"""Minibatches of sequences as long as those before of that size need no new sizes; others do, also where they have as many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.run import workspace

RNG = np.random.default_rng(3)


def sequences(*lengths: int) -> list[Any]:
    return [RNG.random((length, 2), np.float32) for length in lengths]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sizes that are made from now on."""
    found: list[Any] = []
    make = workspace.Sizes
    monkeypatch.setattr(workspace, "Sizes", lambda *arguments: found.append(arguments) or make(*arguments))
    return found


def counting() -> Any:
    return C.layers.Recurrence(lambda h, x: C.reduce_sum(x, 0) + h * 2)(C.sequence.input_variable(2))


def by_hand(minibatch: list[Any]) -> list[Any]:
    found = []
    for sequence in minibatch:
        totals, total = [], 0.0
        for step in sequence:
            total = 2 * total + step.sum()
            totals.append([total])
        found.append(np.array(totals, np.float32))
    return found


def check(function: Any, minibatch: list[Any]) -> None:
    for found, wanted in zip(function.eval(minibatch), by_hand(minibatch), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_sizes_are_made_where_lengths_change(made: list[Any]) -> None:
    function = counting()
    expected = [
        ((3, 2), 1),
        ((3, 2), 1),
        ((3, 2), 1),
        ((2, 3), 2),
        ((2, 3), 2),
        ((3, 2), 3),
        ((4, 1), 4),
        ((5,), 5),
        ((4, 1), 5),
        ((4, 1), 5),
    ]
    for lengths, count in expected:
        check(function, sequences(*lengths))
        assert len(made) == count, lengths


def test_training_steps_as_well(made: list[Any]) -> None:
    x, y = C.sequence.input_variable(2), C.input_variable(1)
    loss = C.squared_error(C.layers.Dense(1)(C.sequence.last(C.layers.Recurrence(C.layers.GRU(3))(x))), y)
    trainer = C.Trainer(loss, (loss, None), C.sgd(loss.parameters, 0.1))
    for lengths in ((3, 2), (3, 2), (2, 3)):
        trainer.train_minibatch({x: sequences(*lengths), y: np.ones((2, 1), np.float32)})
    assert len(made) == 2


def test_sequences_that_go_on_are_carried_over(made: list[Any]) -> None:
    function = counting()
    whole = sequences(4, 4)
    first, second = [one[:2] for one in whole], [one[2:] for one in whole]
    function.eval((first, [True, True]))
    for _ in range(2):
        function.eval((first, [True, True]))
        found = function.eval((second, [False, False]))
        for part, wanted in zip(found, by_hand(whole), strict=True):
            np.testing.assert_allclose(part, wanted[2:], rtol=1e-5)
    check(function, second)
    check(function, second)
    assert len(made) == 6


def test_a_second_input_with_other_sequences_is_refused() -> None:
    x, y = C.sequence.input_variable(2), C.sequence.input_variable(2)
    function = x + y
    for _ in range(2):
        function.eval({x: sequences(3, 2), y: sequences(3, 2)})
    with pytest.raises(ValueError, match="both are on the dynamic axes"):
        function.eval({x: sequences(3, 2), y: sequences(2, 3)})
