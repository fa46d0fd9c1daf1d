"""The contract of a progress writer."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import cntk as C
from cntk.core.common.switches import isolated
from cntk.plugins.progress.not_finite import is_told

MINIBATCHES = 6


def check_progress_writer(factory: Callable[[], Any]) -> None:
    """Check a progress writer: a Trainer and an Evaluator report to it, and another goes on from its checkpoint.

    It takes losses with and without a metric, losses that are not finite, and summaries of nothing; it is told of a test after
    training and without any.  All this happens in a temporary folder, which takes the files that it writes to the current one.

    Args:
        factory: called without arguments, returns the writer.

    Raises:
        AssertionError: it is not a ProgressWriter, or a checkpoint loses its counts.

    >>> from cntk.testing import check_progress_writer
    >>> check_progress_writer(lambda: C.logging.TrainingSummaryProgressCallback(12, lambda *summary: None))
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), isolated():
        for with_metric in (False, True):
            writer = factory()
            if not isinstance(writer, C.cntk_py.ProgressWriter):
                raise AssertionError(f"a progress writer is a ProgressWriter, this is a {type(writer).__name__}")
            _report_training(writer, with_metric)
            _check_checkpoint(writer, factory())
        _report_test(factory())


def _criterion() -> tuple[Any, Any, Any]:
    x = C.input_variable(2)
    model = C.times(x, C.parameter((2, 1), init=1))
    return x, model, C.squared_error(model, C.constant(np.ones(1, np.float32)))


def _report_training(writer: Any, with_metric: bool) -> None:
    x, model, loss = _criterion()
    learner = C.sgd(model.parameters, C.learning_parameter_schedule(0.01))
    trainer = C.Trainer(model, (loss, loss if with_metric else None), [learner], [writer])
    data = {x: np.ones((2, 2), np.float32)}
    for _ in range(MINIBATCHES):
        trainer.train_minibatch(data)
    trainer.summarize_training_progress()
    if with_metric:
        trainer.test_minibatch(data)
        trainer.summarize_test_progress()
    is_told.value = True  # of the loss that is not finite
    with np.errstate(all="ignore"):
        trainer.train_minibatch({x: np.full((2, 2), np.inf, np.float32)})
    trainer.summarize_training_progress()
    trainer.summarize_training_progress()
    trainer.train_minibatch(data)


def _report_test(writer: Any) -> None:
    x, _, metric = _criterion()
    evaluator = C.Evaluator(metric, [writer])
    for _ in range(MINIBATCHES):
        evaluator.test_minibatch({x: np.ones((2, 2), np.float32)})
    evaluator.summarize_test_progress()
    evaluator.summarize_test_progress()


def _check_checkpoint(writer: Any, other: Any) -> None:
    checkpoint = writer.create_checkpoint()
    if not _is_plain(checkpoint):
        raise AssertionError(
            f"a checkpoint holds numbers, strings, lists and dictionaries with strings as keys, this is {checkpoint!r:.200}"
        )
    other.restore_from_checkpoint(checkpoint)
    for count in ("total_training_updates", "total_test_updates"):
        expected, found = getattr(writer, count)(), getattr(other, count)()
        if found != expected:
            raise AssertionError(f"{count} was {expected} when the checkpoint was made, and is {found} in the writer that goes on from it")


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(held) for key, held in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, str))
