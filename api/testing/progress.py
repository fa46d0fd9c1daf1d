"""The contract of a progress writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cntk as C

MINIBATCHES = 6


def check_progress_writer(factory: Callable[[], Any]) -> None:
    """Check a progress writer: a Trainer and an Evaluator report to it, with and without a metric.

    Args:
        factory: called without arguments, returns the writer.

    Raises:
        AssertionError: it is no ProgressWriter.

    >>> from cntk.testing import check_progress_writer
    >>> check_progress_writer(lambda: C.logging.TrainingSummaryProgressCallback(12, lambda *summary: None))
    """
    for with_metric in (False, True):
        writer = factory()
        if not isinstance(writer, C.cntk_py.ProgressWriter):
            raise AssertionError(f"a progress writer is a ProgressWriter, this is a {type(writer).__name__}")
        _report_to(writer, with_metric)


def _report_to(writer: Any, with_metric: bool) -> None:
    x, y = C.input_variable(2), C.input_variable(1)
    model = C.times(x, C.parameter((2, 1), init=1))
    loss = C.squared_error(model, y)
    metric = loss if with_metric else None
    trainer = C.Trainer(model, (loss, metric), [C.sgd(model.parameters, C.learning_parameter_schedule(0.01))], [writer])
    data = {x: np.ones((2, 2), np.float32), y: np.ones((2, 1), np.float32)}
    for _ in range(MINIBATCHES):
        trainer.train_minibatch(data)
    trainer.summarize_training_progress()
    if with_metric:
        trainer.test_minibatch(data)
        trainer.summarize_test_progress()
