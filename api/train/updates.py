"""What a trainer's learners update, and how."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from cntk.core.graph.block import combine
from cntk.core.graph.node_paths import NodePaths
from cntk.core.graph.variable import Parameter, Variable
from cntk.learners import Learner
from cntk.learners.interface import LearnerInterface
from cntk.learners.loss_scale import LossScale
from cntk.train.alone import Alone
from cntk.train.distributed import DistributedLearner
from cntk.train.lists import as_list
from cntk.train.loss_scales import require_scalable
from cntk.train.team import WorkerGroup
from cntk.train.update_strategy import UpdateStrategy

logger = logging.getLogger("cntk.train")

NAMED = 10
"""Parameters without a learner that a warning names."""


def updates_by(given: Any, loss: Variable, loss_scale: LossScale | None = None) -> UpdateStrategy:
    """How a learner, or several, update parameters: in this process alone, or together with other workers where they are distributed.

    With a loss scale gradients come multiplied by it.

    Raises:
        ValueError: there is no learner, one has a parameter that the loss does not contain or that another has, some are distributed and
            some are not, or the workers differ in what they train.
        TypeError: a learner is something else, or does not know loss scales.
    """
    learners = as_list(given)
    _warn_of_untrained_parameters(_checked(learners, loss), loss)
    distributed = [learner for learner in learners if isinstance(learner, DistributedLearner)]
    if distributed and len(distributed) < len(learners):
        raise ValueError(
            "Trainer: the learners of a trainer are distributed, all of them, or not; wrap the others too, "
            "such as by data_parallel_distributed_learner"
        )
    if loss_scale is not None:
        require_scalable(learners)
    return WorkerGroup(distributed, loss, loss_scale) if distributed else Alone(learners)


def _checked(learners: Sequence[LearnerInterface], loss: Variable) -> list[Parameter]:
    """The learners' parameters, each once and part of the loss."""
    if not learners:
        raise ValueError(
            "Trainer: at least one learner is needed, such as C.sgd(model.parameters, 0.1); train takes it as parameter_learners"
        )
    known = set(combine([loss]).parameters)
    owned: dict[Parameter, None] = {}
    for learner in learners:
        if not isinstance(learner, (Learner, DistributedLearner)):
            raise TypeError(f"Trainer: expected learners, made by cntk.sgd(...) or the like, got {type(learner).__name__} {learner!r:.80}")
        for parameter in learner.updated_parameters:
            if parameter not in known:
                raise ValueError(
                    f"Trainer: {parameter!r} of a learner is not a parameter of the loss; make the learner with parameters of the model "
                    "that the loss is computed from, as C.sgd(loss.parameters, 0.1)"
                )
            if parameter in owned:
                raise ValueError(f"Trainer: {parameter!r} belongs to two learners; a parameter is updated by one")
            owned[parameter] = None
    return list(owned)


def _warn_of_untrained_parameters(learnt: Sequence[Parameter], loss: Variable) -> None:
    """Tell of parameters without a learner, which may have been forgotten."""
    function = combine([loss])
    left = set(function.parameters).difference(learnt)
    if left:
        paths = [path for node, path in NodePaths(function).names.items() if node in left]
        named = ", ".join(paths[:NAMED]) + (", …" if len(paths) > NAMED else "")
        logger.warning("Trainer: %d parameters of the loss belong to no learner and stay as they are: %s", len(left), named)
