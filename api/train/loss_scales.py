"""Whether a loss scale goes with a loss and with learners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cntk.core.common.dtypes import limits_of
from cntk.core.graph.variable import Variable
from cntk.learners import Learner
from cntk.learners.loss_scale import LossScale
from cntk.train.distributed import DistributedLearner


def scale_for(loss: Variable, given: Any) -> LossScale | None:
    """The loss scale that a trainer was given; None where it was given none.

    Raises:
        ValueError: it is out of range, or one that stays is beyond the largest number of the loss's element type.
        TypeError: it is something else.
    """
    scale = LossScale.of(given)
    if scale is not None and not scale.is_dynamic and scale.value > float(limits_of(loss.dtype).max):
        raise ValueError(
            f"Trainer: a loss scale of {scale.value:g} is beyond the largest {np.dtype(loss.dtype)}; compute the loss in float32, "
            "by C.cast(..., np.float32)"
        )
    return scale


def require_scalable(learners: Sequence[Any]) -> None:
    """Refuse learners with updates of their own, which would take scaled gradients for gradients.

    Raises:
        TypeError: there is one.
    """
    for learner in learners:
        kind = type(learner.learner if isinstance(learner, DistributedLearner) else learner)
        if kind.update_arrays is not Learner.update_arrays:
            raise TypeError(
                f"Trainer: loss_scale does not go with {kind.__name__}, which updates parameters in its own way; "
                "multiply the loss and divide the gradients there, or derive from Learner and define step"
            )
