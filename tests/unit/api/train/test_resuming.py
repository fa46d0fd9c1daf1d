"""Laws of resuming and of training side by side: whatever a model draws or keeps, and however many threads train."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common import random

L = C.layers
SEQUENCES = [np.linspace(-1, 1, 4 * steps, dtype=np.float32).reshape(steps, 4) for steps in (5, 3, 7, 1)]
TARGETS = [np.cos(sequence[:, :3]) for sequence in SEQUENCES]


def recurrence_with_dropout(x: Any) -> Any:
    cell, dropout = L.LSTM(4), L.Dropout(0.3)
    return L.Recurrence(C.Function(lambda h, c, v: cell(h, c, dropout(v))))(x)


def the_same_dropout_twice(x: Any) -> Any:
    dropout = L.Dropout(0.5)
    return dropout(L.Dense(3)(dropout(x)))


def a_clone(x: Any) -> Any:
    model = L.Sequential([L.Dense(5), L.Dropout(0.5), L.BatchNormalization()])(C.sequence.input_variable(4))
    return model.clone(C.CloneMethod.clone, {model.arguments[0]: x})


def random_values(x: Any) -> Any:
    return x + C.random.uniform_like(x) * C.random.bernoulli((4,)) + C.random.gumbel((4,))


def a_counter(x: Any) -> Any:
    count = C.constant(0.0)
    return x * C.assign(count, count + 1)


MODELS: list[Callable[[Any], Any]] = [
    recurrence_with_dropout,
    the_same_dropout_twice,
    a_clone,
    random_values,
    a_counter,
    lambda x: L.BatchNormalization(normalization_time_constant=50, blend_time_constant=10)(L.Dense(4)(x)),
    lambda x: x * C.reduce_mean(C.random_sample(C.constant(np.ones(6, np.float32)), 3, True)),
]


def trainer_of(model: Callable[[Any], Any], seed: int) -> C.Trainer:
    """A trainer with two learners that share a schedule; *seed* is what seeds are chosen from."""
    random.reset_random_seed(seed)
    x, y = C.sequence.input_variable(4), C.sequence.input_variable(3)
    z = L.Dense(3)(model(x))
    rate = C.learning_parameter_schedule([0.1, 0.01], epoch_size=20)
    first = C.adam(z.parameters[:1], rate, 0.9, gaussian_noise_injection_std_dev=0.01)
    rest = C.momentum_sgd(z.parameters[1:], rate, 0.9) if len(z.parameters) > 1 else None
    return C.Trainer(z, C.squared_error(z, y), [learner for learner in (first, rest) if learner])


def train(trainer: C.Trainer, steps: range) -> None:
    x, y = trainer.loss_function.arguments
    for step in steps:
        part = slice(2 * (step % 2), 2 * (step % 2) + 2)
        trainer.train_minibatch({x: SEQUENCES[part], y: TARGETS[part]})


def values_of(trainer: C.Trainer) -> list[bytes]:
    return [leaf.value.tobytes() for leaf in (*trainer.model.parameters, *trainer.model.constants)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_another_trainer_goes_on_from_a_checkpoint(model: Callable[[Any], Any], tmp_path: Path) -> None:
    """Whatever seeds it was made with, and however far it has trained itself."""
    path = str(tmp_path / "model")
    undisturbed = trainer_of(model, 3)
    train(undisturbed, range(3))
    undisturbed.save_checkpoint(path)
    train(undisturbed, range(3, 7))
    other = trainer_of(model, 1003)
    train(other, range(2))
    other.restore_from_checkpoint(path)
    train(other, range(3, 7))
    assert values_of(other) == values_of(undisturbed)
    assert other.previous_minibatch_loss_average == undisturbed.previous_minibatch_loss_average


LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "cross_entropy_with_softmax": C.cross_entropy_with_softmax,
    "squared_error": C.squared_error,
    "binary_cross_entropy": lambda z, y: C.binary_cross_entropy(C.sigmoid(z), y),
    "weighted_binary_cross_entropy": lambda z, y: C.weighted_binary_cross_entropy(C.sigmoid(z), y, y + 1),
    "cosine_distance": C.cosine_distance,
    "classification_error": lambda z, y: C.squared_error(z, y) + C.classification_error(z, y, topN=2),
    "reductions": lambda z, y: C.reduce_sum(C.abs(z - y), axis=-1) + C.reduce_log_sum_exp(z) + C.reduce_max(z, axis=0),
    "edit of shapes": lambda z, y: C.reduce_sum(C.splice(C.slice(z, 0, 0, 1), C.transpose(C.reshape(y, (1, 3)), (1, 0))[:, 0])),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))
def test_a_checkpoint_fits_the_criterion_that_wrote_it(loss: Callable[[Any, Any], Any], tmp_path: Path) -> None:
    def trainer() -> C.Trainer:
        x, y = C.input_variable(4), C.input_variable(3)
        z = L.Dense(3)(x)
        return C.Trainer(z, loss(z, y), C.sgd(z.parameters, 0.1))

    path = str(tmp_path / "model")
    saved, other = trainer(), trainer()
    saved.save_checkpoint(path)
    other.restore_from_checkpoint(path)
    assert values_of(other) == values_of(saved)


@pytest.mark.usefixtures("three_threads")
def test_trainers_in_threads_do_not_disturb_one_another() -> None:
    """Parameters are large enough for compiled steps, which threads share."""
    learners = [
        lambda p: C.momentum_sgd(p, 0.001, 0.9),
        lambda p: C.adam(p, 0.001, 0.9),
        lambda p: C.rmsprop(p, 0.001, 0.9, 1.2, 0.8, 10, 0.1),
        lambda p: C.adagrad(p, 0.001),
    ]

    def parameters_after(learner: Callable[[Any], Any]) -> bytes:
        x, w = C.input_variable(600), C.parameter((600, 1800), init=0.01)
        trainer = C.Trainer(None, C.reduce_sum(C.square(C.times(C.dropout(x, 0.2, seed=7), w))), learner([w]))
        for scale in (1, 2, 3):
            trainer.train_minibatch({x: np.full((2, 600), scale, np.float32)})
        value: bytes = w.value.tobytes()
        return value

    alone = [parameters_after(learner) for learner in learners]
    together: dict[int, bytes] = {}

    def work(number: int) -> None:
        together[number] = parameters_after(learners[number % len(learners)])

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [together.get(number) for number in range(8)] == alone * 2
