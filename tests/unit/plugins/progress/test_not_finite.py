"""A loss that is no number leads to checked mode, once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.plugins.progress.not_finite import is_told, warn_unless_finite

x, y = C.input_variable(1), C.input_variable(1)


def parts(rate: float = 0.1) -> tuple[Any, Any]:
    model = C.layers.Dense(1, init=1)(x)
    loss = C.squared_error(model, y)
    return loss, C.sgd(model.parameters, rate)


def told(run: Any) -> list[Any]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return found


NAN = np.array([[np.nan]], np.float32)
ONE = np.ones((1, 1), np.float32)


def test_train_tells_once_at_the_users_line(capsys: pytest.CaptureFixture[str]) -> None:
    loss, _ = parts()

    def run() -> None:
        for _ in range(3):
            loss.train((NAN, ONE), parameter_learners=[C.sgd(loss.parameters, 0.1)], callbacks=[C.logging.ProgressPrinter(1)])

    (warning,) = told(run)
    assert "the loss is nan: C.debugging.set_checked_mode(True)" in str(warning.message)
    assert warning.filename == __file__
    assert "checked" not in capsys.readouterr().out


def test_a_loop_of_ones_own_is_told_when_it_asks_for_the_loss() -> None:
    loss, learner = parts()
    trainer = C.Trainer(None, loss, [learner])
    assert told(lambda: trainer.train_minibatch({x: NAN, y: ONE})) == []
    assert len(told(lambda: trainer.previous_minibatch_loss_average)) == 1


def test_an_infinite_loss_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    loss, learner = parts(1e30)
    run = lambda: loss.train((np.ones((8, 1), np.float32),) * 2, 1, parameter_learners=[learner], max_epochs=2)  # noqa: E731
    loss.parameters[0].value = np.full(loss.parameters[0].shape, 3, np.float32)
    assert "the loss is" in str(told(run)[0].message)


@pytest.mark.parametrize("loss", [0.0, -1.0, 1e300])
def test_numbers_are_not_told(loss: float) -> None:
    warn_unless_finite(loss)
    assert not is_told.value


def test_checked_mode_needs_no_telling() -> None:
    C.debugging.set_checked_mode(True)
    warn_unless_finite(float("nan"))
    assert not is_told.value
