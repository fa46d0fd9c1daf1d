"""The programs of CNTK's notebook "How to use learners": what they print, to the digit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cntk as C


class Howto:
    """What the first cells of the notebook define."""

    def __init__(self) -> None:
        features = C.input_variable(3)
        self.label = C.input_variable(2)
        self.z = C.layers.Sequential([C.layers.Dense(4, activation=C.relu), C.layers.Dense(2)])(features)


@pytest.fixture
def howto() -> Howto:
    return Howto()


@pytest.fixture(autouse=True)
def four_digits() -> Any:
    with np.printoptions(precision=4):
        yield


def inspect_update(learner: Any, mbsize: Any, count: int = 1) -> list[Any]:
    # Save current parameter values
    old_values = [p.value for p in learner.parameters]
    # Set current parameter values to all 0
    for p in learner.parameters:
        p.value = 0 * p.value
    # create all 1 gradients and associate them with the parameters
    updates = {p: p.value + 1 for p in learner.parameters}
    # do 'count' many updates
    for _ in range(count):
        learner.update(updates, mbsize)
    ret_values = [p.value for p in learner.parameters]
    # Restore values
    for p, o in zip(learner.parameters, old_values, strict=True):
        p.value = o
    return ret_values


PER_SAMPLE = """\

unit = sample
 [array([[-0.5, -0.5],
       [-0.5, -0.5],
       [-0.5, -0.5],
       [-0.5, -0.5]], dtype=float32), array([-0.5, -0.5], dtype=float32), array([[-0.5, -0.5, -0.5, -0.5],
       [-0.5, -0.5, -0.5, -0.5],
       [-0.5, -0.5, -0.5, -0.5]], dtype=float32), array([-0.5, -0.5, -0.5, -0.5], dtype=float32)]
"""


def test_rates_per_sample_and_per_minibatch(howto: Howto, capsys: pytest.CaptureFixture[str]) -> None:
    z = howto.z
    lr_schedule_m = C.learning_rate_schedule(0.5, C.UnitType.minibatch)
    lr_schedule_s = C.learning_rate_schedule(0.5, C.UnitType.sample)
    sgd_learner_m = C.sgd(z.parameters, lr_schedule_m)
    sgd_learner_s = C.sgd(z.parameters, lr_schedule_s)

    print("\nunit = sample\n", inspect_update(sgd_learner_s, mbsize=2))
    assert capsys.readouterr().out == PER_SAMPLE
    print("\nunit = minibatch\n", inspect_update(sgd_learner_m, mbsize=2))
    assert capsys.readouterr().out == PER_SAMPLE.replace("0.5", "0.25").replace("sample", "minibatch")


def test_values_are_restored(howto: Howto) -> None:
    before = [p.value for p in howto.z.parameters]
    inspect_update(C.sgd(howto.z.parameters, 0.5), mbsize=2)
    for p, value in zip(howto.z.parameters, before, strict=True):
        assert (p.value == value).all()


def test_a_trainer_with_a_schedule(howto: Howto) -> None:
    z, label = howto.z, howto.label
    lr_schedule = C.learning_rate_schedule([0.05] * 3 + [0.025] * 2 + [0.0125], C.UnitType.minibatch, epoch_size=100)
    sgd_learner = C.sgd(z.parameters, lr_schedule)
    loss = C.cross_entropy_with_softmax(z, label)
    trainer = C.Trainer(z, loss, sgd_learner)

    (features,) = z.arguments
    minibatch = {features: np.ones((50, 3), np.float32), label: np.tile(np.float32([0, 1]), (50, 1))}
    rates = []
    for _ in range(12):
        rates.append(sgd_learner.learning_rate())
        trainer.train_minibatch(minibatch)
    assert rates == [0.05] * 6 + [0.025] * 4 + [0.0125] * 2  # epochs of 100 samples


def test_momentum_as_a_number_and_as_a_time_constant(howto: Howto, capsys: pytest.CaptureFixture[str]) -> None:
    z = howto.z
    mb_size = 10
    time_constant = 300
    momentum = math.exp(-mb_size / time_constant)

    assert mb_size / math.log(1 / momentum) == pytest.approx(300.00000000000006, rel=1e-15)
    assert math.exp(-mb_size / time_constant) == pytest.approx(0.9672161004820059, rel=1e-15)

    lr_schedule = C.learning_rate_schedule(1, C.UnitType.minibatch)
    ug_schedule = C.learning_rate_schedule(1 / (1 - momentum), C.UnitType.minibatch)

    m_schedule = C.momentum_schedule(momentum)
    t_schedule = C.momentum_as_time_constant_schedule(time_constant)

    msgd = C.momentum_sgd(z.parameters, lr_schedule, m_schedule, unit_gain=False)
    tsgd = C.momentum_sgd(z.parameters, lr_schedule, t_schedule, unit_gain=False)
    usgd = C.momentum_sgd(z.parameters, ug_schedule, m_schedule, unit_gain=True)

    print(inspect_update(msgd, mb_size, 5)[0][0])
    print(inspect_update(tsgd, mb_size, 5)[0][0])
    print(inspect_update(usgd, mb_size, 5)[0][0])

    assert capsys.readouterr().out == "[-1.436 -1.436]\n" * 3


def test_learners_with_individual_rates(howto: Howto, capsys: pytest.CaptureFixture[str]) -> None:
    z = howto.z
    mb_size = 32
    time_constant = 1000

    lr_schedule = C.learning_rate_schedule(1, C.UnitType.minibatch)
    t_schedule = C.momentum_as_time_constant_schedule(time_constant)

    adadelta = C.adadelta(z.parameters, lr_schedule, 0.999, 1e-6)
    adagrad = C.adagrad(z.parameters, lr_schedule)
    adam = C.adam(z.parameters, lr_schedule, t_schedule, unit_gain=False)
    adamax = C.adam(z.parameters, lr_schedule, t_schedule, unit_gain=False, adamax=True)
    fsadagrad = C.fsadagrad(z.parameters, lr_schedule, t_schedule, unit_gain=False)
    rmsprop = C.rmsprop(z.parameters, lr_schedule, gamma=0.999, inc=1.0 + 1e-9, dec=1.0 - 1e-9, max=np.inf, min=1e-30)

    print("adadelta :", inspect_update(adadelta, mb_size, 10)[0][0])
    print("adagrad  :", inspect_update(adagrad, mb_size, 10)[0][0])
    print("adam     :", inspect_update(adam, mb_size, 10)[0][0])
    print("adamax   :", inspect_update(adamax, mb_size, 10)[0][0])
    print("fsadagrad:", inspect_update(fsadagrad, mb_size, 10)[0][0])
    print("rmsprop  :", inspect_update(rmsprop, mb_size, 10)[0][0])

    adadelta_schedule = C.learning_rate_schedule(1004, C.UnitType.minibatch)
    adadelta_tuned = C.adadelta(z.parameters, adadelta_schedule, 0.999, 1e-6)
    print("adadelta2:", inspect_update(adadelta_tuned, mb_size, 10)[0][0])

    # CNTK prints -9.9203 for adam and -8.8573 for fsadagrad, as it takes 1 - variance_momentum in float32.
    assert capsys.readouterr().out.splitlines() == [
        "adadelta : [-0.0099 -0.0099]",
        "adagrad  : [-0.3125 -0.3125]",
        "adam     : [-9.9227 -9.9227]",
        "adamax   : [-9.9227 -9.9227]",
        "fsadagrad: [-8.8595 -8.8595]",
        "rmsprop  : [-0.3125 -0.3125]",
        "adadelta2: [-9.9228 -9.9228]",
    ]


def my_rmsprop(parameters: Any, gradients: Any) -> Any:
    rho = 0.999
    lr = 0.01
    # We use the following accumulator to store the moving average of every squared gradient
    accumulators = [C.constant(1e-6, shape=p.shape, dtype=p.dtype) for p in parameters]
    update_funcs = []
    for p, g, a in zip(parameters, gradients, accumulators, strict=True):
        # We declare that `a` will be replaced by an exponential moving average of squared gradients
        # The return value is the expression rho * a + (1-rho) * g * g
        accum_new = C.assign(a, rho * a + (1 - rho) * g * g)
        # This is the rmsprop update.
        # We need to use accum_new to create a dependency on the assign statement above.
        # This way, when we run this network both assigns happen.
        update_funcs.append(C.assign(p, p - lr * g / C.sqrt(accum_new)))
    return C.combine(update_funcs)


def test_a_learner_as_an_expression(howto: Howto, capsys: pytest.CaptureFixture[str]) -> None:
    my_learner = C.universal(my_rmsprop, howto.z.parameters)
    print(inspect_update(my_learner, 10, 2)[0][0])
    assert capsys.readouterr().out == "[-0.5397 -0.5397]\n"


class MySgd(C.UserLearner):
    def __init__(self, parameters: Any, lr_schedule: Any) -> None:
        super().__init__(parameters, lr_schedule, as_numpy=False)

        self.new_p = {}
        self.grad_input = {}

        self.sample_count_input = C.input_variable((), name="count")

        lr = lr_schedule[0]  # assuming constant learning rate
        eta = lr / self.sample_count_input

        # we need one graph per parameter shape
        for param in parameters:
            p_shape = param.shape
            self.grad_input[p_shape] = C.input_variable(p_shape)
            self.new_p[p_shape] = param - eta * self.grad_input[p_shape]

    def update(self, gradient_values: Any, training_sample_count: Any, sweep_end: Any) -> bool:
        for p, g in gradient_values.items():
            new_p = self.new_p[p.shape]
            grad_input = self.grad_input[p.shape]

            data = {self.sample_count_input: np.asarray(training_sample_count), grad_input: g}
            result = new_p.eval(data, as_numpy=False)
            shape = result.shape

            # result has the shape of a complete minibatch, but contains
            # only one tensor, which we want to write to p. This means, we
            # have to slice off the leading dynamic axis.
            static_tensor = result.data.slice_view([0] * len(shape), shape[1:])
            p.set_value(static_tensor)
        return True


def inspect_user_learner_update(learner: Any, mbsize: int, count: int) -> list[Any]:
    easy_parameters = [C.Variable.as_parameter(p) for p in learner.parameters()]
    old_values = [p.value for p in easy_parameters]
    for p in easy_parameters:
        p.value = 0 * p.value
    updates = {p: p.value + 1 for p in easy_parameters}
    for _ in range(count):
        learner.update(updates, np.float32(mbsize), sweep_end=False)
    ret_values = [p.value for p in easy_parameters]
    for p, o in zip(easy_parameters, old_values, strict=True):
        p.value = o
    return ret_values


def test_a_learner_as_a_class(howto: Howto, capsys: pytest.CaptureFixture[str]) -> None:
    mb_size = 64
    lr_schedule = C.learning_rate_schedule(1, C.UnitType.minibatch)
    my_sgd = MySgd(howto.z.parameters, lr_schedule)
    print(inspect_user_learner_update(my_sgd, mb_size, 10)[0][0])
    assert capsys.readouterr().out == "[-0.1562 -0.1562]\n"


@pytest.mark.filterwarnings("ignore:.*'count'.* was given int64 data:UserWarning")
def test_a_learner_as_a_class_trains(howto: Howto) -> None:
    z, label = howto.z, howto.label
    loss = C.cross_entropy_with_softmax(z, label)
    trainer = C.Trainer(z, loss, MySgd(z.parameters, C.learning_rate_schedule(1, C.UnitType.minibatch)))
    (features,) = z.arguments
    X = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    Y = np.eye(2, dtype=np.float32)[(X[:, 0] > 0).astype(int)]
    losses = []
    for _ in range(30):
        assert trainer.train_minibatch({features: X, label: Y})
        losses.append(trainer.previous_minibatch_loss_average)
    assert losses[-1] < 0.3 < losses[0]
    assert trainer.total_number_of_samples_seen == 30 * 64
