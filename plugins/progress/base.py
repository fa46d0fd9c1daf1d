"""Progress writers: what a training or evaluation loop tells about itself, and when."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from .not_finite import warn_unless_finite

Span = tuple[int, int]
Sums = tuple[float, float]

NEVER = sys.maxsize
"""Frequency that means: summaries only."""


_COUNTS = ("samples", "updates", "loss", "metric", "summaries", "total_updates")


class _Accumulator:
    """Sums of one kind of update since the last summary, and at the last time it was written."""

    __slots__ = (
        "first", "frequency", "loss", "metric", "samples", "start",
        "summaries", "total_updates", "updates", "written",
    )  # fmt: skip

    def __init__(self, frequency: int | None, first: int) -> None:
        self.frequency = NEVER if frequency is None else frequency
        self.first = first
        self.total_updates = self.summaries = 0
        self.reset()

    def reset(self) -> None:
        self.samples = self.updates = 0
        self.loss = self.metric = 0.0
        self.written: tuple[int, int, float, float] = (0, 0, 0.0, 0.0)
        self.start = perf_counter()

    def add(self, samples: int, loss: float, metric: float) -> bool:
        """Add one update; return whether it is time to write."""
        self.samples += samples
        self.loss += loss
        self.metric += metric
        self.total_updates += 1
        self.updates = updates = self.updates + 1
        frequency = self.frequency
        if frequency == 0:
            return updates & (updates + 1) == 0
        return updates % frequency == 0 or updates <= self.first

    def take_spans(self) -> tuple[Span, Span, Sums, Sums]:
        """Samples, updates, loss and metric, each as it was when written last and as it is now."""
        samples, updates, loss, metric = self.written
        self.written = (self.samples, self.updates, self.loss, self.metric)
        return (samples, self.samples), (updates, self.updates), (loss, self.loss), (metric, self.metric)

    def milliseconds(self) -> float:
        return (perf_counter() - self.start) * 1000

    def create_checkpoint(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {**counts, "written": list(self.written), "milliseconds": self.milliseconds()}

    def check_checkpoint(self, checkpoint: Any) -> None:
        numbers = [*(checkpoint[name] for name in _COUNTS), *checkpoint["written"], checkpoint["milliseconds"]]
        if len(checkpoint["written"]) != 4 or any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in numbers):
            raise ValueError(f"expected numbers, four of them as 'written', got {checkpoint!r:.200}")

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        for name in _COUNTS:
            setattr(self, name, checkpoint[name])
        samples, updates, loss, metric = checkpoint["written"]
        self.written = samples, updates, loss, metric
        self.start = perf_counter() - checkpoint["milliseconds"] / 1000


class ProgressWriter:
    """Base class of progress writers: gets every minibatch, and calls the ``on_write_...`` methods when they are due.

    A writer is given to a trainer or an evaluator.  A subclass overrides those of the ``on_write_...`` methods and
    :meth:`write` that it is interested in; the others do nothing.

    Args:
        freq: how often training updates are written: every *freq* minibatches; 0 for minibatches 1, 3, 7, 15, …; None for never.
        first: number of minibatches at the start, and after each summary, that are written one by one.
        test_freq, test_first: the same for test minibatches.
        distributed_freq, distributed_first: the same for synchronisations of distributed training.

    Raises:
        TypeError: a frequency or number is not a whole number.
        ValueError: it is negative.

    Example:
        >>> class Losses(C.cntk_py.ProgressWriter):
        ...     def on_write_training_update(self, samples, updates, aggregate_loss, aggregate_metric):
        ...         print(samples, updates, aggregate_loss)
        >>> writer = Losses(2)
        >>> for loss in (8.0, 4.0, 2.0, 1.0):
        ...     writer.update_training(10, loss, 0.0)
        (0, 20) (0, 2) (0.0, 12.0)
        (20, 40) (2, 4) (12.0, 15.0)
    """

    def __init__(
        self,
        freq: int | None = None,
        first: int = 0,
        test_freq: int | None = None,
        test_first: int = 0,
        distributed_freq: int | None = None,
        distributed_first: int = 0,
    ) -> None:
        for value in (freq, first, test_freq, test_first, distributed_freq, distributed_first):
            if value is not None and operator.index(value) < 0:
                raise ValueError(f"{type(self).__name__}: frequencies and first counts are 0 or more, or None; got {value}")
        self._training = _Accumulator(freq, first)
        self._test = _Accumulator(test_freq, test_first)
        self._distributed = _Accumulator(distributed_freq, distributed_first)

    def __disown__(self) -> None:
        """Does nothing; programs for CNTK 2 call it."""

    # For the loop that trains or evaluates -------------------------------------------------------------------------------------

    def update_training(self, samples: int, loss: float, metric: float) -> None:
        """Report a training minibatch: number of samples, sum of the losses and of the metrics."""
        if samples:
            training = self._training
            if training.add(samples, loss, metric):
                warn_unless_finite(training.loss)
                self.on_write_training_update(*training.take_spans())
            self.on_training_update_end()

    def update_test(self, samples: int, metric: float) -> None:
        """Report a test minibatch: number of samples and sum of the metrics."""
        if samples and self._test.add(samples, 0.0, metric):
            spans = self._test.take_spans()
            self.on_write_test_update(spans[0], spans[1], spans[3])

    def update_distributed(self, samples: int, metric: float) -> None:
        """Tell of a synchronisation of workers: number of samples since the one before, and sum of the metrics."""
        if samples and self._distributed.add(samples, 0.0, metric):
            spans = self._distributed.take_spans()
            self.on_write_distributed_sync_update(spans[0], spans[1], spans[3])

    def summarize_training(self) -> None:
        """Write everything since the last summary of training, and start over."""
        self.take_training_summary()()

    def take_training_summary(self) -> Callable[[], None]:
        """Start over, and return a function that writes everything since the last summary of training."""
        return self._take(self._training, self.on_write_training_summary, with_loss=True)

    def summarize_test(self) -> None:
        """Write everything since the last summary of testing, and start over."""
        self._take(self._test, self.on_write_test_summary, with_loss=False)()

    def create_checkpoint(self) -> dict[str, Any]:
        """Counts and sums, for a run that goes on later; a writer with counts of its own adds them."""
        return {name: accumulator.create_checkpoint() for name, accumulator in self._accumulators().items()}

    def check_checkpoint(self, checkpoint: Any) -> None:
        """Refuse what :meth:`create_checkpoint` has not returned; a writer with counts of its own checks those too.

        Raises:
            Exception: it is something else.
        """
        for name, accumulator in self._accumulators().items():
            accumulator.check_checkpoint(checkpoint[name])

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on from what :meth:`create_checkpoint` returned."""
        for name, accumulator in self._accumulators().items():
            accumulator.restore_from_checkpoint(checkpoint[name])

    def total_training_updates(self) -> int:
        """Number of training minibatches so far."""
        return self._training.total_updates

    def total_test_updates(self) -> int:
        """Number of test minibatches so far."""
        return self._test.total_updates

    # For subclasses to override ------------------------------------------------------------------------------------------------

    def on_write_training_update(self, samples: Span, updates: Span, aggregate_loss: Sums, aggregate_metric: Sums) -> None:
        """Write the progress of training since it was last written.

        Args:
            samples: number of samples since the last summary: when this was last called, and now.
            updates: the same for the number of minibatches.
            aggregate_loss: the same for the sum of the losses.
            aggregate_metric: the same for the sum of the metrics.
        """

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float,
        elapsed_milliseconds: int,
    ) -> None:
        """Write a summary of training.

        Args:
            samples, updates: number of samples and of minibatches since the last summary.
            summaries: number of summaries, this one included.
            aggregate_loss, aggregate_metric: sums since the last summary.
            elapsed_milliseconds: time since the last summary, or since the writer was made.
        """

    def on_write_test_update(self, samples: Span, updates: Span, aggregate_metric: Sums) -> None:
        """Write the progress of a test; arguments as in :meth:`on_write_training_update`."""

    def on_write_test_summary(self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: int) -> None:
        """Write the result of a test; arguments as in :meth:`on_write_training_summary`."""

    def on_write_distributed_sync_update(self, samples: Span, updates: Span, aggregate_metric: Sums) -> None:
        """Write the progress of synchronisation; arguments as in :meth:`on_write_training_update`."""

    def on_training_update_end(self) -> None:
        """Called after every training minibatch."""

    def write(self, key: str, value: Any) -> None:
        """Write anything else worth knowing, such as a learning rate that has changed."""

    def _accumulators(self) -> dict[str, _Accumulator]:
        return {"training": self._training, "test": self._test, "distributed": self._distributed}

    def _take(self, accumulator: _Accumulator, on_write: Callable[..., None], with_loss: bool) -> Callable[[], None]:
        accumulator.summaries += 1
        sums = (accumulator.loss, accumulator.metric) if with_loss else (accumulator.metric,)
        warn_unless_finite(accumulator.loss)
        totals = (accumulator.samples, accumulator.updates, accumulator.summaries, *sums, int(accumulator.milliseconds()))
        accumulator.reset()
        return partial(on_write, *totals)
