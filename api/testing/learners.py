"""The contract of a learner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import cntk as C

TARGET = (0.5, -0.25, 0.1)
STEPS = 60

STOPS, MORE = (3, 40), 5
"""Updates after which training stops, and those that follow."""


def check_learner(factory: Callable[[Any, Any], Any], rate: float = 0.02) -> None:
    """Check a learner: it tells its parameters and learning rate, a Trainer minimises a simple loss with it, and training that goes
    on from a file with its checkpoint is the training that never stopped, bit for bit.

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
    seen = C.negate(distance)
    trainer = C.Trainer(None, (loss, None), [learner])
    losses = []
    for _ in range(STEPS):
        trainer.train_minibatch({scale: np.ones(4, dtype)})
        _require(
            bool((-seen.eval() == np.array(TARGET, dtype) - parameter.value).all()),
            "evaluation does not see its updates; what writes to parameter.array says so by parameter.updates += 1",
        )
        losses.append(trainer.previous_minibatch_loss_average)
    kind = np.dtype(dtype).name
    _require(parameter.value.dtype == dtype, f"the {kind} parameter became {parameter.value.dtype}")
    _require(bool(np.isfinite(parameter.value).all()), f"the {kind} parameter became {parameter.value}")
    _require(losses[-1] < losses[0] / 2, f"after {STEPS} steps at rate {rate} the loss went from {losses[0]:.4g} to {losses[-1]:.4g} only")


def _check_checkpoint(factory: Callable[[Any, Any], Any], rate: float, dtype: Any) -> None:
    """Go on from states kept after few updates and after many, in a file and in memory, while the learner they are of goes on as well."""

    def make(init: Any) -> tuple[Any, Any, Any]:
        parameter = C.parameter(init=init)
        learner = factory([parameter], C.learning_parameter_schedule([rate, rate / 2], epoch_size=10))
        data = C.input_variable(len(TARGET), dtype)
        loss = C.squared_error(parameter * data, data)
        trainer = C.Trainer(None, (loss, None), [learner])
        return parameter, trainer, lambda values: trainer.train_minibatch({data: values})

    minibatches = np.random.default_rng(0).normal(size=(STEPS, 3, len(TARGET))).astype(dtype)
    for number in STOPS:
        parameter, trainer, step = make(np.zeros(len(TARGET), dtype))
        for values in minibatches[:number]:
            step(values)
        value, held = parameter.value, trainer.parameter_learners[0].create_checkpoint()
        from_file, from_memory = make(value), make(value)
        with TemporaryDirectory() as folder:
            file = Path(folder) / "checkpoint"
            _save(trainer, file)
            for values in minibatches[number : number + MORE]:
                step(values)
            from_file[1].restore_from_checkpoint(file)
        from_memory[1].parameter_learners[0].restore_from_checkpoint(held)
        for other, _, other_step in (from_file, from_memory):
            for values in minibatches[number : number + MORE]:
                other_step(values)
            same = np.array_equal(parameter.value, other.value)
            _require(
                same,
                f"training that goes on from its checkpoint of update {number} gives {other.value}, that without a stop {parameter.value}; "
                "create_checkpoint returns copies of all that it keeps, and restore_from_checkpoint takes them over",
            )


def _save(trainer: Any, file: Path) -> None:
    try:
        trainer.save_checkpoint(file)
    except TypeError as error:
        raise AssertionError(f"the learner does not conform: its checkpoint cannot be written: {error}") from error


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(f"the learner does not conform: {message}")
