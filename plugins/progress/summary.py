"""A progress writer that hands each summary of training to a function."""

from __future__ import annotations

from collections.abc import Callable

from .base import NEVER, ProgressWriter


class TrainingSummaryProgressCallback(ProgressWriter):
    """Calls a function at the end of each epoch of training.

    Args:
        epoch_size: accepted for compatibility; when an epoch ends is up to the training loop.
        callback: called as ``callback(epoch, loss, metric, samples)`` with the epoch's number from 0, the sums of the losses and
            of the metrics over its samples, and their number.

    Example:
        >>> writer = C.logging.TrainingSummaryProgressCallback(100, lambda epoch, loss, metric, samples: print(epoch, loss / samples))
        >>> writer.update_training(10, 25.0, 1.0)
        >>> writer.summarize_training()
        0 2.5
    """

    def __init__(self, epoch_size: int, callback: Callable[[int, float, float, int], object]) -> None:
        super().__init__(NEVER, 0, epoch_size)
        self._callback = callback

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float,
        elapsed_milliseconds: int,
    ) -> None:
        self._callback(summaries - 1, aggregate_loss, aggregate_metric, samples)
