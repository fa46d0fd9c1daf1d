"""Sums over a minibatch, which a training step reports."""

from __future__ import annotations


class Minibatch:
    """Sums over a minibatch: of this worker, and, once the workers have told one another, of all.

    Attributes:
        samples, loss, metric: number of samples, sum of losses and of metrics.
        ends_sweep: whether a pass over the data ends in it; of several workers, which may end one at different times, the main one says so.
        own: samples, loss and metric of this worker alone.
    """

    __slots__ = ("ends_sweep", "loss", "metric", "own", "samples")

    def __init__(self, samples: int, loss: float, metric: float, ends_sweep: bool = False) -> None:
        self.samples, self.loss, self.metric, self.ends_sweep = samples, loss, metric, ends_sweep
        self.own = samples, loss, metric

    @property
    def sums(self) -> tuple[int, float, float]:
        """Samples, loss and metric."""
        return self.samples, self.loss, self.metric
