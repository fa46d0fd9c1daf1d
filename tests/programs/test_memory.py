"""Memory: training and evaluating for long needs no more of it than doing so for a while."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.layers import Convolution2D, Dense, Dropout, MaxPooling, Sequential

LEEWAY = 2**20
"""Bytes that may come and go: one kilobyte a step."""

ROUNDS = 3
"""Measurements.  Of what the system counts the least is taken, for its allocator keeps and gives back memory as it likes; of what is
allocated the most."""


def growth(step: Callable[[int], Any], warm_up: int, steps: int) -> int:
    """Bytes by which the process grows over *steps* more steps after *warm_up* ones.

    Memory that earlier tests have freed can hide a leak from the system's count, so allocations are counted too.
    """
    tracemalloc.start()
    try:
        for number in range(warm_up):
            step(number)
        rounds = [_growth(step, steps) for _ in range(ROUNDS)]
        return max(min(resident for resident, _ in rounds), max(allocated for _, allocated in rounds))
    finally:
        tracemalloc.stop()


def _growth(step: Callable[[int], Any], steps: int) -> tuple[int, int]:
    before = held()
    for number in range(steps):
        step(number)
    resident, allocated = (now - then for now, then in zip(held(), before, strict=True))
    return resident, allocated


def held() -> tuple[int, int]:
    """Bytes that the process holds, as the system and as Python's allocators count."""
    gc.collect()
    return psutil.Process().memory_info().rss, tracemalloc.get_traced_memory()[0]


def data(samples: int) -> tuple[Any, Any]:
    random = np.random.default_rng(samples)
    images = random.normal(size=(samples, 1, 12, 12)).astype(np.float32)
    return images, csr_matrix(np.eye(10, dtype=np.float32)[random.integers(10, size=samples)])


@pytest.fixture
def network() -> Any:
    """Images and labels, and a network of the usual layers."""
    x, y = C.input_variable((1, 12, 12)), C.input_variable(10, is_sparse=True)
    layers = [Convolution2D((3, 3), 8, activation=C.relu), MaxPooling((2, 2), strides=(2, 2)), Dense(64), Dropout(0.5), Dense(10)]
    return x, y, Sequential(layers)(x)


def test_a_leak_would_be_seen() -> None:
    kept: list[Any] = []
    assert growth(lambda _: kept.append(np.ones(16000, np.float32)), 100, 1000) > LEEWAY


def test_training_needs_no_more_memory_with_time(network: Any) -> None:
    x, y, z = network
    loss, metric = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    trainer = C.Trainer(z, (loss, metric), [C.adam(z.parameters, 0.001, 0.9)])
    images, labels = data(32)
    assert growth(lambda _: trainer.train_minibatch({x: images, y: labels}), 200, 1000) < LEEWAY


def test_training_on_minibatches_of_changing_size_needs_no_more_memory_with_time(network: Any) -> None:
    x, y, z = network
    trainer = C.Trainer(z, C.cross_entropy_with_softmax(z, y), [C.sgd(z.parameters, 0.001)])
    minibatches = [data(samples) for samples in range(1, 41)]

    def step(number: int) -> None:
        images, labels = minibatches[number * 7 % 40]
        trainer.train_minibatch({x: images, y: labels})

    assert growth(step, 200, 800) < LEEWAY


def test_evaluating_minibatches_of_changing_size_needs_no_more_memory_with_time(network: Any) -> None:
    x, _, z = network
    minibatches = [data(samples)[0] for samples in range(1, 41)]
    assert growth(lambda number: z.eval({x: minibatches[number * 7 % 40]}), 200, 800) < LEEWAY


def test_functions_that_are_dropped_give_their_memory_back() -> None:
    images = np.ones((4, 10000), np.float32)

    def step(_: int) -> None:
        x = C.input_variable(10000)
        C.relu(x * C.parameter(10000)).eval({x: images})

    assert growth(step, 30, 100) < LEEWAY


def test_a_dropped_function_gives_its_memory_back_at_once() -> None:
    images = np.ones((4, 10000), np.float32)
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(20):
            x = C.input_variable(10000)
            C.relu(x * 2).eval({x: images})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peak < 10 * images.nbytes


def test_programs_of_an_earlier_graph_are_dropped() -> None:
    images = np.ones((4, 10000), np.float32)
    x = C.input_variable(10000)
    function = C.relu(x * 2)

    def step(_: int) -> None:
        C.relu(C.placeholder()).replace_placeholder(x)
        function.eval(images)

    assert growth(step, 5, 30) < LEEWAY
