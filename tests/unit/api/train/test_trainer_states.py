"""A trainer in any order of steps, saves, failed saves and restores, against a few lines of NumPy."""

from __future__ import annotations

import copy
import errno
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import Calls
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy.testing import assert_allclose

import cntk as C

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of files that a failed close left open

RATES = [0.01, 0.02, 0.005]
EPOCH = 6
"""Samples after which the schedule of learning rates goes on."""
MOMENTUM = 0.5
FEATURES = 3


@dataclass
class Reference:
    """What is trained, and what the learner keeps."""

    weights: Any = field(default_factory=lambda: np.linspace(-1, 1, FEATURES)[:, None])
    velocity: Any = field(default_factory=lambda: np.zeros((FEATURES, 1)))
    samples: int = 0
    minibatches: int = 0

    def train(self, x: Any, y: Any) -> float:
        """Momentum descends along the summed gradient of ``sum (x w - y)²``; returns the loss from before."""
        error = x @ self.weights - y
        rate = RATES[min(self.samples // EPOCH, len(RATES) - 1)]
        self.velocity = MOMENTUM * self.velocity + rate * (2 * x.T @ error)
        self.weights = self.weights - self.velocity
        self.samples += len(x)
        self.minibatches += 1
        return float((error**2).sum())


class Training(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.file = str(self.folder / "checkpoint")
        self.saved: Reference | None = None
        self.draws = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize()
    def begin(self) -> None:
        self.reference = Reference()
        self._new_trainer()

    def _new_trainer(self) -> None:
        self.x, y = C.input_variable(FEATURES, dtype=np.float64), C.input_variable(1, dtype=np.float64)
        self.y = y
        self.weights = C.parameter(init=Reference().weights, dtype=np.float64, name="weights")
        self.z = C.times(self.x, self.weights)
        rate = C.learning_parameter_schedule_per_sample(RATES, epoch_size=EPOCH)
        momentum = C.momentum_schedule(MOMENTUM)
        learner = C.momentum_sgd([self.weights], rate, momentum, unit_gain=False)
        self.loss = C.squared_error(self.z, y)
        self.trainer = C.Trainer(self.z, (self.loss, self.loss), [learner])

    def _data(self, count: int) -> tuple[Any, Any]:
        self.draws += 1
        random = np.random.default_rng(self.draws)
        return random.uniform(-1, 1, (count, FEATURES)), random.uniform(-1, 1, (count, 1))

    @rule(count=st.integers(1, 5))
    def train(self, count: int) -> None:
        x, y = self._data(count)
        wanted = self.reference.train(x, y)
        self.trainer.train_minibatch({self.x: x, self.y: y})
        assert_allclose(self.trainer.previous_minibatch_loss_average * count, wanted, rtol=1e-9, atol=1e-12)

    @rule(count=st.integers(1, 5))
    def test(self, count: int) -> None:
        x, y = self._data(count)
        assert_allclose(
            self.trainer.test_minibatch({self.x: x, self.y: y}), ((x @ self.reference.weights - y) ** 2).mean(), rtol=1e-9, atol=1e-12
        )

    @rule()
    def save(self) -> None:
        self.trainer.save_checkpoint(self.file)
        self.saved = copy.deepcopy(self.reference)

    @rule(call=st.integers(0, 60))
    def fail_to_save(self, call: int) -> None:
        """What is restored later is one of the two states; which, its samples tell."""
        if self.saved is not None and self.saved.samples == self.reference.samples:
            return

        def fault(number: int, name: str, is_done: bool) -> None:
            if number == call and not is_done:
                raise OSError(errno.ENOSPC, "no space left")

        try:
            with Calls(fault):
                self.trainer.save_checkpoint(self.file)
            self.saved = copy.deepcopy(self.reference)
        except OSError:
            before = None if self.saved is None else self.saved.samples
            found = self._restored_samples()
            assert found in (before, self.reference.samples)
            if found != before:
                self.saved = copy.deepcopy(self.reference)

    def _restored_samples(self) -> int | None:
        """Of a trainer made for it; None where there is no checkpoint."""
        if not Path(self.file).exists():
            return None
        kept = {name: getattr(self, name) for name in ("x", "y", "z", "weights", "loss", "trainer")}
        self._new_trainer()
        self.trainer.restore_from_checkpoint(self.file)
        found: int = self.trainer.total_number_of_samples_seen
        self.__dict__.update(kept)
        return found

    @precondition(lambda self: self.saved is not None)
    @rule(anew=st.booleans())
    def restore(self, anew: bool) -> None:
        if anew:
            self._new_trainer()
        self.trainer.restore_from_checkpoint(self.file)
        self.reference = copy.deepcopy(self.saved)  # type: ignore[assignment]

    @invariant()
    def is_where_it_should_be(self) -> None:
        assert_allclose(self.weights.value, self.reference.weights, rtol=1e-9, atol=1e-12)
        assert self.trainer.total_number_of_samples_seen == self.reference.samples


TestTraining = Training.TestCase
TestTraining.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
