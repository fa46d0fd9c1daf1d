"""Training of estimators: shuffled data, and what is done after each epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cntk.plugins.progress.base import ProgressWriter
from cntk.train.data import ArrayData
from cntk.train.data_unit import DataUnit
from cntk.train.session_config import CheckpointConfig, CrossValidationConfig, TestConfig
from cntk.train.trainer import Trainer
from cntk.train.training_session import TrainingSession


class ShuffledData(ArrayData):
    """Arrays and lists in an order of its own in each pass, which the seed and the number of the pass decide.

    Args:
        data, arguments, counted: see :class:`~cntk.train.data.ArrayData`; what is counted has one value for each row.
        seed: chooses the orders.
        passes: how many there have been before.
    """

    def __init__(self, data: Any, arguments: Sequence[Any], counted: Any, seed: int, passes: int) -> None:
        super().__init__(data, arguments, counted)
        self._seed, self._before = seed, passes
        self._ordered, self._order = -1, np.arange(0)

    def next(self, size: int, workers: int = 1, rank: int = 0) -> tuple[dict[Any, Any], bool]:
        if self._ordered != self._passes:
            self._ordered = self._passes
            self._order = np.random.default_rng([self._seed, self._before + self._passes]).permutation(self.length)
        return super().next(size, workers, rank)

    def part(self, array: Any, places: slice) -> Any:
        chosen = self._order[places]
        return [array[place] for place in chosen] if isinstance(array, list) else array[chosen]


class Epoch(ProgressWriter):
    """Keeps the average loss of the last epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.loss = float("nan")

    def on_write_training_summary(
        self, samples: int, updates: int, summaries: int, aggregate_loss: float, aggregate_metric: float, elapsed_milliseconds: int
    ) -> None:
        self.loss = aggregate_loss / samples


class Callbacks:
    """The callbacks of an estimator, by what they are.

    Args:
        owner: name of the estimator.
        given: progress writers, configurations of a training session, functions of the estimator; None, one or a list.

    Attributes:
        writers: progress writers.
        checkpoint, test: configurations, or None.
        functions: called with the estimator after each epoch; False ends training.

    Raises:
        TypeError: a callback is something else.
    """

    def __init__(self, owner: str, given: Any) -> None:
        self.writers: list[ProgressWriter] = []
        self.functions: list[Callable[[Any], Any]] = []
        self.checkpoint: CheckpointConfig | None = None
        self.validation: CrossValidationConfig | None = None
        self.test: TestConfig | None = None
        for callback in [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]:
            if isinstance(callback, ProgressWriter):
                self.writers.append(callback)
            elif isinstance(callback, CheckpointConfig):
                self.checkpoint = callback
            elif isinstance(callback, TestConfig):
                self.test = callback
            elif callable(callback) and not isinstance(callback, type):
                self.functions.append(callback)
            else:
                raise TypeError(
                    f"{owner}: callbacks are progress writers, a CheckpointConfig, a TestConfig and functions of the estimator; got "
                    f"{type(callback).__name__} {callback!r:.80}. Validation is early_stopping=True"
                )


def train(trainer: Trainer, data: ArrayData, batch_size: int, epochs: int, callbacks: Callbacks, after_epoch: Callable[[], bool]) -> None:
    """Train for so many epochs, or until *after_epoch* returns False.

    Args:
        trainer: the trainer.
        data: the data.
        batch_size: rows in a minibatch.
        epochs: passes over the data, at most.
        callbacks: what else takes part.
        after_epoch: called after each; whether to go on.
    """
    validation = CrossValidationConfig(frequency=(1, DataUnit.sweep), callback=lambda *_: after_epoch())
    seen = trainer.total_number_of_samples_seen
    TrainingSession(
        trainer, data, batch_size, None, seen + epochs * data.length, (1, DataUnit.sweep), callbacks.checkpoint, validation, callbacks.test
    ).train()
