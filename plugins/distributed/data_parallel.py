"""Data-parallel training: every update uses the sum of all workers' gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.types.sparse import RowSparse
from ...core.values.minibatch import Minibatch
from .base import Strategy, Transport
from .buckets import Bucket, divide
from .rows import sum_rows


class DataParallel(Strategy):
    """Sums gradients over the workers, which learn the same as one process with all samples.

    Dense gradients travel in buckets, in the order in which the first worker's backward pass has finished them; a bucket is sent as soon as
    its gradients are complete.  Row-sparse ones follow, without the rows that no worker has.
    """

    wants_gradients_early = True

    def __init__(self, learner: Any, transport: Transport) -> None:
        super().__init__(learner, transport)
        self._parameters = list(learner.updated_parameters)
        self._seen_order: list[int] = []
        self._buckets: list[Bucket] | None = None
        self._bucket_of: dict[int, Bucket] = {}
        self._next = 0
        self._early: dict[int, Any] = {}

    def gradient_is_final(self, index: int, gradient: Any) -> None:
        if self._buckets is None:
            self._seen_order.append(index)
        elif index in self._bucket_of:
            self._early[index] = gradient
            self._bucket_of[index].missing.discard(index)
            self._send(self._early)

    def update(self, gradients: Sequence[Any], minibatch: Minibatch) -> bool:
        if self.transport.size > 1:
            self._sum(gradients)
        updated: bool = self.learner.update_arrays(gradients, minibatch.samples, minibatch.ends_sweep)
        return updated

    def _sum(self, gradients: Sequence[Any]) -> None:
        if self._buckets is None:
            self._buckets = self._agree_on_buckets(gradients)
            self._bucket_of = {index: bucket for bucket in self._buckets for index in bucket.indices}
        by_index = dict(enumerate(gradients))
        for bucket in self._buckets:
            bucket.missing.clear()
        self._send(by_index)
        sparse = [index for index, gradient in by_index.items() if isinstance(gradient, RowSparse)]
        sum_rows(self.transport, [by_index[index] for index in sparse], [self._parameters[index].backend for index in sparse])
        for bucket in self._buckets:
            bucket.finish([by_index[index] for index in bucket.indices])
        self._next = 0
        self._early.clear()

    def _send(self, gradients: dict[int, Any]) -> None:
        """Send the buckets that are complete, one after another: every worker sends them in the same order."""
        assert self._buckets is not None
        while self._next < len(self._buckets) and not self._buckets[self._next].missing:
            bucket = self._buckets[self._next]
            bucket.start(self.transport, [gradients[index] for index in bucket.indices])
            self._next += 1

    def _agree_on_buckets(self, gradients: Sequence[Any]) -> list[Bucket]:
        """The buckets in the first worker's order; another worker's may differ where it had no samples."""
        dense = [index for index, gradient in enumerate(gradients) if not isinstance(gradient, RowSparse)]
        found = dict.fromkeys(index for index in self._seen_order if index in dense)
        order = np.array([*found, *(index for index in reversed(dense) if index not in found)], np.int64)
        self.transport.broadcast(order, name=f"order of the dense gradients {dense}")
        are_together = len({id(self._parameters[index].backend) for index in dense}) == 1
        on_device = self.transport.sums_on_device([gradients[index] for index in dense] if are_together else [])
        return divide(self._parameters, order.tolist(), on_device=on_device)
