"""Block momentum: workers train independently for a block of samples, then the mean of their models is filtered with a momentum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.values.minibatch import Minibatch
from .base import Strategy, Transport
from .states import require_arrays


class BlockMomentum(Strategy):
    """Blockwise model-update filtering.

    With w the model that a block began with, wᵢ that of worker i at its end, and μ the block momentum:

        s ← μ s + (1 - μ) η Σᵢ (w - wᵢ)
        w ← w - s, and with Nesterov's momentum w - s - μ s.

    μ = exp(-n / τ) after n samples of all workers, which is 1 - 1/p for a whole block and p workers where no time constant τ is given.

    Args:
        learner: each worker's own learner, which sees the worker's own samples.
        transport: carries data between the workers.
        block_size: samples of all workers between two synchronisations.
        block_momentum_as_time_constant: τ, in samples; 0 for no momentum, None for the default.
        use_nesterov_momentum: whether the next block begins where the momentum leads.
        reset_sgd_momentum_after_aggregation: whether the learner forgets its smoothed gradients with each block.
        block_learning_rate: η.

    Raises:
        ValueError: a block has less than one sample a worker, or a number is negative.

    Source: K. Chen and Q. Huo, "Scalable training of deep learning machines by incremental block training with intra-block parallel
    optimization and blockwise model-update filtering", ICASSP 2016.
    """

    averages_models = True
    is_lossless = False

    def __init__(
        self,
        learner: Any,
        transport: Transport,
        block_size: int,
        block_momentum_as_time_constant: float | None = None,
        use_nesterov_momentum: bool = True,
        reset_sgd_momentum_after_aggregation: bool = True,
        block_learning_rate: float = 1.0,
    ) -> None:
        super().__init__(learner, transport)
        if block_size < transport.size:
            raise ValueError(f"block momentum: the block size must be at least one sample for each of {transport.size}, got {block_size}")
        if block_learning_rate < 0 or (block_momentum_as_time_constant or 0) < 0:
            raise ValueError(
                "block momentum: the time constant and the learning rate must not be negative, "
                f"got {block_momentum_as_time_constant} and {block_learning_rate}"
            )
        self._block_size = int(block_size)
        if block_momentum_as_time_constant is None:
            default = 1 - 1 / transport.size
            block_momentum_as_time_constant = -block_size / math.log(default) if default else 0.0
        self.time_constant = float(block_momentum_as_time_constant)
        self._nesterov, self._resets = bool(use_nesterov_momentum), bool(reset_sgd_momentum_after_aggregation)
        self._rate = float(block_learning_rate)
        self._samples = self._synchronized = 0
        self._before: list[Any] = []
        self._velocity: list[Any] = []

    def begin(self) -> None:
        super().begin()
        if not self._before:
            self._before = self.learner.values()
            self._velocity = [np.zeros_like(before) for before in self._before]

    def settings(self) -> dict[str, Any]:
        return {
            "block_size": self._block_size,
            "block_momentum_as_time_constant": self.time_constant,
            "use_nesterov_momentum": self._nesterov,
            "reset_sgd_momentum_after_aggregation": self._resets,
            "block_learning_rate": self._rate,
        }

    def update(self, gradients: Sequence[Any], minibatch: Minibatch) -> bool:
        own = minibatch.own[0]
        if own:
            self.learner.update_arrays(gradients, own, minibatch.ends_sweep)
        self._samples += minibatch.samples
        if self._samples >= self._block_size:
            self.synchronize()
        return True

    def synchronize(self) -> None:
        if not self._samples:
            return
        momentum = math.exp(-self._samples / self.time_constant) if self.time_constant else 0.0
        for model, before, velocity in zip(self.learner.values(), self._before, self._velocity, strict=True):
            step = before - model
            self.transport.sum(step, "sum of what a block has changed")
            velocity *= momentum
            velocity += (1 - momentum) * self._rate * step
            before -= velocity
            if self._nesterov:
                before -= momentum * velocity
        self.learner.take_values(self._before)
        if self._resets:
            self.learner.reset_smoothed_gradients()
        self._synchronized, self._samples = self._samples, 0

    def take_synchronized(self) -> int:
        samples, self._synchronized = self._synchronized, 0
        return samples

    def create_checkpoint(self) -> dict[str, Any]:
        return {"velocity": [velocity.copy() for velocity in self._velocity]}

    def create_own_checkpoint(self) -> dict[str, Any]:
        return {} if self._resets else {"learner": self.learner.create_checkpoint()}

    def check_checkpoint(self, common: Any, own: Sequence[Any]) -> None:
        velocity = common["velocity"]
        if velocity != []:
            require_arrays("block momentum: velocity", velocity, [tuple(parameter.shape) for parameter in self.learner.updated_parameters])
        for state in own:
            if "learner" in state:
                self.learner.check_checkpoint(state["learner"])

    def restore_from_checkpoint(self, common: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> None:
        self._samples = 0
        self._velocity = [np.array(velocity) for velocity in common["velocity"]]
        self._before = self.learner.values() if self._velocity else []
        if self.transport.rank < len(own) and "learner" in own[self.transport.rank]:
            self.learner.restore_from_checkpoint(own[self.transport.rank]["learner"])
