"""The deprecated interface of the progress printer, for loops that tell it of each minibatch themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...core.common.user_frame import warn_user

Averages = tuple[float, float, int]


def average(total: float, count: float) -> float:
    """*total* divided by *count*; 0 if nothing was counted."""
    return total / count if count > 0 else 0.0


class ManualProgress:
    """Keeps the sums that the deprecated methods report; what is printed, and when, is as with a trainer.

    Attributes:
        loss_since_start, metric_since_start, samples_since_start, updates_since_start: sums and counts of this epoch.
        loss_since_last, metric_since_last, samples_since_last: the same since the last line.
        total_updates: number of minibatches in all.
        epochs: number of epochs that have been summarised.
    """

    freq: int
    first: int
    on_training_update_end: Callable[[], None]
    on_write_training_update: Callable[..., None]
    on_write_training_summary: Callable[..., None]

    def __init__(self) -> None:
        self.total_updates = self.epochs = 0
        self.epoch_start_time = time.monotonic()
        self._forget_start()
        self._forget_last()

    def update(self, loss: float, minibatch_size: int, metric: float | None = None) -> None:
        """Deprecated: report a minibatch by its number of samples, its average loss and, if there is one, its average metric."""
        _warn_deprecated("update", "give the printer to a Trainer")
        if minibatch_size == 0:
            return
        self.samples_since_start += minibatch_size
        self.samples_since_last += minibatch_size
        self.loss_since_start += loss * minibatch_size
        self.loss_since_last += loss * minibatch_size
        if metric is not None:
            self.metric_since_start += metric * minibatch_size
            self.metric_since_last += metric * minibatch_size
        self.updates_since_start += 1
        self.total_updates += 1
        self.on_training_update_end()
        if self._is_time_to_write():
            self._write(metric is not None)
            self._forget_last()

    def update_with_trainer(self, trainer: Any, with_metric: bool = False) -> None:
        """Deprecated: report the minibatch that *trainer* has just trained on."""
        if trainer is not None and trainer.previous_minibatch_sample_count != 0:
            metric = trainer.previous_minibatch_evaluation_average if with_metric else None
            self.update(trainer.previous_minibatch_loss_average, trainer.previous_minibatch_sample_count, metric)

    def epoch_summary(self, with_metric: bool = False) -> Averages | None:
        """Deprecated: print the line on an epoch and start a new one; with a table (``freq=0``) do neither.

        Returns:
            What :meth:`reset_start` returns, or None with a table.
        """
        _warn_deprecated("epoch_summary", "call trainer.summarize_training_progress()")
        self.epochs += 1
        now = time.monotonic()
        milliseconds = (now - self.epoch_start_time) * 1000
        self.epoch_start_time = now
        metric = self.metric_since_start if with_metric else None
        self.on_write_training_summary(
            self.samples_since_start, self.updates_since_start, self.epochs, self.loss_since_start, metric, milliseconds
        )
        return self._take_start() if self.freq else None

    def avg_loss_since_start(self) -> float:
        """Deprecated: average loss of this epoch."""
        return self._deprecated_average("avg_loss_since_start", self.loss_since_start, self.samples_since_start)

    def avg_metric_since_start(self) -> float:
        """Deprecated: average metric of this epoch."""
        return self._deprecated_average("avg_metric_since_start", self.metric_since_start, self.samples_since_start)

    def avg_loss_since_last(self) -> float:
        """Deprecated: average loss since the last line."""
        return self._deprecated_average("avg_loss_since_last", self.loss_since_last, self.samples_since_last)

    def avg_metric_since_last(self) -> float:
        """Deprecated: average metric since the last line."""
        return self._deprecated_average("avg_metric_since_last", self.metric_since_last, self.samples_since_last)

    def reset_start(self) -> Averages:
        """Deprecated: start an epoch; returns average loss, average metric and number of samples of the one before."""
        _warn_deprecated("reset_start", "call trainer.summarize_training_progress()")
        return self._take_start()

    def reset_last(self) -> Averages:
        """Deprecated: as :meth:`reset_start`, for what has come since the last line."""
        _warn_deprecated("reset_last", "call trainer.summarize_training_progress()")
        samples = self.samples_since_last
        averages = (average(self.loss_since_last, samples), average(self.metric_since_last, samples), samples)
        self._forget_last()
        return averages

    # Inside --------------------------------------------------------------------------------------------------------------------

    def _is_time_to_write(self) -> bool:
        updates = self.updates_since_start
        if self.freq == 0:
            return updates & (updates + 1) == 0
        return updates % self.freq == 0 or updates <= self.first

    def _write(self, with_metric: bool) -> None:
        updates, samples, loss, metric = self.updates_since_start, self.samples_since_start, self.loss_since_start, self.metric_since_start
        before = updates - 1 if updates <= self.first else max(updates - self.freq, self.first)
        self.on_write_training_update(
            (samples - self.samples_since_last, samples),
            None if self.freq == 0 else (before, updates),
            (loss - self.loss_since_last, loss),
            (metric - self.metric_since_last, metric) if with_metric else None,
        )

    def _take_start(self) -> Averages:
        samples = self.samples_since_start
        averages = (average(self.loss_since_start, samples), average(self.metric_since_start, samples), samples)
        self._forget_start()
        return averages

    def _forget_start(self) -> None:
        self.loss_since_start = self.metric_since_start = 0.0
        self.samples_since_start = self.updates_since_start = 0

    def _forget_last(self) -> None:
        self.loss_since_last = self.metric_since_last = 0.0
        self.samples_since_last = 0

    def _deprecated_average(self, method: str, total: float, count: int) -> float:
        _warn_deprecated(method, "give a ProgressWriter of your own to the Trainer")
        return average(total, count)


def _warn_deprecated(method: str, instead: str) -> None:
    warn_user(f"ProgressPrinter.{method} is deprecated; {instead}", DeprecationWarning)
