"""One epoch of arrays is one pass over them, whatever axes the loss has, and minibatches are counted as the loss counts samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.layers import LSTM, Dense, Fold, Recurrence, Sequential
from cntk.train import DataUnit

LENGTHS = [4, 2, 8, 3, 6, 5, 7, 3, 10, 4]
STEPS = sum(LENGTHS)


def classifier() -> Any:
    return C.cross_entropy_with_softmax(Sequential([Fold(LSTM(4)), Dense(2)])(C.sequence.input_variable(2)), C.input_variable(2))


def tagger() -> Any:
    z = Sequential([Recurrence(LSTM(4)), Dense(2)])(C.sequence.input_variable(2))
    return C.cross_entropy_with_softmax(z, C.sequence.broadcast_as(C.input_variable(2), z))


def beginnings_left_out() -> Any:
    tail = C.sequence.slice(C.sequence.input_variable(2), 1, 0)
    return C.squared_error(Dense(2)(tail), C.sequence.broadcast_as(C.input_variable(2), tail))


def picked() -> Any:
    x = C.sequence.input_variable(2)
    chosen = C.sequence.gather(x, C.greater(C.slice(x, 0, 0, 1), 0.5))
    return C.squared_error(Dense(2)(chosen), C.sequence.broadcast_as(C.input_variable(2), chosen))


def one_number() -> Any:
    error = C.squared_error(Dense(2)(C.sequence.last(C.sequence.input_variable(2))), C.input_variable(2))
    return C.reduce_mean(error, axis=C.Axis.all_axes())


class Sequences:
    """Sequences with a class each."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x = [rng.uniform(size=(n, 2)).astype(np.float32) for n in LENGTHS]
        for sequence in self.x:
            sequence[-1, 0] = 0.75  # picked in each
        self.y = np.eye(2, dtype=np.float32)[rng.integers(0, 2, len(LENGTHS))]

    def train(self, loss: Any, **arguments: Any) -> Any:
        learner = C.sgd(loss.parameters, C.learning_parameter_schedule(0.1))
        return loss.train((self.x, self.y), parameter_learners=[learner], **arguments)


def picked_steps(data: Sequences) -> int:
    return sum(int((sequence[:, 0] > 0.5).sum()) for sequence in data.x)


@pytest.mark.parametrize(
    ("make", "samples"),
    [
        (classifier, lambda data: len(LENGTHS)),
        (tagger, lambda data: STEPS),
        (beginnings_left_out, lambda data: STEPS - len(LENGTHS)),
        (picked, picked_steps),
    ],
)
@pytest.mark.parametrize("size", [1, 4, 32, 1000])
def test_an_epoch_is_one_pass(make: Callable[[], Any], samples: Callable[[Sequences], int], size: int) -> None:
    data = Sequences()
    expected = samples(data)
    for epochs in (1, 3):
        found = data.train(make(), max_epochs=epochs, minibatch_size=size, progress_frequency=(1, DataUnit.sweep))
        assert [summary.samples for summary in found.epoch_summaries] == [expected] * epochs
        found = data.train(make(), max_epochs=epochs, minibatch_size=size)
        assert sum(summary.samples for summary in found.epoch_summaries) == expected * epochs


def test_a_loss_of_one_number_is_trained_for_one_pass() -> None:
    data = Sequences()
    found = data.train(one_number(), minibatch_size=1000, progress_frequency=(1, DataUnit.minibatch))
    assert len(found.epoch_summaries) == 1


def test_minibatches_hold_as_many_samples_as_the_loss_counts() -> None:
    data = Sequences()
    each = (1, DataUnit.minibatch)
    found = data.train(classifier(), minibatch_size=4, progress_frequency=each)
    assert [summary.samples for summary in found.epoch_summaries] == [4, 4, 2]
    found = data.train(tagger(), minibatch_size=9, progress_frequency=each)
    assert [summary.samples for summary in found.epoch_summaries] == [6, 8, 9, 5, 7, 3, 10, 4]


def test_arrays_of_equally_long_sequences_are_counted_alike() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(40, 10, 2)).astype(np.float32), np.eye(2, dtype=np.float32)[rng.integers(0, 2, 40)]
    for data in ((x, y), (list(x), y)):
        loss = classifier()
        learner = C.sgd(loss.parameters, C.learning_parameter_schedule(0.1))
        found = loss.train(data, parameter_learners=[learner], max_epochs=1, progress_frequency=(1, DataUnit.sweep))
        assert [summary.samples for summary in found.epoch_summaries] == [40]
        assert learner.total_number_of_samples_seen() == 40
        assert loss.test(data).samples == 40


def test_a_part_of_an_epoch_is_a_part_of_the_pass() -> None:
    data = Sequences()
    found = data.train(beginnings_left_out(), max_epochs=0.5, minibatch_size=1)
    half = [n - 1 for n, end in zip(LENGTHS, np.cumsum(LENGTHS), strict=True) if end <= STEPS / 2]
    assert 0 <= found.epoch_summaries[0].samples - sum(half) <= max(LENGTHS)


@pytest.mark.parametrize("make", [classifier, beginnings_left_out])
def test_epochs_go_on_from_a_checkpoint(make: Callable[[], Any], tmp_path: Any) -> None:
    data = Sequences()
    whole = make()
    start = [p.value for p in whole.parameters]

    def trained(loss: Any, epochs: float, name: str) -> list[Any]:
        config = C.CheckpointConfig(str(tmp_path / name), preserve_all=False)
        data.train(loss, max_epochs=epochs, minibatch_size=4, callbacks=[config])
        return [p.value for p in loss.parameters]

    expected = trained(whole, 2, "whole")
    parts = make()
    for parameter, value in zip(parts.parameters, start, strict=True):
        parameter.value = value
    trained(parts, 1, "parts")
    found = trained(parts, 2, "parts")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
