"""Sums over a minibatch, which a training step reports."""

from __future__ import annotations

import math
from collections.abc import Callable

Sum = float | Callable[[], float]
"""A sum, or what waits for one that a device is still at work on."""


class Minibatch:
    """Sums over a minibatch: of this worker, and, once the workers have told one another, of all.

    Args:
        samples: number of samples.
        loss, metric: sums of losses and of metrics; where a device is at work on one, it is NaN until :meth:`settle` is called.
        ends_sweep: whether a pass over the data ends in it; of several workers, which may end one at different times, the main one says so.

    Attributes:
        samples, loss, metric, ends_sweep: as above.
        own: samples, loss and metric of this worker alone.
    """

    __slots__ = ("_pending", "ends_sweep", "loss", "metric", "own", "samples")

    def __init__(self, samples: int, loss: Sum, metric: Sum, ends_sweep: bool = False) -> None:
        self.samples, self.ends_sweep = samples, ends_sweep
        self._pending: tuple[Sum, Sum] | None = None
        if callable(loss) or callable(metric):
            self._pending, loss, metric = (loss, metric), math.nan, math.nan
        self.loss: float = loss
        self.metric: float = metric
        self.own = samples, self.loss, self.metric

    def settle(self) -> None:
        """Wait for the sums, where a device is at work on them."""
        if self._pending is not None:
            self.loss, self.metric = (value() if callable(value) else value for value in self._pending)
            self.own, self._pending = (self.samples, self.loss, self.metric), None

    @property
    def sums(self) -> tuple[int, float, float]:
        """Samples, loss and metric."""
        return self.samples, self.loss, self.metric
