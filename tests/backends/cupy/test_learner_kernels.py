"""Learners' steps as CUDA texts: the same numbers as the learners' own steps, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from learner_rules import RULES
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy import kernels
from cntk.core.extension.identity import identity_of
from cntk.core.types.sparse import RowSparse
from cntk.learners import IGNORE

pytestmark = pytest.mark.usefixtures("host_gpu")

all_rules = pytest.mark.parametrize("rule", RULES)

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "clipped, l2": {"gradient_clipping_threshold_per_sample": 0.2, "l2_regularization_weight": 0.1},
    "mean": {"minibatch_size": IGNORE},
}
SHAPES = ((100, 70), (3,), (), (4096,), (9001,))


def gradient(random: Any, shape: Any, dtype: Any, step: int) -> Any:
    made = np.array(random.normal(size=shape)).astype(dtype)
    made.flat[: made.size // 8] = (0.0, -0.0)[step % 2]
    return made


def sparse_gradient(random: Any, shape: Any, dtype: Any, index: Any = np.int64) -> RowSparse:
    made = RowSparse(shape, dtype)
    rows = random.permutation(shape[0])[: shape[0] // 3]
    made.set(array(rows, index), array(random.normal(size=(len(rows), *shape[1:])), dtype))
    return made


def train(make: Callable[..., Any], dtype: Any, options: dict[str, Any], sparse: bool = False, steps: int = 4) -> list[Any]:
    """Parameters and smoothed gradients after some steps."""
    random = np.random.default_rng(0)
    parameters = [C.parameter(init=np.array(random.normal(size=shape)).astype(dtype)) for shape in SHAPES]
    learner = make(parameters, **options)
    for step in range(steps):
        gradients: dict[Any, Any] = {p: gradient(random, p.shape, dtype, step) for p in parameters}
        if sparse:
            gradients[parameters[0]] = sparse_gradient(random, parameters[0].shape, dtype, (np.int64, np.int32)[step % 2])
        learner.update(gradients, 2 * step + 1)
    states = learner.create_checkpoint()["smoothed_gradients"]
    return [*(p.value for p in parameters), *(one for state in states for one in state.values())]


def own_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostBackend, "fewest_for_learners", 2**62)


def assert_same_bits(given: list[Any], expected: list[Any]) -> None:
    for left, right in zip(given, expected, strict=True):
        assert left.tobytes() == right.tobytes()


@all_rules
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_kernels_compute_what_steps_compute(rule: str, dtype: Any, on_host: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = {options: train(RULES[rule], dtype, OPTIONS[options]) for options in OPTIONS}
    assert on_host
    own_steps(monkeypatch)
    for options, values in found.items():
        expected = train(RULES[rule], dtype, OPTIONS[options])
        if dtype == np.float64 and rule in ("adagrad", "rmsprop"):  # doubles are added up in another order for the mean
            for one, other in zip(values, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        else:
            assert_same_bits(values, expected)


@all_rules
@pytest.mark.parametrize("options", ["plain", "clipped, l2"])
def test_row_sparse_gradients(rule: str, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = train(RULES[rule], np.float32, OPTIONS[options], sparse=True)
    own_steps(monkeypatch)
    assert_same_bits(found, train(RULES[rule], np.float32, OPTIONS[options], sparse=True))


@all_rules
def test_gradients_that_overflow(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def trained() -> Any:
        w = C.parameter(init=np.ones(100, np.float32))
        learner = RULES[rule]([w])
        for value in (1e25, 1, np.inf, np.nan):
            learner.update({w: np.full(100, value, np.float32)}, 1)
        return w.value

    found = trained()
    own_steps(monkeypatch)
    np.testing.assert_array_equal(found, trained())


def test_every_learner_that_has_a_step_has_a_kernel() -> None:
    learners = {identity_of(type(rule([C.parameter(1)]))) for rule in RULES.values()}
    assert learners == {f"cntk.learners.{name}" for name in kernels.LEARNERS}


def test_one_launch_for_all_parameters_that_have_elements() -> None:
    w = [C.parameter(init=np.ones(size, np.float32)) for size in (3, 0, 5000, 7)]
    learner = RULES["adam"](w)
    learner._kernel._known.clear()
    gradients = [array(np.ones(p.shape), np.float32) for p in w]
    for _ in range(2):
        learner.update_arrays(gradients, 1)
    (bound,) = learner._kernel._known.values()
    assert len(bound._calls) == 1
    assert len(bound._host) == 3
