"""Helpers of CNTK's learners that learners of others are made with."""

from __future__ import annotations

from typing import Any

from cntk.learners import IGNORE, learning_parameter_schedule
from cntk.learners.schedules import TrainingParameterSchedule


def _verify_learning_rate_type(learning_rate: Any) -> None:
    """See that a learning rate is a schedule.

    Raises:
        ValueError: it is none.
    """
    _check_schedule("learning_rate", learning_rate, "learning_parameter_schedule")


def _verify_momentum_type(momentum: Any) -> None:
    """See that a momentum is a schedule.

    Raises:
        ValueError: it is none.
    """
    _check_schedule("momentum", momentum, "momentum_schedule")


def _check_schedule(what: str, given: Any, maker: str) -> None:
    if not isinstance(given, TrainingParameterSchedule):
        raise ValueError(f"{what}: expected a schedule, as {maker}() makes it, got {type(given).__name__} {given!r:.80}")


def _prepare_training_parameter_list(schedule: Any) -> Any:
    """A list of numbers and pairs as one of pairs: a number holds for one unit."""
    if not isinstance(schedule, list):
        return schedule
    return [(1, part) if isinstance(part, (float, int)) else part for part in schedule]


def _infer_ref_minibatch_size_from_legacy_use_mean_gradient(ref_minibatch_size: Any, use_mean_gradient: Any) -> Any:
    """The number of samples that rates refer to: as given, else none in particular for mean gradients."""
    if ref_minibatch_size is not None:
        return ref_minibatch_size
    return IGNORE if use_mean_gradient is True else None


def _infer_learning_parameter_schedule(
    number_or_schedule: Any, ref_minibatch_size: int | None, epoch_size: int | None, use_mean_gradient: bool | None = None
) -> TrainingParameterSchedule[float]:
    """A schedule of a number, a list or a schedule; one that does not say what it refers to refers to *ref_minibatch_size*.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(number_or_schedule, TrainingParameterSchedule):
        schedule = number_or_schedule
        if not schedule.is_minibatch_size_explicitly_specified and ref_minibatch_size is not None:
            schedule.minibatch_size = ref_minibatch_size
        if use_mean_gradient and schedule.minibatch_size == 1:
            schedule.minibatch_size = IGNORE
        return schedule
    parts = number_or_schedule if isinstance(number_or_schedule, list) else [number_or_schedule]
    if not all(isinstance(part, (int, float, tuple)) for part in parts):
        raise ValueError(f"expected a number, a list of numbers and pairs, or a schedule, got {number_or_schedule!r:.80}")
    return learning_parameter_schedule(number_or_schedule, ref_minibatch_size or IGNORE, epoch_size)


def _infer_learning_rate_schedule_and_ref_minibatch_size(
    use_mean_gradient: bool | None, ref_minibatch_size: int | None, schedule: Any, epoch_size: int | None
) -> tuple[TrainingParameterSchedule[float], int | None]:
    """The schedule of a learning rate, and the number of samples that it refers to.

    Raises:
        ValueError: *schedule* is none, and nothing that makes one.
    """
    size = _infer_ref_minibatch_size_from_legacy_use_mean_gradient(ref_minibatch_size, use_mean_gradient)
    return _infer_learning_parameter_schedule(schedule, size, epoch_size, use_mean_gradient), size
