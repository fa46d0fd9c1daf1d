"""The data of the workloads, random numbers of a fixed seed, and the sizes of the networks."""

from __future__ import annotations

from typing import Any

import numpy as np

ROW, HIDDEN, CLASSES = 784, 200, 10
SIDE, FILTERS = 28, (16, 32)
WORD, CELLS, TAGS = 50, 128, 20
RATE, MOMENTUM = 0.01, 0.9


def rows(count: int) -> Any:
    return _random().normal(size=(count, ROW)).astype(np.float32)


def images(count: int) -> Any:
    return _random().normal(size=(count, 1, SIDE, SIDE)).astype(np.float32)


def labels(count: int, classes: int = CLASSES) -> Any:
    """The number of a class for each sample."""
    return _random().integers(classes, size=count)


def sentences() -> list[Any]:
    """Sentences of 5 to 40 words, each word a vector."""
    random = _random()
    return [random.normal(size=(length, WORD)).astype(np.float32) for length in random.integers(5, 41, size=16)]


def one_hot(numbers: Any, classes: int = CLASSES) -> Any:
    return np.eye(classes, dtype=np.float32)[numbers]


def _random() -> np.random.Generator:
    return np.random.default_rng(1)
