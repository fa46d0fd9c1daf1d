"""Progress of training and tests, and its reports to progress writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cntk.core.values.minibatch import Minibatch
from cntk.plugins.progress.base import ProgressWriter
from cntk.train.lists import as_list
from cntk.train.update_strategy import UpdateStrategy

Writers = ProgressWriter | Sequence[ProgressWriter] | None
"""What may be given as progress writers."""


class Progress:
    """Counts of a trainer, and the progress writers of a trainer or an evaluator.

    Args:
        writers: a progress writer, several, or None.

    Attributes:
        writers: the progress writers.
        seen: samples trained on so far.
        ended_sweep: whether a pass over the data ended in the last minibatch, on any worker.
        last: samples, loss and metric of the last minibatch; None before the first.

    Raises:
        TypeError: something is not a progress writer.
    """

    def __init__(self, writers: Writers) -> None:
        self.writers = writers_of(writers)
        self.seen, self.ended_sweep = 0, False
        self.last: tuple[int, float, float] | None = None

    # ---- training ----

    def count(self, minibatch: Minibatch, updates: UpdateStrategy) -> None:
        """Count a minibatch that has been trained on, and report it with changed hyper-parameters."""
        self.seen += minibatch.samples
        self.ended_sweep = minibatch.ends_sweep
        sums = minibatch.sums
        self.last = minibatch.own if updates.averages_models else sums
        for learner in updates.learners:
            if learner.announcements:
                for name, value in learner.announcements.items():
                    for writer in self.writers:
                        writer.write(name, value)
                learner.announcements.clear()
        for writer in self.writers:
            writer.update_training(*sums)
        if updates.averages_models and (synchronized := updates.take_synchronization(minibatch))[0]:
            for writer in self.writers:
                writer.update_distributed(*synchronized)

    def previous(self) -> tuple[int, float, float]:
        """Samples, loss and metric of the last minibatch.

        Raises:
            RuntimeError: there was none.
        """
        if self.last is None or not self.last[0]:
            raise RuntimeError("Trainer: no minibatch has been trained yet, or this worker had no samples in the last one")
        return self.last

    def take_training_summary(self) -> Callable[[], None]:
        """Reset the writers, and return a function that writes their summary of training until now."""
        summaries = [writer.take_training_summary() for writer in self.writers]

        def write() -> None:
            for summary in summaries:
                summary()

        return write

    # ---- tests ----

    def count_test(self, average: float, samples: int) -> None:
        """Tell of a minibatch that has been tested on."""
        for writer in self.writers:
            writer.update_test(samples, average * samples)

    def summarize_test(self) -> None:
        """Have the writers sum up tests since the last summary."""
        for writer in self.writers:
            writer.summarize_test()

    # ---- progress writers ----

    def add(self, writers: Writers) -> None:
        """Add progress writers."""
        self.writers.extend(writers_of(writers))

    def remove(self, writers: Writers) -> None:
        """Remove progress writers.

        Raises:
            ValueError: one is not among them.
        """
        for writer in writers_of(writers):
            if writer not in self.writers:
                raise ValueError(f"remove_progress_writers: {writer!r:.80} is none of this trainer's progress writers")
            self.writers.remove(writer)


def writers_of(given: Any) -> list[ProgressWriter]:
    """Progress writers as a list, of one, several or None.

    Raises:
        TypeError: one is something else.
    """
    writers = as_list(given)
    for writer in writers:
        if not isinstance(writer, ProgressWriter):
            raise TypeError(f"progress_writers: expected progress writers, got {type(writer).__name__} {writer!r:.80}")
        if not hasattr(writer, "_training"):
            raise TypeError(f"progress_writers: {type(writer).__name__}.__init__ must call super().__init__(freq, ...)")
    return writers
