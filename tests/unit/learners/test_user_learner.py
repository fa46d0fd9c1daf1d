"""Learners that users write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix

import cntk as C
from cntk.testing import check_learner

RATE = C.learning_parameter_schedule(0.1)


class Naive(C.UserLearner):
    """Gradient descent that builds a graph for each update."""

    def update(self, gradient_values: Any, training_sample_count: int, sweep_end: bool) -> bool:
        rate = self.learning_rate() / training_sample_count
        for p, g in gradient_values.items():
            p.set_value((p - rate * C.constant(g)).eval(as_numpy=False).data)
        return True


class Prepared(C.UserLearner):
    """The same with one graph for each shape, fed with gradients."""

    def __init__(self, parameters: Any, lr_schedule: Any) -> None:
        super().__init__(parameters, lr_schedule, as_numpy=False)
        self.count = C.input_variable((), parameters[0].dtype)
        self.gradients = {p: C.input_variable(p.shape, p.dtype) for p in parameters}
        self.updated = {p: p - lr_schedule[0] / self.count * self.gradients[p] for p in parameters}

    def update(self, gradient_values: Any, training_sample_count: int, sweep_end: bool) -> bool:
        for p, g in gradient_values.items():
            data = {self.count: np.array(training_sample_count, p.dtype), self.gradients[p]: g}
            result = self.updated[p].eval(data, as_numpy=False)
            p.set_value(result.data.slice_view([0] * len(result.shape), result.shape[1:]))
        return True


class Recording(C.UserLearner):
    """Keeps what it is called with."""

    answer: Any = True

    def update(self, gradient_values: Any, training_sample_count: int, sweep_end: bool) -> bool:
        self.seen = gradient_values, training_sample_count, sweep_end
        return self.answer  # type: ignore[no-any-return]


def trained(learner: Any) -> list[Any]:
    """Parameters of a small network after some steps on data from a fixed seed."""
    x, y = C.input_variable(3), C.input_variable(2)
    model = C.layers.Sequential([C.layers.Dense(4, activation=C.tanh, init=C.glorot_uniform(seed=1)), C.layers.Dense(2, init=0.5)])(x)
    trainer = C.Trainer(model, C.squared_error(model, y), [learner(model.parameters, RATE)])
    random = np.random.default_rng(0)
    for size in (5, 3, 8):
        data = {v: random.standard_normal((size, v.shape[0]), np.float32) for v in (x, y)}
        assert trainer.train_minibatch(data)
    return [p.value for p in model.parameters]


@pytest.mark.parametrize("learner", [Naive, Prepared])
def test_it_trains_like_the_built_in_rule(learner: Any) -> None:
    for given, expected in zip(trained(learner), trained(C.sgd), strict=True):
        assert_allclose(given, expected, rtol=1e-5)


@pytest.mark.parametrize("learner", [Naive, Prepared])
def test_it_conforms(learner: Any) -> None:
    check_learner(lambda parameters, schedule: learner(parameters, schedule))


def recorded(dtype: Any = np.float32, answer: Any = True, sparse: bool = False) -> tuple[Any, Any, Any]:
    """A learner that recorded one step, its parameter, and what train_minibatch returned."""
    x = C.input_variable(2, dtype, is_sparse=sparse)
    w = C.parameter(init=np.ones((2, 1), dtype))
    learner = Recording([w], C.learning_parameter_schedule([0.1, 0.01], epoch_size=3))
    learner.answer = answer
    data = np.array([[1, 2], [3, 4], [5, 0]], dtype)
    returned = C.Trainer(None, C.times(x, w), learner).train_minibatch({x: csr_matrix(data) if sparse else data}, is_sweep_end=True)
    return learner, w, returned


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_it_gets_summed_gradients_as_views_the_number_of_samples_and_the_end_of_the_sweep(dtype: Any) -> None:
    learner, w, returned = recorded(dtype)
    gradients, count, sweep_end = learner.seen
    assert returned is True
    assert (list(gradients), count, sweep_end) == ([w], 3, True)
    assert isinstance(gradients[w], C.NDArrayView)
    assert gradients[w].dtype == dtype
    assert_array_equal(gradients[w].asarray(), [[9], [6]])


def test_gradients_of_sparse_products_come_whole() -> None:
    learner, w, _ = recorded(sparse=True)
    assert_array_equal(learner.seen[0][w].asarray(), [[9], [6]])


def test_gradients_are_the_learner_s_to_keep() -> None:
    learner, w, _ = recorded()
    kept = learner.seen[0][w]
    recorded()
    assert_array_equal(kept.asarray(), [[9], [6]])


def test_it_counts_no_samples() -> None:
    learner, _, _ = recorded()
    assert (learner.total_number_of_samples_seen(), learner.learning_rate()) == (0, 0.1)
    learner.reset_learning_rate(C.learning_parameter_schedule(0.5))
    assert learner.learning_rate() == 0.5


def test_parameters_is_a_method() -> None:
    learner, w, _ = recorded()
    assert learner.parameters() == (w,)
    assert isinstance(learner, C.learners.Learner)


def test_what_update_returns_is_what_train_minibatch_returns() -> None:
    assert recorded(answer=False)[2] is False
    with pytest.raises(TypeError, match="Recording: update must return True, or False if nothing was learnt; got None"):
        recorded(answer=None)


def test_a_learner_without_update() -> None:
    with pytest.raises(NotImplementedError, match="UserLearner does not define update"):
        C.UserLearner([C.parameter(1)], RATE).update({}, 1, False)


def test_the_rate_is_a_schedule() -> None:
    with pytest.raises(TypeError, match=r"Naive: lr_schedule must be a schedule, got float 0.1; make one with learning_parameter_schedule"):
        Naive([C.parameter(1)], 0.1)  # type: ignore[arg-type]


def test_the_old_name_of_the_module() -> None:
    from cntk.learner import UserLearner, sgd

    assert UserLearner is C.learners.UserLearner
    assert sgd is C.sgd


@pytest.mark.filterwarnings("ignore:.*converted to float32:UserWarning")
def test_gradient_descent_as_the_guide_to_learners_writes_it() -> None:
    class MySgd(C.UserLearner):
        def __init__(self, parameters: Any, lr_schedule: Any) -> None:
            super().__init__(parameters, lr_schedule, as_numpy=False)
            self.sample_count_input = C.input_variable((), name="count")
            eta = lr_schedule[0] / self.sample_count_input
            self.grad_input = {p.shape: C.input_variable(p.shape) for p in parameters}
            self.new_p = {p.shape: p - eta * self.grad_input[p.shape] for p in parameters}

        def update(self, gradient_values: Any, training_sample_count: Any, sweep_end: bool) -> bool:
            for p, g in gradient_values.items():
                data = {self.sample_count_input: np.asarray(training_sample_count), self.grad_input[p.shape]: g}
                result = self.new_p[p.shape].eval(data, as_numpy=False)
                p.set_value(result.data.slice_view([0] * len(result.shape), result.shape[1:]))
            return True

    learner = MySgd([C.parameter((4, 2)), C.parameter(2)], C.learning_rate_schedule(1, C.UnitType.minibatch))
    parameters = [C.Variable.as_parameter(p) for p in learner.parameters()]
    for _ in range(10):
        learner.update({p: p.value * 0 + 1 for p in parameters}, np.float32(64), sweep_end=False)
    for p in parameters:
        assert_array_equal(p.value, np.full(p.shape, -0.15625, np.float32))  # the guide prints -0.1562


def test_a_learner_s_own_state_goes_into_its_checkpoint() -> None:
    class Momentum(C.UserLearner):
        def __init__(self, parameters: Any, lr_schedule: Any) -> None:
            super().__init__(parameters, lr_schedule)
            self.velocities = [np.zeros(p.shape, p.dtype) for p in parameters]

        def update(self, gradient_values: Any, training_sample_count: int, sweep_end: bool) -> bool:
            for p, velocity in zip(self.parameters(), self.velocities, strict=True):
                velocity += gradient_values[p].asarray() - velocity / 2
                p.value = p.value - self.learning_rate() * velocity
            return True

        def create_checkpoint(self) -> dict[str, Any]:
            return {**super().create_checkpoint(), "velocities": [v.copy() for v in self.velocities]}

        def restore_from_checkpoint(self, checkpoint: Any) -> None:
            super().restore_from_checkpoint(checkpoint)
            self.velocities = [np.array(v) for v in checkpoint["velocities"]]

    check_learner(Momentum)


def test_the_schedule_goes_into_the_checkpoint() -> None:
    learner, other = Recording([C.parameter(1)], RATE), Recording([C.parameter(1)], RATE)
    learner.reset_learning_rate(C.learning_parameter_schedule(0.5))
    other.restore_from_checkpoint(learner.create_checkpoint())
    assert other.learning_rate() == 0.5


def test_what_rate_it_uses_is_for_itself_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    w, x = C.parameter(2), C.input_variable(2)
    trainer = C.Trainer(None, C.reduce_sum(w * x), Naive([w], RATE), C.logging.ProgressPrinter(1))
    trainer.train_minibatch({x: np.ones((1, 2), np.float32)})
    assert "Minibatch[   1-   1]" in capsys.readouterr().out.splitlines()[0]
