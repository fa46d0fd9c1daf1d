"""Schedules: hyper-parameters whose value depends on how many samples, or sweeps, have been seen."""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, unique
from typing import Any, Generic, TypeAlias, TypeVar

from ..core.common.user_frame import warn_user
from ..core.types.arguments import checked

MOST_ITERATED = 2**20
"""Values that a schedule is iterated over at most."""

IGNORE = 0
"""Reference minibatch size that means: the value holds for a minibatch of any size."""

FULL_DATA_SWEEP = 0
"""Epoch size that means: a sweep through the data."""

Number = TypeVar("Number", int, float)
ScheduleLike: TypeAlias = "float | Sequence[float | tuple[int, float]] | TrainingParameterSchedule[Any]"
"""A number, a list of numbers or of ``(count, value)`` pairs, or a :class:`TrainingParameterSchedule`."""


@unique
class UnitType(Enum):
    """The unit of a legacy learning rate.

    Example:
        >>> C.learning_rate_schedule(0.1, C.UnitType.sample).minibatch_size
        1
    """

    sample = "sample"
    minibatch = "minibatch"


class TrainingParameterSchedule(Generic[Number]):
    """A value that changes as training goes on; ``s[i]`` is the value after *i* samples (after *i* sweeps if it is sweep-based).

    Args:
        schedule: values, each with the number of epochs it holds for; the last one stays, whatever its number. Or one value.
        epoch_size: number of samples of an epoch; 0 makes an epoch a sweep through the data.
        minibatch_size: number of samples that the values refer to; 0 (``IGNORE``) if they hold for a minibatch of any size.
        is_minibatch_size_explicitly_specified: whether a learner's own ``minibatch_size`` leaves *minibatch_size* alone.

    Raises:
        ValueError: the schedule is empty, or a count or size is negative.

    Example:
        >>> s = C.learning_parameter_schedule([(2, 0.5), (1, 0.25), 0.125], epoch_size=10)
        >>> s[0], s[19], s[20], s[1000]
        (0.5, 0.5, 0.25, 0.125)
    """

    full_data_sweep = FULL_DATA_SWEEP
    ignored_minibatch_size = IGNORE

    def __init__(
        self,
        schedule: Sequence[tuple[int, Number]] | Number,
        epoch_size: int = FULL_DATA_SWEEP,
        minibatch_size: int = IGNORE,
        is_minibatch_size_explicitly_specified: bool = True,
    ) -> None:
        if isinstance(schedule, (int, float)):
            schedule = [(1, schedule)]
        if not schedule:
            raise ValueError("schedule: expected at least one value, got an empty list")
        last = len(schedule) - 1
        self.counts = [_natural(count, "schedule: number of epochs of a value", int(i < last)) for i, (count, _) in enumerate(schedule)]
        self.values: list[Number] = [value for _, value in schedule]
        self.epoch_size = _natural(epoch_size, "schedule: epoch_size")
        self.minibatch_size = _natural(minibatch_size, "schedule: minibatch_size")
        self.is_minibatch_size_explicitly_specified = is_minibatch_size_explicitly_specified
        unit = self.epoch_size or 1
        self._ends = [sum(self.counts[:i]) * unit for i in range(1, len(schedule))]

    @property
    def is_sweep_based(self) -> bool:
        """Whether the index counts sweeps, not samples."""
        return self.epoch_size == FULL_DATA_SWEEP

    @property
    def unit(self) -> str:
        """The unit of the values: ``'minibatch'`` or ``'<n> samples'``."""
        return "minibatch" if self.minibatch_size == IGNORE else f"{self.minibatch_size} samples"

    def __iter__(self) -> Iterator[Number]:
        """The values by index up to the last change; Python would take ``__getitem__`` for that of an infinite sequence."""
        last = self._ends[-1] if self._ends else 0
        if last > MOST_ITERATED:
            raise TypeError(f"a schedule whose last change is at {last} is too long to iterate over; index it, as in schedule[{last}]")
        return (self[index] for index in range(last + 1))

    def __getitem__(self, index: int) -> Number:
        if index < 0:
            raise ValueError(f"schedule: the index is a number of samples or sweeps seen, and so at least 0; got {index}")
        return self.values[bisect_right(self._ends, index)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainingParameterSchedule) and self.create_checkpoint() == other.create_checkpoint()

    def __hash__(self) -> int:
        return hash((tuple(self.counts), tuple(self.values), self.epoch_size))

    def transform(self, function: Callable[[Number], Number]) -> TrainingParameterSchedule[Number]:
        """A schedule with *function* applied to every value."""
        pairs = [(count, function(value)) for count, value in zip(self.counts, self.values, strict=True)]
        return TrainingParameterSchedule(pairs, self.epoch_size, self.minibatch_size, self.is_minibatch_size_explicitly_specified)

    def copy(self) -> TrainingParameterSchedule[Number]:
        """A schedule of its own with the same values."""
        return self.transform(lambda value: value)

    def create_checkpoint(self) -> dict[str, Any]:
        """Everything that :meth:`from_checkpoint` needs, as numbers and lists."""
        return {
            "counts": list(self.counts),
            "values": list(self.values),
            "epoch_size": self.epoch_size,
            "minibatch_size": self.minibatch_size,
            "is_minibatch_size_explicitly_specified": self.is_minibatch_size_explicitly_specified,
        }

    @classmethod
    def from_checkpoint(cls, state: dict[str, Any]) -> TrainingParameterSchedule[Number]:
        """The schedule that :meth:`create_checkpoint` described.

        Raises:
            ValueError: it does not describe a schedule.
        """
        for name in ("counts", "values", "epoch_size", "minibatch_size", "is_minibatch_size_explicitly_specified"):
            if name not in state:
                raise ValueError(f"checkpoint of a schedule lacks '{name}'; it has {sorted(state)}")
        pairs = list(zip(state["counts"], state["values"], strict=True))
        if any(isinstance(value, bool) or not isinstance(value, (int, float)) for _, value in pairs):
            raise ValueError(f"checkpoint of a schedule: expected numbers, got {state['values']!r:.80}")
        return cls(pairs, state["epoch_size"], state["minibatch_size"], bool(state["is_minibatch_size_explicitly_specified"]))

    def __repr__(self) -> str:
        if len(self.values) == 1:
            return f"TrainingParameterSchedule({self.values[0]} per {self.unit})"
        epoch = "a sweep" if self.is_sweep_based else f"{self.epoch_size} samples"
        pairs = list(zip(self.counts, self.values, strict=True))
        return f"TrainingParameterSchedule({pairs} per {self.unit}, epochs of {epoch})"


@checked
def learning_parameter_schedule(
    schedule: ScheduleLike, minibatch_size: int | None = None, epoch_size: int | None = None
) -> TrainingParameterSchedule[float]:
    """A schedule for a learning rate or another hyper-parameter.

    Args:
        schedule: a number; a list of numbers, each for one epoch; or a list of ``(number of epochs, value)`` pairs.  The last
            value stays.  A schedule is returned as it is.
        minibatch_size: number of samples that a value refers to: with 4, it is the rate for each 4 samples of a minibatch.
            0 or None: for the whole minibatch, whatever its size; None lets the learner's ``minibatch_size`` fill it in.
        epoch_size: number of samples of an epoch; None for a sweep through the data.

    Raises:
        ValueError: *schedule* is of another type or empty, or a size is negative.

    Example:
        >>> s = C.learning_parameter_schedule([0.5, 0.25, 0.125], epoch_size=10)
        >>> s[9], s[10], s[100]
        (0.5, 0.25, 0.125)
        >>> s.minibatch_size
        0
    """
    if isinstance(schedule, TrainingParameterSchedule):
        return schedule
    explicit = minibatch_size is not None
    return TrainingParameterSchedule(_pairs(schedule, epoch_size), epoch_size or FULL_DATA_SWEEP, minibatch_size or IGNORE, explicit)


@checked
def learning_parameter_schedule_per_sample(schedule: ScheduleLike, epoch_size: int | None = None) -> TrainingParameterSchedule[float]:
    """A schedule whose values refer to one sample; arguments as in :func:`learning_parameter_schedule`.

    Example:
        >>> C.learning_parameter_schedule_per_sample(0.01).minibatch_size
        1
    """
    return learning_parameter_schedule(schedule, 1, epoch_size)


@checked
def momentum_schedule(
    momentum: ScheduleLike, epoch_size: int | None = None, minibatch_size: int | None = None
) -> TrainingParameterSchedule[float]:
    """A schedule for a momentum; as :func:`learning_parameter_schedule`, but ``epoch_size`` comes second.

    A momentum with a reference minibatch size *n* becomes ``momentum ** (m / n)`` for a minibatch of *m* samples.

    Example:
        >>> C.momentum_schedule([0.9, 0.99], 100)[100]
        0.99
    """
    return learning_parameter_schedule(momentum, minibatch_size, epoch_size)


@checked
def momentum_schedule_per_sample(momentum: ScheduleLike, epoch_size: int | None = None) -> TrainingParameterSchedule[float]:
    """A schedule for a momentum that refers to one sample: it becomes ``momentum ** m`` for a minibatch of *m* samples.

    Example:
        >>> C.momentum_schedule_per_sample(0.999).minibatch_size
        1
    """
    return learning_parameter_schedule(momentum, 1, epoch_size)


@checked
def momentum_as_time_constant_schedule(momentum: ScheduleLike, epoch_size: int | None = None) -> TrainingParameterSchedule[float]:
    """A schedule for a momentum, given by time constants.

    Args:
        momentum: as *schedule* in :func:`learning_parameter_schedule`, in samples: the number of samples after which the weight
            of a gradient has decayed to 1/e.  0 means no momentum.
        epoch_size: number of samples of an epoch; None for a sweep through the data.

    Returns:
        The schedule of the momentum per sample, ``exp(-1 / time constant)``.

    Raises:
        ValueError: *momentum* is of another type or empty.

    Example:
        >>> s = C.momentum_as_time_constant_schedule(300)
        >>> round(s[0], 7), s.minibatch_size
        (0.9966722, 1)
    """
    if isinstance(momentum, TrainingParameterSchedule):
        schedule = momentum.copy()
        schedule.is_minibatch_size_explicitly_specified = True
        return schedule
    return learning_parameter_schedule_per_sample(momentum, epoch_size).transform(_decay_per_sample)


@checked
def learning_rate_schedule(lr: ScheduleLike, unit: UnitType | str, epoch_size: int | None = None) -> TrainingParameterSchedule[float]:
    """A schedule for a learning rate that names its unit (an older form of :func:`learning_parameter_schedule`).

    Args:
        lr: as *schedule* in :func:`learning_parameter_schedule`.
        unit: ``UnitType.sample`` or ``UnitType.minibatch``, or its name.
        epoch_size: number of samples of an epoch, whatever the unit; None for a sweep through the data.

    Raises:
        ValueError: *lr* or *unit* is not one of these.

    Example:
        >>> C.learning_rate_schedule([0.1, 0.01], C.UnitType.minibatch, 1000)[1000]
        0.01
    """
    return training_parameter_schedule(lr, unit, epoch_size)


@checked
def training_parameter_schedule(
    schedule: ScheduleLike, unit: UnitType | str = UnitType.minibatch, epoch_size: int | None = None
) -> TrainingParameterSchedule[float]:
    """A schedule for any hyper-parameter that names its unit; arguments as in :func:`learning_rate_schedule`.

    Example:
        >>> C.training_parameter_schedule(0.01, unit='sample').minibatch_size
        1
    """
    if isinstance(schedule, TrainingParameterSchedule):
        named = schedule.copy()
        named.is_minibatch_size_explicitly_specified = True
        return named
    return learning_parameter_schedule(schedule, 1 if UnitType(unit) is UnitType.sample else IGNORE, epoch_size)


@checked
def minibatch_size_schedule(schedule: Any, epoch_size: int | None = 1) -> TrainingParameterSchedule[int]:
    """A schedule for the size of minibatches.

    Args:
        schedule: a whole number; a list of them, each for one epoch; or a list of ``(number of epochs, size)`` pairs.
        epoch_size: number of samples of an epoch.

    Returns:
        The schedule; ``s[i]`` is the size after *i* samples.

    Raises:
        ValueError: *schedule* is of another type or empty, a size is not positive, or a number comes with an *epoch_size*.

    Example:
        >>> s = C.minibatch_size_schedule([(1, 32), 64], epoch_size=1000)
        >>> s[0], s[1000]
        (32, 64)
    """
    if isinstance(schedule, TrainingParameterSchedule):
        return schedule
    if isinstance(schedule, int):
        if epoch_size != 1:
            raise ValueError(
                f"minibatch_size_schedule: a single size needs no epoch_size, got {epoch_size}; give a list of sizes or leave it out"
            )
        schedule = [schedule]
    if not isinstance(schedule, list):
        raise ValueError(f"minibatch_size_schedule: expected a whole number or a list, got {type(schedule).__name__}")
    pairs = [item if isinstance(item, tuple) else (1, item) for item in schedule]
    sizes = [(count, _natural(size, "minibatch_size_schedule: size", 1)) for count, size in pairs]
    return TrainingParameterSchedule(sizes, 1 if epoch_size is None else epoch_size)


def _pairs(schedule: Any, epoch_size: int | None) -> list[tuple[int, float]]:
    if isinstance(schedule, (int, float)):
        if epoch_size is not None:
            warn_user("a schedule of a single number has no use for epoch_size; it is ignored", RuntimeWarning)
        schedule = [schedule]
    if not isinstance(schedule, list):
        raise ValueError(f"schedule: expected a number (int or float) or a list, got {type(schedule).__name__}")
    try:
        return [(item[0], float(item[1])) if isinstance(item, tuple) else (1, float(item)) for item in schedule]
    except (IndexError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"schedule: expected numbers or (count, value) pairs, got {schedule!r}") from error


def _natural(number: Any, what: str, least: int = 0) -> int:
    try:
        whole = operator.index(number)
    except TypeError as error:
        raise ValueError(f"{what}: expected a whole number, got {number!r}") from error
    if whole < least:
        raise ValueError(f"{what}: expected at least {least}, got {whole}")
    return whole


def _decay_per_sample(time_constant: float) -> float:
    return math.exp(-1.0 / time_constant) if time_constant else 0.0


DEFAULT_VARIANCE_MOMENTUM = momentum_schedule_per_sample(0.9999986111120757)
"""The default of :func:`adam` and :func:`fsadagrad`: a time constant of 720,000 samples."""
