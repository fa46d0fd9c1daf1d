"""Members of trainers, learners and communicators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cntk.compatibility.members.engine import only_in_the_engine
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Variable
from cntk.core.values.value import NDArrayView
from cntk.eval import Evaluator
from cntk.learners import Learner
from cntk.train import Communicator, DistributedLearner, Trainer


def progress_writers(self: Any) -> list[Any]:
    """The progress writers."""
    return list(self._progress.writers)


class _EvaluatorMembers:
    progress_writers = progress_writers
    test_minibatch_overload_for_minibatchdata = Evaluator.test_minibatch


class _TrainerMembers:
    progress_writers = progress_writers
    test_minibatch_overload_for_minibatchdata = Trainer.test_minibatch
    train_minibatch_overload_for_minibatchdata = Trainer.train_minibatch

    @staticmethod
    def _get_loss_metric(criterion: Any) -> tuple[Function, Function | None]:
        """Loss and metric of a criterion, a function of one or two outputs or a tuple, as functions; None where there is no metric.

        Raises:
            ValueError: it has more than two parts.
        """
        from cntk.ops import combine

        parts = criterion.outputs if isinstance(criterion, Function) else criterion
        found = [combine([part], name=part.name) if isinstance(part, Variable) else part for part in parts]
        if not 1 <= len(found) <= 2:
            raise ValueError(f"a criterion consists of a loss and at most one metric, got {len(found)} parts")
        return found[0], found[1] if len(found) == 2 else None

    def _train_test_mb_map_args(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], (dict, tuple)):
            return args[0]
        return self.loss_function.argument_map(*args, **kwargs)

    def total_number_of_units_seen(self: Any, unit: int) -> int:
        """How many samples, minibatches or sweeps the trainer has seen; *unit* is a :class:`cntk.DataUnit`.

        >>> x, w = C.input_variable(1), C.parameter(1)
        >>> trainer = C.Trainer(None, C.square(x * w), C.sgd([w], 0.1))
        >>> trainer.train_minibatch({x: np.float32([[1], [2]])})
        True
        >>> trainer.total_number_of_units_seen(C.DataUnit.sample), trainer.total_number_of_units_seen(C.DataUnit.minibatch)
        (2, 1)
        """
        learner = getattr(self.parameter_learners[0], "learner", self.parameter_learners[0])
        counts = (
            learner.total_number_of_sweeps_seen,
            lambda: self.total_number_of_samples_seen,
            learner.total_number_of_minibatches_seen,
        )
        return int(counts[unit]())


class _LearnerMembers:
    _learning_rate_schedule: Any = None
    _options: Any = None

    def add_progress_writers(self: Any, writers: Any) -> None:
        """Accepted for compatibility: the trainer reports learning rates to progress writers."""

    def current_version(self: Any) -> int:
        """Version of CNTK's format of learners' checkpoints."""
        return 3

    def set_need_to_update_master_parameter(self: Any) -> None:
        """Accepted for compatibility: parameters have one value, which is always the current one."""

    def _update(self: Any, gradient_values: Any, training_sample_count: int, is_sweep_end: bool = False) -> bool:
        return bool(self.update(gradient_values, training_sample_count, is_sweep_end))


class _DistributedLearnerMembers:
    _MINIBATCH_SIZE = Learner._MINIBATCH_SIZE
    ignored_minibatch_size = Learner.ignored_minibatch_size
    add_progress_writers = _LearnerMembers.add_progress_writers
    current_version = _LearnerMembers.current_version
    set_need_to_update_master_parameter = _LearnerMembers.set_need_to_update_master_parameter
    _update = only_in_the_engine("_update", "a Trainer updates the parameters")

    @property
    def _options(self: Any) -> Any:
        return self.learner._options

    @property
    def _learning_rate_schedule(self: Any) -> Any:
        return self.learner._learning_rate_schedule

    def get_communicator(self: Any) -> Communicator:
        """What connects the workers."""
        return self.communicator()

    def parallelization_after(self: Any) -> int:
        """Number of samples that each worker learns from alone."""
        return int(self.distributed_after)

    def minibatch_size_scale_factor(self: Any) -> float:
        """By how much the minibatches of the workers together are larger than those of one: as large, for each takes its share."""
        return 1.0

    def total_number_of_minibatches_seen(self: Any) -> int:
        """How many minibatches it has learnt from."""
        return int(self.learner.total_number_of_minibatches_seen())

    def total_number_of_sweeps_seen(self: Any) -> int:
        """How many passes over the data it has learnt from."""
        return int(self.learner.total_number_of_sweeps_seen())

    def do_aggregate_metrics_if_needed(self: Any, local_loss: Any, local_metric: Any) -> bool:
        """Nothing is to be done: trainers sum the metrics of the workers."""
        return False


class _CommunicatorMembers:
    all_reduce_sparse_block_column = only_in_the_engine("all_reduce_sparse_block_column", "aggregate sums dense arrays")
    sub_group = only_in_the_engine("sub_group", "all workers take part in all exchanges")

    def aggregate_in_place(self: Any, arrays: Iterable[Any], workers: Any = None) -> None:
        """Put the sum of the workers' arrays into each of some arrays, on every worker."""
        for array in arrays:
            if isinstance(array, NDArrayView):
                array.copy_from(NDArrayView.from_dense(self.aggregate(array.asarray())))
            else:
                array[...] = self.aggregate(array)

    def concatenate(self: Any, arrays: Iterable[Any], workers: Any = None) -> list[Any]:
        """The workers' arrays one after another, for each of some arrays, on every worker."""
        return [np.concatenate(self.gather(array)) for array in arrays]


MEMBERS: dict[type, type] = {
    Evaluator: _EvaluatorMembers,
    Trainer: _TrainerMembers,
    Learner: _LearnerMembers,
    DistributedLearner: _DistributedLearnerMembers,
    Communicator: _CommunicatorMembers,
}
