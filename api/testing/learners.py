"""The contract of a learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cntk as C

TARGET = (0.5, -0.25, 0.1)
STEPS = 60


def check_learner(factory: Callable[[Any, Any], Any], rate: float = 0.02) -> None:
    """Check a learner: it tells its parameters and learning rate, a Trainer minimises a simple loss with it, and training that goes
    on from its checkpoint is the training that never stopped, bit for bit.

    Args:
        factory: called with a list of parameters and a schedule of learning rates, returns the learner.
        rate: a learning rate with which it gets half way from 0 to weights of 0.1 to 0.5 in 60 steps.

    Raises:
        AssertionError: it does not conform.

    >>> from cntk.testing import check_learner
    >>> check_learner(C.sgd)
    """
    for dtype in (np.float32, np.float64):
        _check_type(factory, rate, dtype)
        _check_checkpoint(factory, rate, dtype)


def _check_type(factory: Callable[[Any, Any], Any], rate: float, dtype: Any) -> None:
    parameter = C.parameter(init=np.zeros(len(TARGET), dtype))
    learner = factory([parameter], C.learning_parameter_schedule(rate))
    _require(abs(learner.learning_rate() - rate) < 1e-12, f"learning_rate() gives {learner.learning_rate()}, the schedule {rate}")
    held = learner.parameters() if callable(learner.parameters) else learner.parameters
    _require(list(held) == [parameter], "parameters are not those it was made with")

    scale = C.input_variable((), dtype)
    distance = C.minus(C.constant(np.array(TARGET, dtype)), parameter)
    loss = C.element_times(scale, C.reduce_sum(C.element_times(distance, distance)))
    trainer = C.Trainer(None, (loss, None), [learner])
    losses = []
    for _ in range(STEPS):
        trainer.train_minibatch({scale: np.ones(4, dtype)})
        losses.append(trainer.previous_minibatch_loss_average)
    kind = np.dtype(dtype).name
    _require(parameter.value.dtype == dtype, f"the {kind} parameter became {parameter.value.dtype}")
    _require(bool(np.isfinite(parameter.value).all()), f"the {kind} parameter became {parameter.value}")
    _require(losses[-1] < losses[0] / 2, f"after {STEPS} steps at rate {rate} the loss went from {losses[0]:.4g} to {losses[-1]:.4g} only")


def _check_checkpoint(factory: Callable[[Any, Any], Any], rate: float, dtype: Any) -> None:
    def make(init: Any) -> tuple[Any, Any, Any]:
        parameter = C.parameter(init=init)
        learner = factory([parameter], C.learning_parameter_schedule([rate, rate / 2], epoch_size=10))
        data = C.input_variable(len(TARGET), dtype)
        loss = C.squared_error(parameter * data, data)
        return parameter, learner, lambda values: C.Trainer(None, (loss, None), [learner]).train_minibatch({data: values})

    minibatches = np.random.default_rng(0).normal(size=(6, 3, len(TARGET))).astype(dtype)
    parameter, learner, step = make(np.zeros(len(TARGET), dtype))
    for values in minibatches[:3]:
        step(values)
    other, restored, other_step = make(parameter.value)
    restored.restore_from_checkpoint(learner.create_checkpoint())
    for values in minibatches[3:]:
        step(values)
        other_step(values)
    same = np.array_equal(parameter.value, other.value)
    _require(same, f"training that goes on from its checkpoint gives {other.value}, that without a stop {parameter.value}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(f"the learner does not conform: {message}")
