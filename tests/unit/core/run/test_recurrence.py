"""Loops at work: what is bound for one minibatch serves others, and none sees another's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.run import recurrence
from cntk.core.run.workspace import Placement
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


def loss_of_two(seed: int) -> tuple[Any, Any, Any]:
    """A loss of sequences on two axes, with the two inputs."""
    C.cntk_py.set_fixed_random_seed(seed)
    first, second = C.sequence.input_variable(3, name="first"), C.sequence.input_variable(3, sequence_axis=C.Axis("other"), name="second")
    last = [C.sequence.last(Recurrence(LSTM(width))(x)) for width, x in ((5, first), (4, second))]
    return C.reduce_sum(C.sin(Dense(3)(C.splice(*last))), 0), first, second


def test_sequences_on_two_axes_lie_where_those_of_other_lengths_lay(sweeps: list[Any]) -> None:
    loss, first, second = loss_of_two(1)
    pairs = [
        ((20, 20), (15, 15)),
        ((15, 15), (20, 20)),
        ((20, 20), (15, 15)),
        ((19, 18), (17, 19)),
        ((16, 20), (20, 15)),
        ((14, 20), (17, 14)),
    ]
    counted = []
    for pair in pairs:
        data = dict(zip((first, second), (minibatch(*lengths) for lengths in pair), strict=True))
        found = loss.grad(data, wrt=loss.parameters)
        counted.append(len(sweeps))
        other, *inputs = loss_of_two(1)
        expected = other.grad(dict(zip(inputs, data.values(), strict=True)), wrt=other.parameters)
        sweeps[counted[-1] :] = []
        for mine, fresh in zip(loss.parameters, other.parameters, strict=True):
            np.testing.assert_array_equal(found[mine], expected[fresh])
    assert counted[2:] == [counted[2]] * 4, "nothing is bound anew for lengths in between"


def test_sweeps_are_kept_for_vectors_of_several_lengths(sweeps: list[Any]) -> None:
    """Where a width is free, each has sweeps of its own."""
    C.cntk_py.set_fixed_random_seed(1)
    x = C.sequence.input_variable((C.FreeDimension,))
    total = C.reduce_sum(C.sequence.reduce_sum(Recurrence(lambda h, x: C.reduce_mean(C.tanh(x + h)))(x)))
    random = np.random.default_rng(1)
    counted = []
    for width, lengths in [(7, (9, 9)), (6, (9, 9)), (7, (9, 8)), (6, (9, 8)), (7, (8, 8)), (6, (9, 7))]:
        total.eval({x: [random.standard_normal((length, width)).astype(np.float32) for length in lengths]})
        counted.append(len(sweeps))
    assert counted[1:] == [counted[1]] * 5


def test_few_arrays_do_not_lie_where_there_is_room_for_many() -> None:
    placement = Placement((640, 64), ((0, 1), (1, 2)), None, (0, 640), {})
    assert placement.has_room((640, 64))
    assert placement.has_room((480, 64))
    assert not placement.has_room((320, 64)), "they would be spread over twice as much memory"
    assert not placement.has_room((600, 128))
