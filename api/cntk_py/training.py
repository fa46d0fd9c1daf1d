"""Trainers, sessions and distributed learners as the engine makes them, with their arguments in its order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cntk.core.graph.function import Function
from cntk.debugging.profiler import set_node_timing
from cntk.eval import Evaluator
from cntk.learners import Learner
from cntk.plugins.progress.tensorboard import TensorBoardProgressWriter
from cntk.train import (
    Communicator,
    DistributedLearner,
    Trainer,
    TrainingSession,
    block_momentum_distributed_learner,
    data_parallel_distributed_learner,
)
from cntk.train.data_unit import DataUnit


def create_trainer(model: Any, loss: Any, *args: Any) -> Trainer:
    """``create_trainer(model, loss, metric, learners, progress writers)``; the metric and the writers may be left out."""
    has_metric = bool(args) and not isinstance(args[0], (list, tuple, Learner, DistributedLearner))
    metric = args[0] if has_metric else None
    return Trainer(model, (loss, metric), *args[int(has_metric) :])


trainer_impl = create_trainer


def create_evaluator(evaluation_function: Any, progress_writers: Any = None) -> Evaluator:
    """See :class:`cntk.eval.Evaluator`."""
    return Evaluator(evaluation_function, progress_writers)


def create_training_session(
    trainer: Trainer,
    training_source: Any,
    minibatch_size: Any,
    inputs_to_streams: Mapping[Any, Any],
    max_samples: int | None = None,
    progress_frequency: int | None = None,
    progress_unit: int = DataUnit.sample,
    checkpoint_config: Any = None,
    cross_validation_config: Any = None,
    test_config: Any = None,
) -> TrainingSession:
    """See :func:`cntk.training_session`."""
    frequency = None if progress_frequency is None else (progress_frequency, DataUnit(progress_unit))
    return TrainingSession(
        trainer,
        training_source,
        minibatch_size,
        inputs_to_streams,
        max_samples,
        frequency,
        checkpoint_config,
        cross_validation_config,
        test_config,
    )


def TensorBoardFileWriter(log_dir: str, model: Function | None = None) -> TensorBoardProgressWriter:
    """A writer of files for TensorBoard, with ``write_value``, ``write_image``, ``flush`` and ``close``."""
    return TensorBoardProgressWriter(None, log_dir, model=model)


def enable_node_timing() -> None:
    """See :func:`cntk.debugging.set_node_timing`."""
    set_node_timing(True)


def disable_node_timeing() -> None:
    """See :func:`cntk.debugging.set_node_timing`."""
    set_node_timing(False)


def momentum_from_time_constant(time_constant: float) -> float:
    """The momentum for each sample of a time constant in samples.

    >>> round(C.cntk_py.momentum_from_time_constant(1000), 6)
    0.999
    """
    return math.exp(-1 / time_constant)


# ---- several workers ----


class QuantizedDistributedCommunicator(Communicator):
    """The connection between workers that exchange numbers of few bits.

    Attributes:
        bits: number of bits.
    """

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits


def mpicommunicator(packing_threshold: int = 0, use_float16: bool = False) -> Communicator:
    """The connection between the workers; the engine's ways of packing gradients are not needed here."""
    return Communicator()


def quantized_mpicommunicator(zero_threshold_for_one_bit: bool, use_quantization_for_self_stripe: bool, bits: int) -> Any:
    """The connection between workers that exchange numbers of *bits* bits."""
    return QuantizedDistributedCommunicator(bits)


def number_of_workers() -> int:
    """Number of workers."""
    return Communicator.num_workers()


def worker_global_rank() -> int:
    """Number of this worker."""
    return Communicator.rank()


def create_data_parallel_distributed_learner(
    communicator: Communicator, learner: Learner, distributed_after: int = 0, use_async_buffered_parameter_update: bool = False
) -> DistributedLearner:
    """See :func:`cntk.train.distributed.data_parallel_distributed_learner`."""
    return data_parallel_distributed_learner(
        learner, distributed_after, use_async_buffered_parameter_update=use_async_buffered_parameter_update
    )


def create_quantized_data_parallel_distributed_learner(
    communicator: QuantizedDistributedCommunicator,
    learner: Learner,
    distributed_after: int = 0,
    use_async_buffered_parameter_update: bool = False,
) -> DistributedLearner:
    """See :func:`cntk.train.distributed.data_parallel_distributed_learner`."""
    return data_parallel_distributed_learner(learner, distributed_after, communicator.bits, use_async_buffered_parameter_update)


def create_block_momentum_distributed_learner(
    communicator: Communicator, learner: Learner, distributed_after: int, block_size: int, *args: Any
) -> DistributedLearner:
    """``(communicator, learner, distributed after, block size, time constant, Nesterov, reset, learning rate)``.

    The time constant may be left out.  See :func:`cntk.train.distributed.block_momentum_distributed_learner`.
    """
    rest: Sequence[Any] = args if args and not isinstance(args[0], bool) else (None, *args)
    names = ("block_momentum_as_time_constant", "use_nestrov_momentum", "reset_sgd_momentum_after_aggregation", "block_learning_rate")
    options = dict(zip(names, rest, strict=False))
    return block_momentum_distributed_learner(learner, block_size, distributed_after=distributed_after, **options)
