"""One model, many threads: evaluating at the same time gives what evaluating alone gives."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix

import cntk as C
from cntk.layers import Convolution2D, Dense, MaxPooling, Sequential

THREADS = 16
CALLS = 8
"""Evaluations in each thread."""


def perceptron() -> tuple[Any, list[Any]]:
    random = np.random.default_rng(1)
    model = Sequential([Dense(20, activation=C.tanh), Dense(5)])(C.input_variable(10))
    return model, [random.normal(size=(size, 10)).astype(np.float32) for size in range(1, THREADS + 1)]


def convolutional() -> tuple[Any, list[Any]]:
    random = np.random.default_rng(2)
    layers = [Convolution2D((3, 3), 4, activation=C.relu), MaxPooling((2, 2), strides=(2, 2)), Dense(3)]
    model = Sequential(layers)(C.input_variable((1, 10, 10)))
    return model, [random.normal(size=(size, 1, 10, 10)).astype(np.float32) for size in range(1, THREADS + 1)]


def sparse() -> tuple[Any, list[Any]]:
    random = np.random.default_rng(3)
    model = Dense(4)(C.input_variable(30, is_sparse=True))
    classes = [random.integers(30, size=size) for size in range(1, THREADS + 1)]
    return model, [csr_matrix(np.eye(30, dtype=np.float32)[chosen]) for chosen in classes]


def sequences() -> tuple[Any, list[Any]]:
    random = np.random.default_rng(4)
    model = Dense(4, activation=C.sigmoid)(C.sequence.input_variable(6))
    lengths = [random.integers(1, 9, size=size) for size in range(1, THREADS + 1)]
    return model, [[random.normal(size=(steps, 6)).astype(np.float32) for steps in minibatch] for minibatch in lengths]


def as_list(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]


@pytest.mark.parametrize("make", [perceptron, convolutional, sparse, sequences])
def test_threads_do_not_disturb_one_another(make: Any) -> None:
    model, minibatches = make()
    alone = [model.eval(data) for data in minibatches]
    model = model.clone("share")  # nothing of it is compiled yet, so that threads compile it at the same time
    together = threading.Barrier(THREADS)

    def evaluate(thread: int) -> list[tuple[int, Any]]:
        together.wait()
        numbers = [(thread + call) % THREADS for call in range(CALLS)]
        return [(number, model.eval(minibatches[number])) for number in numbers]

    with ThreadPoolExecutor(THREADS) as pool:
        for results in pool.map(evaluate, range(THREADS)):
            for number, result in results:
                for actual, expected in zip(as_list(result), as_list(alone[number]), strict=True):
                    assert_array_equal(actual, expected)


def test_gradients_are_kept_apart() -> None:
    x = C.input_variable(3, needs_gradient=True)
    root = C.reduce_sum(C.square(x))
    together = threading.Barrier(THREADS)

    def differentiate(thread: int) -> bool:
        data = np.full((thread + 1, 3), thread, np.float32)
        together.wait()
        return all(np.array_equal(root.grad(data), 2 * data) for _ in range(CALLS))

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(differentiate, range(THREADS)))


def test_parameters_of_unknown_shape_are_made_once() -> None:
    for seed in range(5):
        model = Dense(50)(C.input_variable(100, name=f"x{seed}"))
        data = np.ones((2, 100), np.float32)
        together = threading.Barrier(THREADS)

        def evaluate(_: int, model: Any = model, together: Any = together, data: Any = data) -> Any:
            together.wait()
            return model.eval(data)

        with ThreadPoolExecutor(THREADS) as pool:
            results = list(pool.map(evaluate, range(THREADS)))
        for result in results:
            assert_array_equal(result, results[0])
