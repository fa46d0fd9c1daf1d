"""Sums over a minibatch, which a training step reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


class Minibatch:
    """Sums over a minibatch: of this worker, and, once the workers have told one another, of all.

    Args:
        samples: number of samples.
        loss, metric: sums of losses and of metrics.
        ends_sweep: whether a pass over the data ends in it; of several workers, which may end one at different times, the main one says so.

    Attributes:
        samples, loss, metric, ends_sweep: as above.
        own: samples, loss and metric of this worker alone.
        pending: waits for the loss, and the metric where there is one, that a device is still at work on; None if they are there.
    """

    __slots__ = ("ends_sweep", "loss", "metric", "own", "pending", "samples")

    def __init__(self, samples: int, loss: float, metric: float, ends_sweep: bool = False) -> None:
        self.samples, self.loss, self.metric, self.ends_sweep = samples, loss, metric, ends_sweep
        self.own = samples, loss, metric
        self.pending: Callable[[], Sequence[float]] | None = None

    @classmethod
    def begun(cls, samples: int, pending: Callable[[], Sequence[float]], ends_sweep: bool) -> Minibatch:
        """A minibatch whose sums a device is at work on; they are NaN until :meth:`settle` is called."""
        made = cls(samples, math.nan, math.nan, ends_sweep)
        made.pending = pending
        return made

    def settle(self) -> None:
        """Wait for the sums, if a device is at work on them."""
        if self.pending is not None:
            self.loss, self.metric = (*self.pending(), 0.0)[:2]
            self.own, self.pending = (self.samples, self.loss, self.metric), None

    @property
    def sums(self) -> tuple[int, float, float]:
        """Samples, loss and metric."""
        return self.samples, self.loss, self.metric
