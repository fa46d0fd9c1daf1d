"""Learners: each update rule against its formula in float64, the two modes, options, sparse gradients, checkpoints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.types.sparse import RowSparse
from cntk.learners import IGNORE, UnitType, cntk_py_factories
from cntk.learners.options import LearnerOptions, Options
from cntk.testing import assert_close

SIZES = (3, 5, 7, 2, 4, 4, 11, 1)
SHAPE = (3, 2)
GRADIENTS = [np.random.default_rng(seed).normal(size=SHAPE) for seed in range(len(SIZES))]
START = np.random.default_rng(99).normal(size=SHAPE)

Array = Any
Formula = Callable[[dict[str, Any], Array, Array, float, int], Array]


def mean_or_one(values: Array, averaged: bool) -> float:
    return values.mean() if averaged else 1.0


def sgd(s: dict[str, Any], w: Array, g: Array, a: float, m: int) -> Array:
    return w - a * g


def momentum_sgd(s: dict[str, Any], w: Array, g: Array, a: float, m: int, unit_gain: bool = True) -> Array:
    s["v"] = 0.9 * s.get("v", 0) + (0.1 if unit_gain else 1) * a * g
    return w - s["v"]


def nesterov(s: dict[str, Any], w: Array, g: Array, a: float, m: int) -> Array:
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * a * g
    return w - (0.9 * s["v"] + 0.1 * a * g)


def adam(s: dict[str, Any], w: Array, g: Array, a: float, m: int) -> Array:
    s["n"] = s.get("n", 0) + 1
    s["a"] = 0.99 * s.get("a", 0) + 0.01 * g**2
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    return w - a * np.sqrt(1 - 0.99 ** s["n"]) / (1 - 0.9 ** s["n"]) * s["m"] / (np.sqrt(s["a"]) + 1e-8)


def adamax(s: dict[str, Any], w: Array, g: Array, a: float, m: int) -> Array:
    s["n"] = s.get("n", 0) + 1
    s["a"] = np.maximum(0.99 * s.get("a", 0), np.abs(g))
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    return w - a / (1 - 0.9 ** s["n"]) * s["m"] / (s["a"] + 1e-8)


def fsadagrad(s: dict[str, Any], w: Array, g: Array, a: float, m: int) -> Array:
    s["n"] = 0.99 * s.get("n", 0) + 0.01 * m
    s["a"] = 0.99 * s.get("a", 0) + 0.01 * g**2
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * np.minimum(np.sqrt(s["n"] / s["a"]), 10) * g
    return w - a * s["v"]


def adagrad(s: dict[str, Any], w: Array, g: Array, a: float, m: int, averaged: bool = True) -> Array:
    s["a"] = s.get("a", 0) + g**2
    scale = 1 / np.sqrt(s["a"] + 1e-16)
    return w - a / mean_or_one(scale, averaged) * g * scale


def adadelta(s: dict[str, Any], w: Array, g: Array, a: float, m: int) -> Array:
    s["a"] = 0.9 * s.get("a", 0) + 0.1 * g**2
    step = np.sqrt(s.get("x", 0) + 1e-3) / np.sqrt(s["a"] + 1e-3) * g
    s["x"] = 0.9 * s.get("x", 0) + 0.1 * step**2
    return w - a * step


def rmsprop(s: dict[str, Any], w: Array, g: Array, a: float, m: int, averaged: bool = True) -> Array:
    s["a"] = 0.9 * s.get("a", g**2) + 0.1 * g**2
    size, agree = s.get("t", np.full(SHAPE, 0.02)), s.get("sign", 0) * np.sign(g) > 0
    s["t"] = np.where(agree, np.minimum(size * 1.2, 0.03), np.maximum(size * 0.7, 0.01))
    s["sign"] = np.sign(g)
    scale = s["t"] / np.sqrt(s["a"] + 1e-6)
    return w - a / mean_or_one(scale, averaged) * g * scale


Maker = Callable[..., Any]
RULES: dict[str, tuple[Maker, Formula]] = {
    "sgd": (lambda p, lr, **k: C.sgd(p, lr, **k), sgd),
    "momentum_sgd": (lambda p, lr, **k: C.momentum_sgd(p, lr, C.momentum_schedule(0.9, minibatch_size=0), **k), momentum_sgd),
    "momentum_sgd without unit gain": (
        lambda p, lr, **k: C.momentum_sgd(p, lr, C.momentum_schedule(0.9, minibatch_size=0), unit_gain=False, **k),
        lambda *args: momentum_sgd(*args, unit_gain=False),
    ),
    "nesterov": (lambda p, lr, **k: C.nesterov(p, lr, C.momentum_schedule(0.9, minibatch_size=0), **k), nesterov),
    "adam": (lambda p, lr, **k: C.adam(p, lr, 0.9, variance_momentum=0.99, **k), adam),
    "adamax": (lambda p, lr, **k: C.adam(p, lr, 0.9, variance_momentum=0.99, adamax=True, **k), adamax),
    "fsadagrad": (lambda p, lr, **k: C.fsadagrad(p, lr, 0.9, variance_momentum=0.99, **k), fsadagrad),
    "adagrad": (lambda p, lr, **k: C.adagrad(p, lr, **k), adagrad),
    "adagrad without average": (lambda p, lr, **k: C.adagrad(p, lr, False, **k), lambda *args: adagrad(*args, averaged=False)),
    "adadelta": (lambda p, lr, **k: C.adadelta(p, lr, 0.9, 1e-3, **k), adadelta),
    "rmsprop": (lambda p, lr, **k: C.rmsprop(p, lr, 0.9, 1.2, 0.7, 0.03, 0.01, **k), rmsprop),
    "rmsprop without average": (
        lambda p, lr, **k: C.rmsprop(p, lr, 0.9, 1.2, 0.7, 0.03, 0.01, False, **k),
        lambda *args: rmsprop(*args, averaged=False),
    ),
}
all_rules = pytest.mark.parametrize("rule", RULES)


def parameter(init: Any = START, dtype: Any = np.float64) -> Any:
    return C.Parameter(init=init, dtype=dtype)


def train(learner: Any, gradients: Any = GRADIENTS, sizes: Any = SIZES) -> Array:
    """Update the learner's one parameter with every gradient; return its last value."""
    (w,) = learner.parameters
    for gradient, size in zip(gradients, sizes, strict=True):
        assert learner.update({w: gradient}, size)
    return w.value


def formula(rule: str, rate: Callable[[int], float], mean: bool) -> Array:
    state: dict[str, Any] = {}
    w = START
    for gradient, size in zip(GRADIENTS, SIZES, strict=True):
        w = RULES[rule][1](state, w, gradient / size if mean else gradient, rate(size), size)
    return w


def test_every_registered_built_in_learner_is_tested() -> None:
    built_in = {name for name in plugins.learners if plugins.learners.owner(name).startswith("opencntk")}
    assert built_in - {"universal"} == {rule.split()[0] for rule in RULES} - {"adamax"}
    assert all(getattr(C.learners, name) is getattr(C, name) for name in built_in)


@all_rules
@pytest.mark.parametrize(
    ("lr", "options", "rate", "mean"),
    [
        (lambda: 0.3, {}, lambda m: 0.3 / m, False),
        (lambda: C.learning_parameter_schedule(0.3, minibatch_size=4), {}, lambda m: 0.3 / 4, False),
        (lambda: C.learning_rate_schedule(0.3, UnitType.sample), {}, lambda m: 0.3, False),
        (lambda: 0.3, {"minibatch_size": IGNORE}, lambda m: 0.3, True),
        (lambda: C.learning_parameter_schedule(0.3, minibatch_size=4), {"minibatch_size": IGNORE}, lambda m: 0.3 * m / 4, True),
        (lambda: C.learning_rate_schedule(0.3, UnitType.sample), {"use_mean_gradient": True}, lambda m: 0.3, True),
    ],
    ids=["sum", "sum, per 4 samples", "sum, per sample", "mean", "mean, per 4 samples", "legacy mean"],
)
def test_formulas(rule: str, lr: Callable[[], Any], options: dict[str, Any], rate: Callable[[int], float], mean: bool) -> None:
    learner = RULES[rule][0]([parameter()], lr(), **options)
    assert_close(train(learner), formula(rule, rate, mean))
    assert learner.is_compatible_mode() == mean


@all_rules
@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32])
def test_parameters_keep_their_type(rule: str, dtype: Any) -> None:
    learner = RULES[rule][0]([parameter(dtype=dtype)], 0.3)
    value = train(learner)
    assert value.dtype == dtype
    assert_close(value, formula(rule, lambda m: 0.3 / m, False))


@all_rules
def test_several_parameters_of_all_ranks(rule: str) -> None:
    weights = [parameter(1.0), parameter(np.ones(2)), parameter(np.ones((2, 3, 4)))]
    learner = RULES[rule][0](weights, 0.3)
    learner.update({w: np.ones(w.shape) for w in weights}, 2)
    assert len({w.value.flat[0] for w in weights}) == 1
    assert weights[0].value < 1


@pytest.mark.parametrize("mean", [False, True])
def test_momentum_of_other_numbers_of_samples(mean: bool) -> None:
    options = {"minibatch_size": IGNORE} if mean else {}
    learner = C.momentum_sgd([parameter()], 0.3, C.momentum_as_time_constant_schedule(20), **options)
    velocity, w = 0.0, START
    for gradient, size in zip(GRADIENTS, SIZES, strict=True):
        momentum = np.exp(-size / 20)
        velocity = momentum * velocity + (1 - momentum) * 0.3 / size * gradient
        w = w - velocity
    assert_close(train(learner), w)


def test_rmsprop_stands_still_when_a_step_size_has_overflowed() -> None:
    learner = C.rmsprop([parameter(np.zeros(2), np.float32)], 0.1, 0.1, 3.0, 0.1, np.inf, 1e-8)
    before = train(learner, [np.array([1e-3, 2e-3 * (-1) ** i]) for i in range(100)], [1] * 100)
    after = train(learner, [np.array([1e-3, 2e-3 * (-1) ** i]) for i in range(100)], [1] * 100)
    assert_close(after, [-0.01611823, -0.00014698])
    np.testing.assert_array_equal(after, before)


# Options -----------------------------------------------------------------------------------------------------------------------


def soft_threshold(w: Array, t: float) -> Array:
    return np.sign(w) * np.maximum(np.abs(w) - t, 0)


@pytest.mark.parametrize("mean", [False, True])
def test_l1(mean: bool) -> None:
    options = {"minibatch_size": IGNORE} if mean else {}
    learner = C.sgd([parameter()], 0.3, l1_regularization_weight=0.2, **options)
    w = START
    for gradient, size in zip(GRADIENTS, SIZES, strict=True):
        w = soft_threshold(w - 0.3 / size * gradient, 0.3 * 0.2)
    assert_close(train(learner), w)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("truncation", [False, True])
def test_clipping_comes_before_l2(mean: bool, truncation: bool) -> None:
    learner = C.sgd(
        [parameter()],
        0.3,
        l2_regularization_weight=0.1,
        gradient_clipping_threshold_per_sample=0.2,
        gradient_clipping_with_truncation=truncation,
        minibatch_size=IGNORE if mean else None,
    )
    w = START
    for gradient, size in zip(GRADIENTS, SIZES, strict=True):
        g = gradient / size
        g = np.clip(g, -0.2, 0.2) if truncation else g * min(1, 0.2 / np.linalg.norm(g))
        w = w - 0.3 * (g + 0.1 * w)
    assert_close(train(learner), w)


def test_clipping_a_gradient_of_zeros_by_norm() -> None:
    options = {"gradient_clipping_threshold_per_sample": 0.1, "gradient_clipping_with_truncation": False}
    np.testing.assert_array_equal(train(C.sgd([parameter()], 0.3, **options), [np.zeros(SHAPE)], [1]), START)


@pytest.mark.parametrize("options", [{}, {"minibatch_size": IGNORE}])
def test_noise_has_the_deviation_that_is_asked_for(options: dict[str, Any]) -> None:
    learner = C.sgd([parameter(np.zeros((100, 100)))], 0.01, gaussian_noise_injection_std_dev=0.3, **options)
    first = train(learner, [np.zeros((100, 100))], [8])
    assert abs(first.mean()) < 0.01
    assert first.std() == pytest.approx(0.3, abs=0.01)
    assert train(learner, [np.zeros((100, 100))], [8]).std() == pytest.approx(0.3 * np.sqrt(2), abs=0.01)


def test_learners_draw_different_noise() -> None:
    learners = [C.sgd([parameter()], 0.01, gaussian_noise_injection_std_dev=0.3) for _ in range(2)]
    assert not np.allclose(*(train(learner) for learner in learners))


def test_minibatch_size_fills_in_where_schedules_do_not_say() -> None:
    learner = C.sgd([parameter()], C.learning_parameter_schedule(0.3), minibatch_size=8)
    assert (learner.minibatch_size, learner._learning_rate_schedule.minibatch_size) == (8, 8)
    learner = C.sgd([parameter()], C.learning_parameter_schedule(0.3, minibatch_size=2), minibatch_size=8)
    assert (learner.minibatch_size, learner._learning_rate_schedule.minibatch_size) == (8, 2)


# Schedules in use --------------------------------------------------------------------------------------------------------------


def test_schedules_count_samples() -> None:
    learner = C.sgd([parameter(0.0)], C.learning_parameter_schedule([0.5, 0.25], minibatch_size=1, epoch_size=4))
    (w,) = learner.parameters
    seen = []
    for _ in range(3):
        learner.update({w: 1.0}, 2)
        seen.append((float(w.value), learner.learning_rate()))
    assert seen == [(-0.5, 0.5), (-1.0, 0.25), (-1.25, 0.25)]


def test_schedules_count_sweeps() -> None:
    learner = C.sgd([parameter()], C.learning_parameter_schedule([0.5, 0.25]))
    (w,) = learner.parameters
    learner.update({w: START}, 100)
    assert learner.learning_rate() == 0.5
    learner.update({w: START}, 100, is_sweep_end=True)
    assert learner.learning_rate() == 0.25
    counts = learner.total_number_of_samples_seen(), learner.total_number_of_minibatches_seen(), learner.total_number_of_sweeps_seen()
    assert counts == (200, 2, 1)


def test_a_reset_learning_rate_starts_anew_and_leaves_the_rest_alone() -> None:
    learner = C.momentum_sgd([parameter(0.0)], [1.0, 0.5], C.momentum_schedule([0.5, 0.25], epoch_size=4), unit_gain=False, epoch_size=4)
    (w,) = learner.parameters
    values = []
    for update in range(8):
        if update == 5:
            learner.reset_learning_rate(C.learning_parameter_schedule([0.25, 0.125], epoch_size=4))
        learner.update({w: 1.0}, 2)
        values.append(float(w.value))
    assert values[:5] == [-0.5, -1.25, -1.6875, -2.046875, -2.38671875]
    steps = np.diff(values)
    np.testing.assert_allclose(steps[4:], [0.25 * steps[3] - 0.125, 0.25 * steps[4] - 0.125, 0.25 * steps[5] - 0.0625])
    assert learner.total_number_of_samples_seen() == 16


def test_announcements() -> None:
    lr = C.learning_parameter_schedule_per_sample([0.3, 0.2, 0.1, 0], epoch_size=1)
    learner = C.momentum_sgd([parameter()], lr, C.momentum_schedule([0.6, 0.7, 0.8], epoch_size=1))
    told = []
    for _ in range(10):
        train(learner, GRADIENTS[:1], [1])
        told.extend(learner.announcements.items())
        learner.announcements.clear()
    rates = [("Learning rate per 1 samples", value) for value in (0.3, 0.2, 0.1, 0.0)]
    momenta = [("Momentum per minibatch", value) for value in (0.6, 0.7, 0.8)]
    assert told == [rates[0], momenta[0], rates[1], momenta[1], rates[2], momenta[2], rates[3]]


def test_a_reset_learning_rate_refers_to_as_many_samples_as_the_one_before() -> None:
    per_sample, per_16 = C.learning_parameter_schedule_per_sample(1), C.learning_parameter_schedule(1, minibatch_size=16)
    for lr, divisor in ((per_sample, 1), (per_16, 16), (1.0, 4)):
        for schedule in (C.learning_parameter_schedule(3), C.learning_parameter_schedule(3, minibatch_size=8)):
            learner = C.sgd([parameter(0.0)], lr)
            learner.reset_learning_rate(schedule)
            assert train(learner, [1.0], [4]) == -3 / divisor


# Sparse gradients --------------------------------------------------------------------------------------------------------------


def sparse_gradients() -> list[RowSparse]:
    gradients = []
    for gradient, rows in zip(GRADIENTS, ([0, 1], [1], [2], [0, 1, 2], [2], [], [0, 2], [1]), strict=True):
        sparse = RowSparse(SHAPE, np.float64)
        sparse.set(np.array(rows, dtype=np.int64), gradient[rows])
        gradients.append(sparse)
    return gradients


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.split()[0] not in ("momentum_sgd", "nesterov") and rule != "adagrad"])
@pytest.mark.parametrize("options", [{}, {"minibatch_size": IGNORE}, {"l1_regularization_weight": 0.1}, {"l2_regularization_weight": 0.1}])
def test_sparse_gradients_are_as_dense_ones(rule: str, options: dict[str, Any]) -> None:
    sparse = train(RULES[rule][0]([parameter()], 0.3, **options), sparse_gradients())
    dense = train(RULES[rule][0]([parameter()], 0.3, **options), [gradient.to_dense(np) for gradient in sparse_gradients()])
    assert_close(sparse, dense)


@pytest.mark.parametrize("truncation", [False, True])
def test_sparse_gradients_are_clipped_as_dense_ones(truncation: bool) -> None:
    options = {"gradient_clipping_threshold_per_sample": 0.2, "gradient_clipping_with_truncation": truncation}
    sparse = train(C.sgd([parameter()], 0.3, **options), sparse_gradients())
    dense = train(C.sgd([parameter()], 0.3, **options), [gradient.to_dense(np) for gradient in sparse_gradients()])
    assert_close(sparse, dense)


@pytest.mark.parametrize("rule", ["momentum_sgd", "nesterov", "adagrad"])
def test_lazy_learners_touch_only_the_rows_present(rule: str) -> None:
    value = train(RULES[rule][0]([parameter()], C.learning_rate_schedule(0.1, UnitType.sample)), sparse_gradients())
    state: dict[int, dict[str, Any]] = {0: {}, 1: {}, 2: {}}
    w = START.copy()
    for gradient, size in zip(sparse_gradients(), SIZES, strict=True):
        if rule == "adagrad":
            for row, g in zip(gradient.rows, gradient.values, strict=True):
                state[row]["a"] = state[row].get("a", 0) + g**2
            scale = np.array([1 / np.sqrt(state[row]["a"] + 1e-16) for row in gradient.rows])
            if len(scale):
                w[gradient.rows] -= 0.1 / scale.mean() * gradient.values * scale
        else:
            for row, g in zip(gradient.rows, gradient.values, strict=True):
                w[row] = RULES[rule][1](state[row], w[row], g, 0.1, size)
    assert_close(value, w)


def test_the_rate_of_sparse_momentum_is_outside_the_velocity() -> None:
    learner = C.momentum_sgd([parameter(np.zeros((3, 1)))], C.learning_parameter_schedule([1.0, 0.5, 0.25], 1, epoch_size=1), 0.5)
    (w,) = learner.parameters
    values = []
    for rows, gradient, count in (([0], [1], 1), ([0], [0], 1), ([0], [0], 1), ([0], [1], 1), ([0, 1], [1, 1], 2), ([1], [0], 1)):
        sparse = RowSparse((3, 1), np.float64)
        sparse.set(np.array(rows), np.array(gradient, np.float64)[:, None])
        learner.update({w: sparse}, count)
        values.append(w.value[:2, 0].tolist())
    expected = [[-0.5, 0], [-0.625, 0], [-0.65625, 0], [-0.796875, 0], [-0.9921875, -0.125], [-0.9921875, -0.1875]]  # as CNTK 2.7 has them
    assert values == expected


# Life of a learner -------------------------------------------------------------------------------------------------------------


@all_rules
@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_resuming_is_as_never_having_stopped(rule: str, dtype: Any, sparse: bool) -> None:
    def make(lr: float) -> Any:
        options = {"gaussian_noise_injection_std_dev": 0.1, "l1_regularization_weight": 0.01}
        return RULES[rule][0]([parameter(dtype=dtype)], C.learning_parameter_schedule([lr, lr / 2], epoch_size=20), **options)

    gradients: Any = sparse_gradients() if sparse else GRADIENTS
    straight, stopped, resumed = make(0.3), make(0.3), make(0.1)
    stopped.restore_from_checkpoint(straight.create_checkpoint())
    train(stopped, gradients[:4], SIZES[:4])
    resumed.restore_from_checkpoint(plain(stopped.create_checkpoint()))
    resumed.parameters[0].value = stopped.parameters[0].value
    np.testing.assert_array_equal(train(resumed, gradients[4:], SIZES[4:]), train(straight, gradients))
    assert resumed.total_number_of_samples_seen() == sum(SIZES)
    assert resumed.learning_rate() == 0.15


def plain(value: Any) -> Any:
    """A copy of what files can hold: numbers, strings, lists, dictionaries with strings as keys and arrays; nothing else."""
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    assert type(value) in (bool, int, float, str, np.ndarray)
    return value.copy() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("key", ["type", "samples", "learning_rate_schedule", "counters", "smoothed_gradients"])
def test_checkpoints_in_which_something_is_missing_are_refused(key: str) -> None:
    learner = C.adam([parameter()], 0.1, 0.9)
    train(learner)
    before, broken = learner.create_checkpoint(), learner.create_checkpoint()
    del broken[key]
    with pytest.raises(RuntimeError, match=f"checkpoint of Adam lacks '{key}'"):
        learner.restore_from_checkpoint(broken)
    assert learner.total_number_of_samples_seen() == before["samples"]
    with pytest.raises(RuntimeError, match="expected a dictionary, got list"):
        learner.restore_from_checkpoint([])
    del before["smoothed_gradients"][0]["mean"]
    with pytest.raises(RuntimeError, match="lacks 'mean'"):
        learner.restore_from_checkpoint(before)


def test_checkpoints_of_other_learners_are_refused() -> None:
    checkpoint = C.sgd([parameter()], 0.1).create_checkpoint()
    with pytest.raises(RuntimeError, match="SGD"):
        C.adagrad([parameter()], 0.1).restore_from_checkpoint(checkpoint)
    with pytest.raises(RuntimeError, match="2"):
        C.sgd([parameter(), parameter()], 0.1).restore_from_checkpoint(checkpoint)
    with pytest.raises(RuntimeError, match="shape"):
        C.adagrad([parameter(np.ones(5))], 0.1).restore_from_checkpoint(C.adagrad([parameter()], 0.1).create_checkpoint())


@all_rules
def test_reset_smoothed_gradients(rule: str) -> None:
    learner = RULES[rule][0]([parameter()], 0.3)
    train(learner)
    learner.reset_smoothed_gradients()
    learner.parameters[0].value = START
    np.testing.assert_array_equal(train(learner), train(RULES[rule][0]([parameter()], 0.3)))
    assert learner.total_number_of_samples_seen() == 2 * sum(SIZES)


@all_rules
def test_gradients_of_users_are_left_alone(rule: str) -> None:
    gradient = GRADIENTS[0].copy()
    options = {"l2_regularization_weight": 0.1, "gradient_clipping_threshold_per_sample": 0.1, "minibatch_size": IGNORE}
    train(RULES[rule][0]([parameter()], 0.3, **options), [gradient], [4])
    np.testing.assert_array_equal(gradient, GRADIENTS[0])


def test_leading_axes_of_one_and_other_types_are_accepted() -> None:
    w = parameter(np.ones(1), np.float32)
    C.sgd([w], 0.5).update({w: np.array([[2.0]])}, 2)
    assert w.value.tolist() == [0.5]


def test_minibatch_size_can_be_set() -> None:
    learner = C.sgd([parameter()], 0.1)
    assert (learner.minibatch_size, learner.is_compatible_mode()) == (IGNORE, False)
    learner.minibatch_size = IGNORE
    assert learner.is_compatible_mode()


# What is refused ---------------------------------------------------------------------------------------------------------------


def test_updates_that_are_refused() -> None:
    w = parameter()
    learner = C.sgd([w], 0.1)
    for count in (0, -1):
        with pytest.raises(ValueError, match="at least one sample"):
            learner.update({w: START}, count)
    with pytest.raises(TypeError):
        learner.update({w: START}, 2.5)
    with pytest.raises(ValueError, match="missing"):
        learner.update({}, 1)
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(3, 2\)"):
        learner.update({w: START.T}, 1)
    np.testing.assert_array_equal(w.value, START)
    assert learner.total_number_of_samples_seen() == 0


def test_learners_that_are_refused() -> None:
    w = parameter()
    with pytest.raises(ValueError, match="at least one"):
        C.sgd([], 0.1)
    with pytest.raises(ValueError, match="distinct"):
        C.sgd([w, w], 0.1)
    with pytest.raises(TypeError, match="list"):
        C.sgd(w, 0.1)
    with pytest.raises(ValueError, match="not known"):
        C.sgd([C.Parameter((-1, 2))], 0.1)
    with pytest.raises(TypeError, match="momentum"):
        C.momentum_sgd([w], 0.1)
    for lr in (np.float32(0.1), "0.1", None):
        with pytest.raises(ValueError, match="lr"):
            C.sgd([w], lr)
    with pytest.raises(ValueError, match="momentum"):
        C.momentum_sgd([w], 0.1, None)
    with pytest.raises(ValueError, match="schedule"):
        C.sgd([w], 0.1).reset_learning_rate(0.1)


@pytest.mark.parametrize(
    "option",
    ["l1_regularization_weight", "l2_regularization_weight", "gaussian_noise_injection_std_dev", "gradient_clipping_threshold_per_sample"],
)
def test_options_that_are_refused(option: str) -> None:
    with pytest.raises(ValueError, match=option):
        C.sgd([parameter()], 0.1, **{option: -1.0})


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ((1, 1.2, 0.5, 9, 1), "gamma"),
        ((0.9, 1, 0.5, 9, 1), "inc"),
        ((0.9, 1.2, 1, 9, 1), "dec"),
        ((0.9, 1.2, 0.5, 1, 1), "max"),
        ((0.9, 1.2, 0.5, 9, 0), "min"),
    ],
)
def test_numbers_of_rmsprop_that_are_refused(numbers: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"rmsprop: {name} must be"):
        C.rmsprop([parameter()], 0.1, *numbers)


def test_epsilon_is_not_negative() -> None:
    with pytest.raises(ValueError, match="epsilon"):
        C.adam([parameter()], 0.1, 0.9, epsilon=-1.0)


@pytest.mark.parametrize("rule", ["adagrad", "rmsprop", "adam"])
def test_squares_that_overflow_do_not_stop_training(rule: str) -> None:
    learner = RULES[rule][0]([parameter(1.0, np.float32)], 0.1)
    for _ in range(2):
        learner.update({learner.parameters[0]: np.float32(1e25)}, 1)
    assert learner.total_number_of_samples_seen() == 2


# CNTK's own how-to on learners -------------------------------------------------------------------------------------------------


def inspect_update(make: Callable[[Any], Any], minibatch_size: int, count: int = 1) -> str:
    """Update parameters of zeros with gradients of ones; return the first values, with the four digits that the how-to prints."""
    w = C.Parameter((4, 2))
    learner = make([w])
    for _ in range(count):
        learner.update({w: np.ones((4, 2), dtype=np.float32)}, minibatch_size)
    with np.printoptions(precision=4):
        return str(w.value[0])


def test_units_of_the_how_to() -> None:
    assert inspect_update(lambda p: C.sgd(p, C.learning_rate_schedule(0.5, UnitType.sample)), 2) == "[-0.5 -0.5]"
    assert inspect_update(lambda p: C.sgd(p, C.learning_rate_schedule(0.5, UnitType.minibatch)), 2) == "[-0.25 -0.25]"


def test_momenta_of_the_how_to() -> None:
    momentum = np.exp(-10 / 300).item()
    lr = C.learning_rate_schedule(1, UnitType.minibatch)
    larger = C.learning_rate_schedule(1 / (1 - momentum), UnitType.minibatch)
    schedule, constant = C.momentum_schedule(momentum), C.momentum_as_time_constant_schedule(300)
    assert inspect_update(lambda p: C.momentum_sgd(p, lr, schedule, unit_gain=False), 10, 5) == "[-1.436 -1.436]"
    assert inspect_update(lambda p: C.momentum_sgd(p, lr, constant, unit_gain=False), 10, 5) == "[-1.436 -1.436]"
    assert inspect_update(lambda p: C.momentum_sgd(p, larger, schedule, unit_gain=True), 10, 5) == "[-1.436 -1.436]"


# CNTK prints [-9.9203 -9.9203] for adam and [-8.8573 -8.8573] for fsadagrad, as it takes 1 - variance_momentum in float32.
HOW_TO: dict[str, tuple[Callable[[Any, Any, Any], Any], str]] = {
    "adadelta": (lambda p, lr, t: C.adadelta(p, lr, 0.999, 1e-6), "[-0.0099 -0.0099]"),
    "adagrad": (lambda p, lr, t: C.adagrad(p, lr), "[-0.3125 -0.3125]"),
    "adam": (lambda p, lr, t: C.adam(p, lr, t, unit_gain=False), "[-9.9227 -9.9227]"),
    "adamax": (lambda p, lr, t: C.adam(p, lr, t, unit_gain=False, adamax=True), "[-9.9227 -9.9227]"),
    "fsadagrad": (lambda p, lr, t: C.fsadagrad(p, lr, t, unit_gain=False), "[-8.8595 -8.8595]"),
    "rmsprop": (
        lambda p, lr, t: C.rmsprop(p, lr, gamma=0.999, inc=1.0 + 1e-9, dec=1.0 - 1e-9, max=np.inf, min=1e-30),
        "[-0.3125 -0.3125]",
    ),
    "adadelta, tuned": (
        lambda p, lr, t: C.adadelta(p, C.learning_rate_schedule(1004, UnitType.minibatch), 0.999, 1e-6),
        "[-9.9228 -9.9228]",
    ),
}


@pytest.mark.parametrize("rule", HOW_TO)
def test_digits_of_the_how_to(rule: str) -> None:
    make, expected = HOW_TO[rule]
    lr, momentum = C.learning_rate_schedule(1, UnitType.minibatch), C.momentum_as_time_constant_schedule(1000)
    assert inspect_update(lambda p: make(p, lr, momentum), 32, 10) == expected


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16])
@pytest.mark.parametrize("make", [lambda p: C.adam(p, 0.25, 0.5), lambda p: C.rmsprop(p, 0.25, 0.9, 1.2, 0.7, 10, 0.1)])
def test_half_precision_parameters_move_as_single_precision_ones_do(make: Any, dtype: Any) -> None:
    narrow, wide = (C.parameter(init=np.array([1, -2, 0.5], dtype=one), dtype=one) for one in (dtype, np.float32))
    learners = [make([parameter]) for parameter in (narrow, wide)]
    for gradient in ([1e-3, 200, 0], [1e-3, -100, 1]):
        for learner in learners:
            learner.update({learner.parameters[0]: np.array(gradient, dtype)}, 4)
    assert narrow.value.dtype == dtype
    assert_close(narrow.value, wide.value)
    np.testing.assert_allclose(learners[0].values()[0], wide.value, atol=2e-3)
    state = learners[0].create_checkpoint()
    learners[0].reset_smoothed_gradients()
    learners[0].restore_from_checkpoint(state)
    assert learners[0].create_checkpoint()["smoothed_gradients"][0].keys() == state["smoothed_gradients"][0].keys()


# The engine's way to make learners -------------------------------------------------------------------------------------------------


def test_the_engine_s_functions_make_the_same_learners() -> None:
    lr, momentum = C.learning_parameter_schedule(0.3), C.momentum_schedule(0.9)
    made: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "sgd": (lambda p, o: cntk_py_factories.sgd_learner(p, lr, o), lambda p, **k: C.sgd(p, lr, **k)),
        "momentum": (
            lambda p, o: cntk_py_factories.momentum_sgd_learner(p, lr, momentum, False, o),
            lambda p, **k: C.momentum_sgd(p, lr, momentum, False, **k),
        ),
        "nesterov": (
            lambda p, o: cntk_py_factories.nesterov_learner(p, lr, momentum, True, o),
            lambda p, **k: C.nesterov(p, lr, momentum, True, **k),
        ),
        "adadelta": (
            lambda p, o: cntk_py_factories.ada_delta_learner(p, lr, 0.9, 1e-3, o),
            lambda p, **k: C.adadelta(p, lr, 0.9, 1e-3, **k),
        ),
        "adagrad": (lambda p, o: cntk_py_factories.ada_grad_learner(p, lr, False, o), lambda p, **k: C.adagrad(p, lr, False, **k)),
        "fsadagrad": (
            lambda p, o: cntk_py_factories.fsada_grad_learner(p, lr, momentum, True, momentum, o),
            lambda p, **k: C.fsadagrad(p, lr, momentum, True, momentum, **k),
        ),
        "adam": (
            lambda p, o: cntk_py_factories.adam_learner(p, lr, momentum, True, momentum, 0.1, True, o),
            lambda p, **k: C.adam(p, lr, momentum, True, momentum, epsilon=0.1, adamax=True, **k),
        ),
        "rmsprop": (
            lambda p, o: cntk_py_factories.rmsprop_learner(p, lr, 0.9, 1.2, 0.7, 0.03, 0.01, True, o),
            lambda p, **k: C.rmsprop(p, lr, 0.9, 1.2, 0.7, 0.03, 0.01, **k),
        ),
    }
    options = cntk_py_factories.AdditionalLearningOptions()
    options.l2_regularization_weight = 0.1
    options.gradient_clipping_threshold_per_sample = 0.2
    options.dict_options[C.learners.Learner._MINIBATCH_SIZE] = cntk_py_factories.SizeTWrapper(6)
    for of_engine, public in made.values():
        expected = train(public([parameter()], l2_regularization_weight=0.1, gradient_clipping_threshold_per_sample=0.2, minibatch_size=6))
        np.testing.assert_array_equal(train(of_engine([parameter()], options)), expected)
        np.testing.assert_array_equal(train(of_engine([parameter()], None)), train(public([parameter()])))


WITH_OPTIONS = ["sgd", "momentum_sgd", "nesterov", "adagrad", "rmsprop", "fsadagrad", "adadelta", "adam"]


def test_the_options_are_those_that_are_checked() -> None:
    assert Options.__annotations__.keys() == {field.name: field.type for field in fields(LearnerOptions)}.keys()
    assert [kind.__forward_arg__ for kind in Options.__annotations__.values()] == [field.type for field in fields(LearnerOptions)]


@pytest.mark.parametrize("rule", WITH_OPTIONS)
def test_options_are_arguments_of_their_own(rule: str) -> None:
    function = getattr(C, rule)
    names = list(inspect.signature(function).parameters)
    described = inspect.getdoc(function) or ""
    for name in Options.__annotations__:
        assert re.search(rf"^    {name}: ", described, re.MULTILINE)
        assert name in function.__annotations__
    assert "options" not in names
    assert names[-2:] == ["minibatch_size", "epoch_size"]
    required = {"parameters": [C.parameter(2)], "lr": 0.1, "momentum": 0.9, "gamma": 0.9, "inc": 1.2, "dec": 0.5, "max": 10, "min": 0.1}
    given = [required.get(name, parameter.default) for name, parameter in inspect.signature(function).parameters.items()]
    given[names.index("l2_regularization_weight")] = 0.25
    given[-2] = 7
    options = function(*given)._options
    assert (options.l2_regularization_weight, options.minibatch_size, options.l1_regularization_weight) == (0.25, 7, 0)
    with pytest.raises(TypeError, match=f"^{rule}: .*unexpected keyword argument 'l3'"):
        function(*given[:-1], l3=1)
    with pytest.raises(TypeError, match=f"^{rule}: missing a required argument: 'parameters'"):
        function(l1_regularization_weight=1)
    with pytest.raises(TypeError, match=f"^{rule}: multiple values for argument 'minibatch_size'"):
        function(*given, minibatch_size=1)
    with pytest.raises(TypeError, match=f"^{rule}: l1_regularization_weight must be a number, got str 'a'"):
        function(*given[: names.index("l1_regularization_weight")], "a")
