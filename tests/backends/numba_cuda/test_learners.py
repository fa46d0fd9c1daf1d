"""Kernels of learners under Numba's simulator: the same numbers, to the bit, as the learners' own steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learner_rules import RULES
from simulated import on_the_simulator

import cntk as C
from cntk.core.common.sums import BLOCK
from cntk.core.common.thresholds import overridden
from cntk.core.extension import plugins
from cntk.core.extension.identity import identity_of
from cntk.core.types.sparse import RowSparse
from cntk.learners import IGNORE

pytestmark = on_the_simulator

all_rules = pytest.mark.parametrize("rule", RULES)

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "clipped, l2, mean": {
        "gradient_clipping_threshold_per_sample": 0.2,
        "l2_regularization_weight": 0.1,
        "minibatch_size": IGNORE,
    },
}
SHAPES = ((7, 5), (3,), ())
NEVER = 2**62


def gradients_of(random: Any, parameters: Any, dtype: Any, sparse: bool) -> dict[Any, Any]:
    gradients: dict[Any, Any] = {p: np.array(random.normal(size=p.shape)).astype(dtype) for p in parameters}
    gradients[parameters[0]].flat[:3] = 0.0, -0.0, np.inf
    if sparse:
        shape, rows = parameters[0].shape, np.array([1, 4])
        gradients[parameters[0]] = RowSparse(shape, dtype)
        gradients[parameters[0]].set(rows, random.normal(size=(2, *shape[1:])).astype(dtype))
    return gradients


def train(rule: str, dtype: Any, options: dict[str, Any], sparse: bool = False) -> list[Any]:
    """Parameters and smoothed gradients after some steps."""
    random = np.random.default_rng(0)
    parameters = [C.parameter(init=np.array(random.normal(size=shape)).astype(dtype)) for shape in SHAPES]
    learner = RULES[rule](parameters, **options)
    for step in range(3):
        learner.update(gradients_of(random, parameters, dtype, sparse), 2 * step + 1)
    states = learner.create_checkpoint()["smoothed_gradients"]
    return [*(p.value for p in parameters), *(array for state in states for array in state.values())]


def assert_kernels_compute_what_steps_compute(*arguments: Any) -> None:
    with overridden(learner_compiled=1):
        given = train(*arguments)
    with overridden(learner_compiled=NEVER):
        expected = train(*arguments)
    for left, right in zip(given, expected, strict=True):
        assert left.tobytes() == right.tobytes()


@all_rules
@pytest.mark.parametrize("options", OPTIONS)
def test_kernels_compute_what_steps_compute(rule: str, options: str) -> None:
    assert_kernels_compute_what_steps_compute(rule, np.float32, OPTIONS[options])


@pytest.mark.parametrize("rule", ["adam", "rmsprop"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_types(rule: str, dtype: Any) -> None:
    assert_kernels_compute_what_steps_compute(rule, dtype, OPTIONS["plain"])


@all_rules
def test_row_sparse_gradients(rule: str) -> None:
    assert_kernels_compute_what_steps_compute(rule, np.float32, OPTIONS["plain"], True)


@pytest.mark.parametrize("rule", ["adagrad", "rmsprop"])
def test_more_than_a_block_of_multipliers(rule: str) -> None:
    def trained(limit: int) -> Any:
        with overridden(learner_compiled=limit):
            w = C.parameter(init=np.linspace(-1, 1, BLOCK + 5, dtype=np.float32))
            RULES[rule]([w]).update({w: np.linspace(2, 1, BLOCK + 5, dtype=np.float32)}, 1)
            return w.value

    np.testing.assert_array_equal(trained(1), trained(NEVER))


def test_a_gradient_that_is_no_block_of_memory() -> None:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    w = C.parameter(init=np.zeros((6, 4), np.float32))
    with overridden(learner_compiled=1):
        learner = C.sgd([w], C.learning_parameter_schedule(1.0))
    g, total = whole.T, np.zeros((6, 4), np.float32)
    for _ in range(2):
        whole += 1
        learner.update_arrays([g], 1)
        total += g
    np.testing.assert_array_equal(w.value, -total)


@all_rules
def test_gradients_that_overflow(rule: str) -> None:
    def trained(limit: int) -> Any:
        with overridden(learner_compiled=limit):
            w = C.parameter(init=np.ones(5, np.float32))
            learner = RULES[rule]([w])
        for value in (1e25, 1, np.inf, np.nan):
            learner.update({w: np.full(5, value, np.float32)}, 1)
        return w.value

    np.testing.assert_array_equal(trained(1), trained(NEVER))


def test_a_step_size_that_has_overflowed_moves_nothing() -> None:
    def trained(limit: int) -> Any:
        with overridden(learner_compiled=limit):
            w = C.parameter(init=np.ones(3, np.float32))
            learner = C.rmsprop([w], 0.3, 0.9, 1e38, 0.7, 3e38, 0.01)
        for value in (1, 1, np.inf):
            learner.update({w: np.array([value, 1e-30, 1], np.float32)}, 1)
        return w.value

    np.testing.assert_array_equal(trained(1), trained(NEVER))


def test_launches_are_bound_once() -> None:
    w, g = C.parameter(init=np.zeros(5, np.float32)), np.ones(5, np.float32)
    with overridden(learner_compiled=1):
        learner = C.momentum_sgd([w], C.learning_parameter_schedule(1.0), 0.5)
    learner.update_arrays([g], 1)
    bound = learner._parameter_states[0]._whole.bound
    learner.update_arrays([g], 1)
    assert learner._parameter_states[0]._whole.bound is bound
    learner.update_arrays([g.copy()], 1)
    assert learner._parameter_states[0]._whole.bound is not bound


def test_every_learner_with_loops_for_the_cpu_has_kernels() -> None:
    def of(backend: str) -> set[Any]:
        return {cls for cls, name in plugins.kernels if name == backend and "cntk.learners." in str(cls)}

    assert of("numba-cuda") == of("numpy")
    assert {identity_of(type(rule([C.parameter(1)]))) for rule in RULES.values()} == of("numpy")
