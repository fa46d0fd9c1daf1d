"""The name that :mod:`cntk.internal.utils` had in the first versions of CNTK 2, with what else was there."""

from __future__ import annotations

import sys
from typing import Any

from cntk.compatibility import complete
from cntk.core.values.value import Value
from cntk.train import Trainer

one_hot = Value.one_hot


def get_train_loss(trainer: Trainer) -> float:
    """The average loss of the minibatch before; see ``Trainer.previous_minibatch_loss_average``.

    >>> from cntk.utils import get_train_loss
    >>> x, w = C.input_variable(1), C.parameter(1, init=1)
    >>> trainer = C.Trainer(x * w, C.square(x * w), C.sgd([w], 0.1))
    >>> trainer.train_minibatch({x: np.float32([[1], [3]])})
    True
    >>> get_train_loss(trainer)
    5.0
    """
    return trainer.previous_minibatch_loss_average


def get_train_eval_criterion(trainer: Trainer) -> float:
    """The average metric of the minibatch before; see ``Trainer.previous_minibatch_evaluation_average``.

    >>> from cntk.utils import get_train_eval_criterion
    >>> x, w = C.input_variable(1), C.parameter(1, init=1)
    >>> trainer = C.Trainer(x * w, (C.square(x * w), C.abs(x * w)), C.sgd([w], 0.1))
    >>> trainer.train_minibatch({x: np.float32([[1], [3]])})
    True
    >>> get_train_eval_criterion(trainer)
    2.0
    """
    return trainer.previous_minibatch_evaluation_average


__all__ = ["get_train_eval_criterion", "get_train_loss", "one_hot"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'cntk.utils' has no '{name}'")


complete(sys.modules[__name__])
