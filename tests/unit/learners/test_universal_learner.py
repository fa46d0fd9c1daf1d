"""The learner whose rule is a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cntk as C


def descent(parameters: Any, gradients: Any) -> Any:
    """Gradient descent at a rate of 0.1 per sample."""
    return C.combine([C.assign(p, p - 0.1 * g) for p, g in zip(parameters, gradients, strict=True)])


def momentum(parameters: Any, gradients: Any) -> Any:
    """The same with a momentum of 0.9 that is not unit-gain."""
    velocities = [C.constant(0, shape=p.shape, dtype=p.dtype) for p in parameters]
    moved = [C.assign(v, 0.9 * v + 0.1 * g) for v, g in zip(velocities, gradients, strict=True)]
    return C.combine([C.assign(p, p - v) for p, v in zip(parameters, moved, strict=True)])


PER_SAMPLE = C.learning_parameter_schedule_per_sample(0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rule", "built_in"),
    [(descent, lambda p: C.sgd(p, PER_SAMPLE)), (momentum, lambda p: C.momentum_sgd(p, PER_SAMPLE, 0.9, unit_gain=False))],
)
def test_it_trains_like_the_built_in_rule(rule: Any, built_in: Any, dtype: Any) -> None:
    values = []
    for learner in (lambda p: C.universal(rule, p), built_in):
        x, y = C.input_variable(3, dtype), C.input_variable(1, dtype)
        w, b = C.parameter((3, 1), init=0.5, dtype=dtype), C.parameter(1, init=0, dtype=dtype)
        model = C.times(x, w) + b
        made = learner([w, b])
        trainer = C.Trainer(model, C.squared_error(model, y), made)
        random = np.random.default_rng(1)
        for size in (2, 1, 3):
            data = {v: 0.1 * random.standard_normal((size, v.shape[0])).astype(dtype) for v in (x, y)}
            assert trainer.train_minibatch(data)
        assert made.total_number_of_samples_seen() == 6
        values.append((w.value, b.value))
    for given, expected in zip(*values, strict=True):
        assert given.dtype == dtype
        assert_allclose(given, expected, rtol=1e-5)


def test_gradients_of_sparse_products_come_whole() -> None:
    from scipy.sparse import csr_matrix

    x = C.input_variable(3, is_sparse=True)
    w = C.parameter((3, 1), init=1)
    trainer = C.Trainer(None, C.times(x, w), C.universal(descent, [w]))
    for data in ([[1, 0, 0]], [[0, 0, 2]]):
        trainer.train_minibatch({x: csr_matrix(np.array(data, np.float32))})
    assert_allclose(w.value, [[0.9], [1], [0.8]])


def test_the_engine_s_way_to_make_one() -> None:
    w, g = C.parameter((2,), init=1), C.constant(0, shape=(2,))
    learner = C.cntk_py.universal_learner([w], [g], C.assign(w, g + 1))
    assert isinstance(learner, C.learners.Learner)
    assert learner.update({w: np.array([3, 4], np.float32)}, 1)
    assert_array_equal(w.value, [4, 5])
    assert_array_equal(g.value, [3, 4])


def test_what_it_refuses() -> None:
    w, x = C.parameter(2), C.input_variable(2)
    with pytest.raises(ValueError, match="a function of two arguments"):
        C.universal(lambda parameters: parameters[0] + 1, [w])  # type: ignore[arg-type, misc]
    with pytest.raises(ValueError, match="is not known yet"):
        C.universal(descent, [C.parameter((-1, 2))])
    with pytest.raises(TypeError, match="must return a Function, got list"):
        C.universal(lambda parameters, gradients: [], [w])  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match=r"needs data for \[Input"):
        C.universal(lambda parameters, gradients: C.assign(parameters[0], gradients[0]) + x, [w])
    with pytest.raises(ValueError, match="expected gradients of the shapes of"):
        C.cntk_py.universal_learner([w], [C.constant(0)], C.assign(w, w))


def test_rmsprop_as_the_guide_to_learners_writes_it() -> None:
    def rmsprop(parameters: Any, gradients: Any) -> Any:
        accumulators = [C.constant(1e-6, shape=p.shape, dtype=p.dtype) for p in parameters]
        updates = []
        for p, g, a in zip(parameters, gradients, accumulators, strict=True):
            mean_square = C.assign(a, 0.999 * a + (1 - 0.999) * g * g)
            updates.append(C.assign(p, p - 0.01 * g / C.sqrt(mean_square)))
        return C.combine(updates)

    parameters = [C.parameter((4, 2)), C.parameter(2)]
    learner = C.universal(rmsprop, parameters)
    for _ in range(2):
        learner.update({p: np.ones(p.shape, np.float32) for p in parameters}, 10)
    for p in parameters:
        assert_array_equal(p.value.round(4), np.full(p.shape, -0.5397, np.float32))  # what the guide prints


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_the_graph_keeps_is_in_the_checkpoint(dtype: Any) -> None:
    def make() -> tuple[Any, Any]:
        w = C.parameter(init=np.array([1, -2], dtype))
        return w, C.universal(momentum, [w])

    def train(learner: Any, gradients: Any) -> None:
        for gradient in gradients:
            learner.update({learner.parameters[0]: np.array(gradient, dtype)}, 3)

    gradients = np.random.default_rng(0).normal(size=(6, 2))
    (straight, learner), (stopped, first), (resumed, second) = make(), make(), make()
    train(learner, gradients)
    train(first, gradients[:3])
    resumed.value = stopped.value
    second.restore_from_checkpoint(first.create_checkpoint())
    train(second, gradients[3:])
    assert_array_equal(resumed.value, straight.value)
    assert second.total_number_of_samples_seen() == 18
    with pytest.raises(RuntimeError, match="checkpoint of a universal learner that assigns to shapes"):
        C.universal(descent, [w := C.parameter(2)]).restore_from_checkpoint(first.create_checkpoint())
    assert_array_equal(w.value, [0, 0])


def test_random_numbers_of_the_rule_go_on_from_a_checkpoint() -> None:
    def noisy(parameters: Any, gradients: Any) -> Any:
        return C.combine([C.assign(p, p - 0.1 * g - C.random.uniform(p.shape)) for p, g in zip(parameters, gradients, strict=True)])

    def make() -> tuple[Any, Any]:
        w = C.parameter(3, init=1)
        return w, C.universal(noisy, [w])

    gradient = np.ones(3, np.float32)
    w, learner = make()
    learner.update({w: gradient}, 1)
    value, state = w.value, learner.create_checkpoint()
    learner.update({w: gradient}, 1)
    other, resumed = make()
    resumed.restore_from_checkpoint(state)
    other.value = value
    resumed.update({other: gradient}, 1)
    np.testing.assert_array_equal(other.value, w.value)


def test_its_learning_rate_is_told_as_of_any_built_in_learner(capsys: pytest.CaptureFixture[str]) -> None:
    w, x = C.parameter(2), C.input_variable(2)
    trainer = C.Trainer(None, C.reduce_sum(w * x), C.universal(descent, [w]), C.logging.ProgressPrinter(1))
    trainer.train_minibatch({x: np.ones((1, 2), np.float32)})
    assert capsys.readouterr().out.startswith("Learning rate per minibatch: 1.0\n")
