"""Networks that trials compute with: large enough for compiled loops and the BLAS's threads, and different in what they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import cntk as C
import cntk.layers as L


class Network(NamedTuple):
    """A model that can be trained.

    Attributes:
        model: the model.
        loss: a number for each sample or step.
        feed: makes a minibatch of so many samples from a generator.
    """

    model: Any
    loss: Any
    feed: Callable[[np.random.Generator, int], dict[Any, Any]]


def vectors() -> Network:
    """Products of matrices and a chain of element-wise operators."""
    x, y = C.input_variable(200), C.input_variable(10)
    hidden = L.Dense(300, C.tanh, init=C.glorot_uniform(seed=1))(x)
    mixed = C.relu(hidden * 2 + C.parameter(300, init=0.1)) - C.exp(-C.abs(hidden)) / (1 + C.square(hidden))
    model = L.Dense(10, init=C.glorot_uniform(seed=2))(mixed)

    def feed(random: np.random.Generator, samples: int) -> dict[Any, Any]:
        return {x: normal(random, samples, 200), y: one_hot(random, 10, samples)}

    return Network(model, C.cross_entropy_with_softmax(model, y), feed)


def images() -> Network:
    """Convolution of two kinds, pooling of two kinds and normalisation."""
    x, y = C.input_variable((3, 20, 20)), C.input_variable(5)
    model = L.Sequential([
        L.Convolution2D((3, 3), 16, pad=True, init=C.glorot_uniform(seed=3)),
        L.BatchNormalization(map_rank=1),
        C.relu,
        L.MaxPooling((3, 3), (2, 2)),
        L.Convolution2D((5, 5), 12, C.relu, strides=2, init=C.glorot_uniform(seed=4)),
        L.AveragePooling((2, 2)),
        L.Dense(5, init=C.glorot_uniform(seed=5)),
    ])(x)  # fmt: skip

    def feed(random: np.random.Generator, samples: int) -> dict[Any, Any]:
        samples = -(-samples // 4)
        return {x: normal(random, samples, 3, 20, 20), y: one_hot(random, 5, samples)}

    return Network(model, C.cross_entropy_with_softmax(model, y), feed)


def sentences() -> Network:
    """Sparse words, an embedding and recurrences over sequences of all lengths."""
    x, y = C.sequence.input_variable(500, is_sparse=True), C.input_variable(4)
    model = L.Sequential([
        L.Embedding(64, init=C.glorot_uniform(seed=6)),
        L.Recurrence(L.LSTM(80, init=C.glorot_uniform(seed=7))),
        L.Fold(L.GRU(48, init=C.glorot_uniform(seed=8))),
        L.Dense(4, init=C.glorot_uniform(seed=9)),
    ])(x)  # fmt: skip

    def feed(random: np.random.Generator, samples: int) -> dict[Any, Any]:
        samples = -(-samples // 4)
        words = [random.integers(500, size=length).tolist() for length in random.integers(1, 30, samples)]
        return {x: C.Value.one_hot(words, 500), y: one_hot(random, 4, samples)}

    return Network(model, C.cross_entropy_with_softmax(model, y), feed)


def tags() -> Network:
    """A recurrence both ways, with attention to all steps, and a loss for each step."""
    x, y = C.sequence.input_variable(24), C.sequence.input_variable(6)
    forwards = L.Recurrence(L.LSTM(40, init=C.glorot_uniform(seed=10)))(x)
    backwards = L.Recurrence(L.LSTM(40, init=C.glorot_uniform(seed=11)), go_backwards=True)(x)
    both = C.splice(forwards, backwards)
    weight = C.sequence.softmax(L.Dense(1, init=C.glorot_uniform(seed=12))(both))
    summary = C.sequence.reduce_sum(C.element_times(both, weight))
    model = L.Dense(6, init=C.glorot_uniform(seed=13))(both + C.sequence.broadcast_as(summary, both))

    def feed(random: np.random.Generator, samples: int) -> dict[Any, Any]:
        lengths = random.integers(1, 25, -(-samples // 4))
        return {x: [normal(random, length, 24) for length in lengths], y: [one_hot(random, 6, length) for length in lengths]}

    return Network(model, C.cross_entropy_with_softmax(model, y), feed)


NETWORKS = {make.__name__: make for make in (vectors, images, sentences, tags)}

LEARNERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda parameters: C.sgd(parameters, 0.01),
    "momentum": lambda parameters: C.momentum_sgd(parameters, 0.01, 0.9),
    "adam": lambda parameters: C.adam(parameters, 0.001, 0.9),
    "rmsprop": lambda parameters: C.rmsprop(parameters, 0.001, 0.99, 1.1, 0.9, 2.0, 0.1),
}


def trained(network: Network, learner: str, seed: int, updates: int, samples: int) -> list[bytes]:
    """The losses of a training, and the parameters that it ends with, bit by bit.  The network's own parameters change."""
    random = np.random.default_rng(seed)
    trainer = C.Trainer(network.model, (network.loss, None), [LEARNERS[learner](network.model.parameters)])
    losses = []
    for _ in range(updates):
        trainer.train_minibatch(network.feed(random, samples))
        losses.append(trainer.previous_minibatch_loss_average)
    return [np.float64(losses).tobytes(), *(parameter.value.tobytes() for parameter in network.model.parameters)]


def normal(random: np.random.Generator, *shape: int) -> Any:
    """Normal numbers."""
    return random.standard_normal(shape, np.float32)


def one_hot(random: np.random.Generator, classes: int, samples: int) -> Any:
    """Rows of which one element is 1."""
    return np.eye(classes, dtype=np.float32)[random.integers(classes, size=samples)]
