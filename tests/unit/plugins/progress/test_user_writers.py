"""Progress writers that programs write themselves, in the manner of CNTK 2: what they are told, and what becomes of their errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C


class Recorder(C.cntk_py.ProgressWriter):
    """A writer as programs for CNTK 2 have it."""

    def __init__(self, *frequencies: int) -> None:
        super(Recorder, self).__init__(*(frequencies or (1, 0, 1, 0, sys.maxsize, 0)))  # noqa: UP008
        self.__disown__()
        self.told: list[Any] = []

    def on_write_training_update(self, samples: Any, updates: Any, aggregate_loss: Any, aggregate_metric: Any) -> None:
        self.told.append(("training", samples, updates, aggregate_loss, aggregate_metric))

    def on_write_test_update(self, samples: Any, updates: Any, aggregate_metric: Any) -> None:
        self.told.append(("test", samples, updates, aggregate_metric))

    def on_write_training_summary(
        self, samples: int, updates: int, summaries: int, aggregate_loss: float, aggregate_metric: float, elapsed_milliseconds: float
    ) -> None:
        assert elapsed_milliseconds >= 0
        self.told.append(("training summary", samples, updates, summaries, aggregate_loss, aggregate_metric))

    def on_write_test_summary(
        self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: float
    ) -> None:
        assert elapsed_milliseconds >= 0
        self.told.append(("test summary", samples, updates, summaries, aggregate_metric))

    def on_training_update_end(self) -> None:
        self.told.append("end")

    def write(self, key: str, value: Any) -> None:
        self.told.append((key, value))


DATA = np.ones((4, 1), np.float32)


def train(writers: Any, minibatches: int = 2, with_metric: bool = True) -> C.Trainer:
    """Train, sum up, test, sum up; loss and metric of each sample are 1."""
    x, y = C.input_variable(1), C.input_variable(1)
    model = C.layers.Dense(1, init=0)(x)
    error = C.squared_error(model, y)
    trainer = C.Trainer(model, (error, error if with_metric else None), [C.sgd(model.parameters, 0.0)], writers)
    for _ in range(minibatches):
        trainer.train_minibatch({x: DATA, y: DATA})
    trainer.summarize_training_progress()
    if with_metric:
        trainer.test_minibatch({x: DATA, y: DATA})
        trainer.summarize_test_progress()
    return trainer


def test_what_a_writer_is_told() -> None:
    writer = Recorder()
    train(writer)
    assert writer.told == [
        ("Learning rate per minibatch", 0.0),
        ("training", (0, 4), (0, 1), (0.0, 4.0), (0.0, 4.0)),
        "end",
        ("training", (4, 8), (1, 2), (4.0, 8.0), (4.0, 8.0)),
        "end",
        ("training summary", 8, 2, 1, 8.0, 8.0),
        ("test", (0, 4), (0, 1), (0.0, 4.0)),
        ("test summary", 4, 1, 1, 4.0),
    ]
    assert (writer.total_training_updates(), writer.total_test_updates()) == (2, 1)


def test_a_writer_of_several_trainers_counts_on() -> None:
    writer = Recorder()
    train(writer)
    writer.told.clear()
    train([writer], with_metric=False)
    assert writer.told[-1] == ("training summary", 8, 2, 2, 8.0, 0.0)
    assert writer.total_training_updates() == 4


@pytest.mark.parametrize(
    ("frequencies", "updates"),
    [
        ((2, 1, 2, 1, 1, 0), [(0, 1), (1, 2), (2, 4)]),
        ((0, 0, 0, 0, 0, 0), [(0, 1), (1, 3)]),
        ((3, 0, 1, 0, 1, 0), [(0, 3)]),
        ((sys.maxsize, 0, 1, 0, 1, 0), []),
    ],
)
def test_how_often_a_writer_is_told(frequencies: tuple[int, ...], updates: list[Any]) -> None:
    writer = Recorder(*frequencies)
    train(writer, 5)
    assert [told[2] for told in writer.told if told[0] == "training"] == updates


def test_arguments_may_have_other_names() -> None:
    told = []

    class Short(C.cntk_py.ProgressWriter):
        def __init__(self) -> None:
            C.cntk_py.ProgressWriter.__init__(self, 1, 0, 1, 0, 1, 0)

        def on_write_training_update(self, s: Any, u: Any, loss: Any, metric: Any) -> None:
            told.append(u)

    train([Short()])
    assert told == [(0, 1), (1, 2)]


def failing(method: str) -> Recorder:
    """A writer whose method fails."""

    def fail(self: Any, *told: Any) -> None:
        raise KeyError("mine")

    return type("Failing", (Recorder,), {method: fail})()


METHODS = [
    "on_write_training_update",
    "on_write_training_summary",
    "on_write_test_update",
    "on_write_test_summary",
    "on_training_update_end",
    "write",
]


@pytest.mark.parametrize("method", METHODS)
def test_an_error_of_a_writer_reaches_the_program(method: str) -> None:
    with pytest.raises(KeyError, match="mine") as caught:
        train([Recorder(), failing(method)])
    assert caught.value.__cause__ is None
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"


@pytest.mark.parametrize("method", METHODS)
def test_an_error_of_a_writer_reaches_the_caller_of_train(method: str) -> None:
    x, y = C.input_variable(1), C.input_variable(1)
    error = C.squared_error(C.layers.Dense(1, init=0)(x), y)

    def run(callback: Recorder) -> None:
        error.train((DATA, DATA), parameter_learners=[C.sgd(error.parameters, 0.1)], callbacks=[callback])
        error.test((DATA, DATA), callbacks=[callback])

    with pytest.raises(KeyError, match="mine"):
        run(failing(method))


def test_training_goes_on_after_an_error_of_a_writer() -> None:
    """The minibatch has been trained on by then."""
    x, y = C.input_variable(1), C.input_variable(1)
    error = C.squared_error(C.layers.Dense(1, init=0)(x), y)
    trainer = C.Trainer(None, (error, None), [C.sgd(error.parameters, 0.1)], [failing("on_training_update_end")])
    step: Callable[[], Any] = lambda: trainer.train_minibatch({x: DATA, y: DATA})  # noqa: E731
    losses = []
    for _ in range(2):
        with pytest.raises(KeyError):
            step()
        losses.append(trainer.previous_minibatch_loss_average)
    assert trainer.total_number_of_samples_seen == 8
    assert losses[1] < losses[0]


@pytest.mark.parametrize("writers", [None, [], ()])
def test_there_may_be_no_writer(writers: Any) -> None:
    assert train(writers).total_number_of_samples_seen == 8


@pytest.mark.parametrize("writer", [print, "ProgressPrinter", object()])
def test_what_is_no_writer_is_refused(writer: Any) -> None:
    with pytest.raises(TypeError, match="expected progress writers"):
        train([writer])
