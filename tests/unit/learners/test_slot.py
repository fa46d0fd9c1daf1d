"""What a learner holds for one parameter: float32 masters of float16 parameters."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.types.sparse import RowSparse
from cntk.testing import isolated

Make = Callable[[Any], Any]
MOMENTUM: Make = lambda p: C.momentum_sgd(p, 1e-4, 0.5, minibatch_size=C.learners.IGNORE)  # noqa: E731
RULES: dict[str, Make] = {
    "sgd": lambda p: C.sgd(p, 1e-4, minibatch_size=C.learners.IGNORE),
    "momentum": MOMENTUM,
    "adam": lambda p: C.adam(p, 1e-4, 0.9, minibatch_size=C.learners.IGNORE),
    "rmsprop": lambda p: C.rmsprop(p, 1e-4, 0.9, 1.2, 0.7, 10, 0.1, minibatch_size=C.learners.IGNORE),
    "l1": lambda p: C.sgd(p, 1e-4, l1_regularization_weight=0.5, minibatch_size=C.learners.IGNORE),
}


def _pair(make: Make, *shape: int) -> list[tuple[Any, Any]]:
    """A float16 and a float32 parameter that begin as ones, each with its learner."""
    parameters = [C.parameter(shape, init=1, dtype=dtype) for dtype in (np.float16, np.float32)]
    return [(parameter, make([parameter])) for parameter in parameters]


def _learn(learner: Any, steps: int, gradient: float = 1.0) -> None:
    (parameter,) = learner.updated_parameters
    given = np.full(parameter.shape, gradient, parameter.dtype)
    for _ in range(steps):
        learner.update_arrays([given.copy()], 1)


@pytest.mark.parametrize("rule", RULES)
def test_small_updates_of_float16_parameters_add_up_as_those_of_float32(rule: str) -> None:
    (narrow, narrow_learner), (wide, wide_learner) = _pair(RULES[rule], 3)
    steps = 10_000 if rule in ("sgd", "adam") else 500
    for learner in (narrow_learner, wide_learner):
        _learn(learner, steps)
    assert abs(wide.value[0] - 1) > 0.04
    assert np.array_equal(narrow.value, wide.value.astype(np.float16))


def test_updates_of_rows_add_up_with_and_without_a_kernel() -> None:
    for size in (2, 40_000):
        (narrow, narrow_learner), (wide, wide_learner) = _pair(RULES["sgd"], size, 3)
        for parameter, learner in ((narrow, narrow_learner), (wide, wide_learner)):
            for _ in range(300):
                gradient = RowSparse((size, 3), parameter.dtype)
                gradient.set(np.array([1]), np.ones((1, 3), parameter.dtype))
                learner.update_arrays([gradient], 1)
        assert wide.value[1, 0] < 0.98
        assert np.array_equal(narrow.value, wide.value.astype(np.float16))


def test_an_assigned_value_is_followed_where_it_is_another_one() -> None:
    (parameter, learner), _ = _pair(MOMENTUM, 2)
    _learn(learner, 3)
    before = learner.values()[0]
    assert before[0] != 1
    assert parameter.value[0] != before[0]
    parameter.value = np.array([5, parameter.value[1]], np.float16)
    assert np.array_equal(learner.values()[0], [5, before[1]])
    _learn(learner, 1000)
    assert 4.75 < parameter.value[0] < 4.95


def test_a_value_that_a_graph_assigns_is_followed() -> None:
    (parameter, learner), _ = _pair(MOMENTUM, 2)
    _learn(learner, 100)
    C.assign(parameter, C.constant([3, 4], dtype=np.float16)).eval()
    _learn(learner, 1)
    assert np.allclose(learner.values()[0], [3, 4], atol=1e-3)
    fractions = learner.values()[0]
    _learn(learner, 100)
    assert (learner.values()[0] < fractions - 0.009).all()


def test_forgotten_gradients_leave_the_master_as_it_is() -> None:
    (_, learner), _ = _pair(MOMENTUM, 2)
    _learn(learner, 10)
    before = learner.values()[0]
    learner.reset_smoothed_gradients()
    assert np.array_equal(learner.values()[0], before)


@pytest.mark.parametrize("value_is_first", [True, False])
def test_training_goes_on_from_a_checkpoint_to_the_bit(value_is_first: bool) -> None:
    (parameter, learner), (other, other_learner) = (_pair(MOMENTUM, 2)[0] for _ in range(2))
    _learn(learner, 777)
    restore = [lambda: setattr(other, "value", parameter.value), lambda: other_learner.restore_from_checkpoint(learner.create_checkpoint())]
    for act in restore if value_is_first else reversed(restore):
        act()
    for one in (learner, other_learner):
        _learn(one, 777)
    assert np.array_equal(learner.values()[0], other_learner.values()[0])


def test_a_pickled_learner_has_its_master() -> None:
    (_, learner), _ = _pair(MOMENTUM, 2)
    _learn(learner, 777)
    copied = pickle.loads(pickle.dumps(learner))
    for one in (learner, copied):
        _learn(one, 777)
    assert np.array_equal(copied.values()[0], learner.values()[0])


def test_an_older_checkpoint_without_masters_begins_with_the_parameters() -> None:
    (parameter, learner), _ = _pair(MOMENTUM, 2)
    _learn(learner, 10)
    state = learner.create_checkpoint()
    del state["masters"]
    learner.restore_from_checkpoint(state)
    assert np.array_equal(learner.values()[0], parameter.value.astype(np.float32))


def test_a_learner_of_float32_parameters_keeps_no_masters() -> None:
    _, (_, learner) = _pair(MOMENTUM, 2)
    _learn(learner, 1)
    assert "masters" not in learner.create_checkpoint()


@pytest.mark.parametrize("masters", [[], [np.zeros(3, np.float32)], [np.zeros(2, int)], ["x"], 5])
def test_masters_of_something_else_are_refused(masters: Any) -> None:
    (_, learner), _ = _pair(MOMENTUM, 2)
    _learn(learner, 1)
    with pytest.raises(RuntimeError, match="master"):
        learner.check_checkpoint({**learner.create_checkpoint(), "masters": masters})


def test_noise_is_added_to_the_master() -> None:
    with isolated():
        C.cntk_py.set_fixed_random_seed(1)
        make: Make = lambda p: C.sgd(p, 0, gaussian_noise_injection_std_dev=1e-5, minibatch_size=C.learners.IGNORE)  # noqa: E731
        (narrow, narrow_learner), (wide, wide_learner) = _pair(make, 4)
        for learner in (narrow_learner, wide_learner):
            _learn(learner, 5)
    assert np.array_equal(narrow_learner.values()[0], wide.value)
    assert np.array_equal(narrow.value, wide.value.astype(np.float16))
