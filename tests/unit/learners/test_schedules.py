"""Schedules: values by index, reference minibatch sizes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import cntk as C
from cntk.learners import IGNORE, TrainingParameterSchedule, UnitType, minibatch_size_schedule


@pytest.mark.parametrize(
    ("schedule", "epoch_size", "expected"),
    [
        (0.5, None, {0: 0.5, 1000: 0.5}),
        ([0.5, 0.25, 0.125], 10, {0: 0.5, 9: 0.5, 10: 0.25, 19: 0.25, 20: 0.125, 100: 0.125}),
        ([(2, 0.5), (1, 0.25), 0.125], 10, {0: 0.5, 19: 0.5, 20: 0.25, 29: 0.25, 30: 0.125}),
        ([0.5, 0.25], None, {0: 0.5, 1: 0.25, 2: 0.25}),
        ([1, 0], 1, {0: 1.0, 1: 0.0}),
    ],
)
def test_a_schedule_has_its_values_where_it_says(schedule: object, epoch_size: int | None, expected: dict[int, float]) -> None:
    found = C.learning_parameter_schedule(schedule, epoch_size=epoch_size)
    assert {index: found[index] for index in expected} == expected
    assert not found.is_sweep_based or epoch_size is None


@pytest.mark.parametrize(
    ("schedule", "minibatch_size", "explicit"),
    [
        (lambda: C.learning_parameter_schedule(0.1), IGNORE, False),
        (lambda: C.learning_parameter_schedule(0.1, minibatch_size=4), 4, True),
        (lambda: C.learning_parameter_schedule(0.1, minibatch_size=0), IGNORE, True),
        (lambda: C.learning_parameter_schedule_per_sample(0.1), 1, True),
        (lambda: C.learning_rate_schedule(0.1, UnitType.sample), 1, True),
        (lambda: C.learning_rate_schedule(0.1, UnitType.minibatch), IGNORE, True),
        (lambda: C.training_parameter_schedule(0.1, unit="sample"), 1, True),
        (lambda: C.training_parameter_schedule(0.1), IGNORE, True),
        (lambda: C.momentum_schedule(0.9), IGNORE, False),
        (lambda: C.momentum_schedule(0.9, minibatch_size=8), 8, True),
        (lambda: C.momentum_schedule_per_sample(0.9), 1, True),
        (lambda: C.momentum_as_time_constant_schedule(300), 1, True),
    ],
)
def test_reference_minibatch_sizes(schedule: object, minibatch_size: int, explicit: bool) -> None:
    found = schedule()  # type: ignore[operator]
    assert (found.minibatch_size, found.is_minibatch_size_explicitly_specified) == (minibatch_size, explicit)


def test_time_constants_become_momenta_per_sample() -> None:
    found = C.momentum_as_time_constant_schedule([(2, 300), 0], epoch_size=10)
    assert found[0] == np.exp(-1 / 300)
    assert found[19] == np.exp(-1 / 300)
    assert found[20] == 0.0


def test_epoch_size_is_the_second_argument_of_a_momentum() -> None:
    assert C.momentum_schedule([0.9, 0.99], 100)[100] == 0.99


def test_schedules_pass_through() -> None:
    schedule = C.learning_parameter_schedule(0.1)
    assert C.learning_parameter_schedule(schedule) is schedule
    assert C.learning_rate_schedule(schedule, UnitType.sample).is_minibatch_size_explicitly_specified
    assert not schedule.is_minibatch_size_explicitly_specified


def test_minibatch_sizes() -> None:
    assert minibatch_size_schedule(32)[10**6] == 32
    schedule = minibatch_size_schedule([(2, 32), 64], epoch_size=100)
    assert [schedule[index] for index in (0, 199, 200)] == [32, 32, 64]
    assert isinstance(schedule[0], int)


def test_the_last_count_says_nothing() -> None:
    schedule = C.momentum_schedule([(2, 0.9), (0, 0.5)])
    assert [schedule[sweep] for sweep in range(4)] == [0.9, 0.9, 0.5, 0.5]
    assert C.learning_parameter_schedule([(0, 0.1)])[7] == 0.1


@pytest.mark.parametrize(
    "bad",
    [
        lambda: C.learning_parameter_schedule(np.float32(0.1)),
        lambda: C.learning_parameter_schedule((0.1, 0.2)),
        lambda: C.learning_parameter_schedule("0.1"),
        lambda: C.learning_parameter_schedule([]),
        lambda: C.learning_parameter_schedule([None]),
        lambda: C.learning_parameter_schedule([(0, 0.1), (2, 0.2)]),
        lambda: C.learning_parameter_schedule([(2, 0.1), (-1, 0.2)]),
        lambda: C.learning_parameter_schedule([(1.5, 0.1)]),
        lambda: C.learning_parameter_schedule(0.1, minibatch_size=-1),
        lambda: C.learning_parameter_schedule([0.1], epoch_size=-1),
        lambda: C.learning_rate_schedule(0.1, "week"),
        lambda: C.momentum_as_time_constant_schedule((300,)),
        lambda: C.learning_parameter_schedule(0.1)[-1],
        lambda: minibatch_size_schedule(32, epoch_size=100),
        lambda: minibatch_size_schedule([0]),
        lambda: minibatch_size_schedule([1.5]),
        lambda: minibatch_size_schedule((32,)),
    ],
)
def test_bad_schedules_are_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"schedule|UnitType"):
        bad()  # type: ignore[operator]


def test_a_number_warns_of_an_epoch_size() -> None:
    with pytest.warns(RuntimeWarning, match="epoch_size"):
        C.learning_parameter_schedule(0.1, epoch_size=10)


def test_checkpoints_keep_everything() -> None:
    schedule = C.learning_parameter_schedule([(2, 0.5), 0.25], minibatch_size=4, epoch_size=10)
    restored = TrainingParameterSchedule.from_checkpoint(schedule.create_checkpoint())
    assert vars(restored) == vars(schedule)
    assert repr(restored) == "TrainingParameterSchedule([(2, 0.5), (1, 0.25)] per 4 samples, epochs of 10 samples)"
