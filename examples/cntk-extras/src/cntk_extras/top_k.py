"""Top-k sparsification: a way of training on several workers of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cntk.core.types.sparse import RowSparse
from cntk.core.values.minibatch import Minibatch
from cntk.extend import Strategy, Transport


class TopK(Strategy):
    """Exchanges the largest numbers of each gradient only; the others wait until they have grown.

    Args:
        learner: the learner of this worker.
        transport: what connects the workers.
        share: part of the numbers that is sent, such as 0.01.
    """

    is_lossless = False

    def __init__(self, learner: Any, transport: Transport, share: float = 0.01) -> None:
        super().__init__(learner, transport)
        if not 0 < share <= 1:
            raise ValueError(f"top_k: the share of numbers to send must lie above 0 and up to 1, got {share}")
        self.share = share
        self._waiting = [np.zeros(p.shape, p.dtype) for p in learner.updated_parameters]

    def settings(self) -> dict[str, Any]:
        return {"share": self.share}

    def update(self, gradients: Sequence[Any], minibatch: Minibatch) -> bool:
        sums = [self._sum(*pair) for pair in zip(self.learner.updated_parameters, self._waiting, gradients, strict=True)]
        return bool(self.learner.update_arrays(sums, minibatch.samples, minibatch.ends_sweep))

    def create_own_checkpoint(self) -> dict[str, Any]:
        return {"waiting": [array.copy() for array in self._waiting]}

    def restore_from_checkpoint(self, common: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> None:
        """Every worker goes on with what waited there; with other numbers of workers each gets an equal share of all."""
        size, rank = self.transport.size, self.transport.rank
        for index, waiting in enumerate(self._waiting):
            held = [np.asarray(state["waiting"][index]).reshape(waiting.shape) for state in own]
            waiting[...] = held[rank] if len(held) == size else sum(held) / size

    def _sum(self, parameter: Any, waiting: Any, gradient: Any) -> Any:
        dense = gradient.to_dense(parameter.backend.xp) if isinstance(gradient, RowSparse) else gradient
        waiting += parameter.backend.to_numpy(dense)
        flat = waiting.reshape(-1)
        count = max(int(self.share * flat.size), 1)
        places = np.argpartition(np.abs(flat), flat.size - count)[flat.size - count :]
        total = np.zeros_like(flat)
        everyones = zip(self.transport.gather(places.astype(np.int64)), self.transport.gather(flat[places]), strict=True)
        for theirs, values in everyones:
            total[theirs] += values
        flat[places] = 0
        return parameter.backend.asarray(total.reshape(waiting.shape), parameter.dtype)
