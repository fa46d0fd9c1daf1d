"""Training on several workers: what stands between a trainer and its learners there."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from cntk.core.extension import plugins
from cntk.core.graph.variable import Parameter
from cntk.core.values.minibatch import Minibatch
from cntk.learners import Learner
from cntk.learners.checkpoint import require_counts
from cntk.learners.interface import LearnerInterface
from cntk.learners.loss_scale import LossScale
from cntk.plugins.distributed.base import Strategy
from cntk.train.communicator import Communicator, WorkerDescriptor, mpi_communicator


class DistributedLearner(LearnerInterface):
    """A learner that learns together with those of the other workers; made by :func:`data_parallel_distributed_learner` and the like.

    Attributes:
        announcements: none: as in CNTK 2.7 the learning rate of distributed learners is not reported to progress writers.

    Args:
        learner: the learner of this worker.
        strategy: how the workers learn together.
        distributed_after: number of samples that each worker learns from alone before that; all must have the same ones.

    Raises:
        TypeError: *learner* is none, or another distributed learner.

    >>> x, y = C.input_variable(1), C.input_variable(1)
    >>> z = x * C.parameter(1)
    >>> learner = C.data_parallel_distributed_learner(C.sgd(z.parameters, C.learning_parameter_schedule_per_sample(0.5)))
    >>> trainer = C.Trainer(z, C.squared_error(z, y), learner)
    >>> trainer.train_minibatch({x: [[1]], y: [[1]]})
    True
    >>> isinstance(learner, C.DistributedLearner), learner.total_number_of_samples_seen, learner.communicator().num_workers()
    (True, 1, 1)
    """

    def __init__(self, learner: Learner, strategy: Strategy, distributed_after: int = 0) -> None:
        self.learner, self.strategy = learner, strategy
        self.distributed_after = int(distributed_after)
        self._samples = learner.samples_seen
        self._has_begun = False
        self._is_metric_aggregator = False
        self.announcements: dict[str, float] = {}

    # ---- for users ----

    def communicator(self) -> Communicator:
        """What connects the workers."""
        return Communicator(self.strategy.transport)

    @property
    def total_number_of_samples_seen(self) -> int:
        """Number of samples that all workers together have learnt from."""
        return self._samples

    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that it updates."""
        return self.learner.updated_parameters

    def learning_rate(self) -> float:
        """The learning rate of the next update, as the schedule gives it."""
        return self.learner.learning_rate()

    def reset_learning_rate(self, learning_rate: Any) -> None:
        """Follow another schedule, from its start."""
        self.learner.reset_learning_rate(learning_rate)

    def reset_smoothed_gradients(self) -> None:
        """Forget all gradients seen."""
        self.learner.reset_smoothed_gradients()

    @property
    def minibatch_size(self) -> int:
        """Number of samples that hyper-parameters refer to where their schedules do not say."""
        return self.learner.minibatch_size

    def is_compatible_mode(self) -> bool:
        """Whether updates see the mean of a minibatch's gradients, and not their sum."""
        return self.learner.is_compatible_mode()

    def set_as_metric_aggregator(self) -> None:
        """Does nothing that is needed: the workers' metrics are always summed; programs for CNTK 2 with several learners call it."""
        self._is_metric_aggregator = True

    def is_metric_aggregator(self) -> bool:
        """Whether :meth:`set_as_metric_aggregator` was called."""
        return self._is_metric_aggregator

    def __repr__(self) -> str:
        return f"DistributedLearner({type(self.strategy).__name__} of {self.strategy.transport.size} workers, {self.learner!r})"

    # ---- for the trainer ----

    @property
    def updated_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that it updates."""
        return self.learner.updated_parameters

    @property
    def samples_seen(self) -> int:
        """Number of samples that all workers together have learnt from."""
        return self._samples

    @property
    def loss_scale(self) -> LossScale | None:
        """What the gradients of the minibatch at hand have been multiplied by."""
        return self.learner.loss_scale

    @loss_scale.setter
    def loss_scale(self, scale: LossScale | None) -> None:
        self.learner.loss_scale = scale

    def settings(self) -> dict[str, Any]:
        """In what the workers' learners must be alike, by name: rules and options, and how far they have come."""
        rules = {"learner": type(self.learner).__name__, **self.learner.settings()}
        strategy = {"strategy": type(self.strategy).__name__, **self.strategy.settings(), "distributed_after": self.distributed_after}
        return {**rules, **strategy, **self._standing()}

    def digest(self, start: int) -> int:
        """32 bits that stand for what of that may change while they learn, begun with those of what comes before."""
        numbers = self.learner.rule(), *self._standing().values()
        return zlib.crc32(struct.pack(f"{len(numbers)}d", *numbers), start)

    def _standing(self) -> dict[str, float]:
        """How far they have come together; with strategies that average models each worker's learner goes its own way."""
        own = {} if self.strategy.averages_models else self.learner.standing()
        return {"samples of all workers": self._samples, **own}

    @property
    def is_distributed(self) -> bool:
        """Whether the next minibatch is learnt from together with the other workers."""
        return self._samples >= self.distributed_after

    def update(self, gradients: Sequence[Any], minibatch: Minibatch) -> bool:
        """Learn from a minibatch, whose sums are those of all workers where :attr:`is_distributed`."""
        if self.is_distributed:
            self.begin()
            updated = self.strategy.update(gradients, minibatch)
        else:
            updated = self.learner.update_arrays(gradients, minibatch.own[0], minibatch.ends_sweep)
        self._samples += minibatch.samples
        return updated

    def begin(self) -> None:
        """Start from the main worker's parameters, once."""
        if not self._has_begun:
            self._has_begun = True
            self.strategy.begin()

    def synchronize(self) -> None:
        """Make the workers' models equal."""
        if self._has_begun:
            self.strategy.synchronize()

    def create_checkpoint(self) -> dict[str, Any]:
        """What is the same on every worker, as far as what follows depends on it: the state of the learner and of the strategy."""
        return {
            "type": type(self.strategy).__name__,
            "samples": self._samples,
            "learner": self.learner.create_checkpoint(),
            "strategy": self.strategy.create_checkpoint(),
        }

    def check_checkpoint(self, checkpoint: Any) -> None:
        """Refuse what :meth:`create_checkpoint` has not returned.

        Raises:
            RuntimeError: it is the state of something else.
        """
        name = type(self.strategy).__name__
        if checkpoint.get("type") != name:
            raise RuntimeError(f"checkpoint of a learner of type {checkpoint.get('type')!r} given to a distributed one with {name!r}")
        require_counts(checkpoint, ("samples",), name)
        self.learner.check_checkpoint(checkpoint["learner"])

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any], own: Sequence[Mapping[str, Any]] = ()) -> None:
        """Go on from what :meth:`create_checkpoint` returned.

        Args:
            checkpoint: the state.
            own: what the strategies of the workers kept beside, of whom there may have been more or fewer.

        Raises:
            RuntimeError: it is the state of something else.
        """
        self.check_checkpoint(checkpoint)
        self.learner.restore_from_checkpoint(checkpoint["learner"])
        self._samples = checkpoint["samples"]
        self.strategy.restore_from_checkpoint(checkpoint["strategy"], own)


def distributed_learner(strategy: Any, learner: Learner, distributed_after: int = 0, **options: Any) -> DistributedLearner:
    """Have the workers learn together in a way that a plugin has registered.

    Args:
        strategy: a registered name, such as ``'data_parallel'``, or a subclass of :class:`~cntk.plugins.distributed.base.Strategy`.
        learner: the learner that updates this worker's parameters.
        distributed_after: number of samples that each worker learns from alone before that; all must have the same ones.
        options: what the strategy takes beside.

    Returns:
        The learner, for a :class:`~cntk.train.trainer.Trainer`.

    Raises:
        KeyError: nothing is registered under this name.
        TypeError: *learner* is not a learner, or a distributed one.
        ValueError: *distributed_after* is negative, or an option is out of range.

    >>> w = C.parameter(2)
    >>> C.distributed.distributed_learner("block_momentum", C.sgd([w], 0.1), block_size=1000).total_number_of_samples_seen
    0
    """
    if not isinstance(learner, Learner):
        raise TypeError(f"distributed learners are made of learners such as cntk.sgd(...), got {type(learner).__name__} {learner!r:.80}")
    if distributed_after < 0:
        raise ValueError(f"distributed_after must be a number of samples, got {distributed_after}")
    kind = plugins.distributed_strategies.get(strategy) if isinstance(strategy, str) else strategy
    return DistributedLearner(learner, kind(learner, mpi_communicator().transport, **options), distributed_after)


def data_parallel_distributed_learner(
    learner: Learner, distributed_after: int = 0, num_quantization_bits: int = 32, use_async_buffered_parameter_update: bool = False
) -> DistributedLearner:
    """Learn from the samples of all workers at once: each update uses the sum of their gradients.

    Args:
        learner: the learner that updates this worker's parameters; it gets the number of samples of all workers.
        distributed_after: number of samples that each worker learns from alone before that; all must have the same ones.
        num_quantization_bits: bits of each number that is exchanged: 32 for gradients as they are, 1 to 31 for quantised ones, whose errors
            are made up for in the next minibatch.
        use_async_buffered_parameter_update: must be False: CNTK 2.7 has no asynchronous updates either.

    Returns:
        The learner, for a :class:`~cntk.train.trainer.Trainer`.

    Raises:
        RuntimeError: *use_async_buffered_parameter_update*.
        TypeError: *learner* is not a learner.
        ValueError: a number of bits or samples out of range.

    Source: for fewer bits F. Seide, H. Fu, J. Droppo, G. Li and D. Yu, "1-bit stochastic gradient descent and its application to
    data-parallel distributed training of speech DNNs", Interspeech 2014.

    >>> x, w = C.input_variable(1), C.parameter(1)
    >>> learner = C.data_parallel_distributed_learner(C.sgd([w], 0.5))
    >>> trainer = C.Trainer(None, C.reduce_sum(w * x), learner)
    >>> trainer.train_minibatch({x: np.ones((4, 1), np.float32)}), w.value
    (True, array([-0.5], dtype=float32))
    >>> C.Communicator.finalize()
    """
    if use_async_buffered_parameter_update:
        raise RuntimeError(
            "asynchronous parameter updates (use_async_buffered_parameter_update=True) are not supported; "
            "block_momentum_distributed_learner is the way to exchange less often"
        )
    if num_quantization_bits == 32:
        return distributed_learner("data_parallel", learner, distributed_after)
    return distributed_learner("quantized_data_parallel", learner, distributed_after, bits=num_quantization_bits)


def block_momentum_distributed_learner(
    learner: Learner,
    block_size: int,
    block_momentum_as_time_constant: float | None = None,
    use_nestrov_momentum: bool = True,
    reset_sgd_momentum_after_aggregation: bool = True,
    block_learning_rate: float = 1.0,
    distributed_after: int = 0,
) -> DistributedLearner:
    """Learn alone from a block of samples; then the change that it made, averaged over the workers, is filtered with a momentum.

    Args:
        learner: the learner of this worker, which sees this worker's samples only.
        block_size: number of samples of all workers between two synchronisations.
        block_momentum_as_time_constant: after how many samples the weight of a block's change falls to 1/e; by default a block's momentum
            is 1 - 1/(number of workers).
        use_nestrov_momentum: whether to use Nesterov's momentum between blocks (the name is spelt as in CNTK).
        reset_sgd_momentum_after_aggregation: whether the learner forgets its smoothed gradients at the end of each block.
        block_learning_rate: factor of a block's change.
        distributed_after: number of samples that each worker learns from alone before that; all must have the same ones.

    Returns:
        The learner, for a :class:`~cntk.train.trainer.Trainer`.

    Raises:
        TypeError: *learner* is not a learner.
        ValueError: a block has less than a sample for each worker, or a number is negative.

    Source: K. Chen and Q. Huo, "Scalable training of deep learning machines by incremental block training with intra-block parallel
    optimization and blockwise model-update filtering", ICASSP 2016.

    >>> w = C.parameter(1)
    >>> learner = C.block_momentum_distributed_learner(C.sgd([w], 0.5), block_size=1000)
    >>> learner.communicator().is_main()
    True
    """
    return distributed_learner(
        "block_momentum",
        learner,
        distributed_after,
        block_size=block_size,
        block_momentum_as_time_constant=block_momentum_as_time_constant,
        use_nesterov_momentum=use_nestrov_momentum,
        reset_sgd_momentum_after_aggregation=reset_sgd_momentum_after_aggregation,
        block_learning_rate=block_learning_rate,
    )


__all__ = [
    "Communicator",
    "DistributedLearner",
    "WorkerDescriptor",
    "block_momentum_distributed_learner",
    "data_parallel_distributed_learner",
    "distributed_learner",
    "mpi_communicator",
]
