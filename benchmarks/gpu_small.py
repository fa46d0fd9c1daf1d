"""Small trainings that launch each kind of kernel, for compute-sanitizer: ``python benchmarks/gpu_small.py [images recurrences ...]``.

Each trains on minibatches of two sizes until both are recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import cntk as C
from cntk.layers import (
    GRU,
    LSTM,
    BatchNormalization,
    Convolution2D,
    Dense,
    Dropout,
    Embedding,
    LayerNormalization,
    MaxPooling,
    Recurrence,
    Sequential,
)

CLASSES, TIMES = 5, 5
RANDOM = np.random.default_rng(0)


def main(names: Sequence[str]) -> None:
    C.device.try_set_default_device(C.device.gpu(0))
    C.cntk_py.set_fixed_random_seed(1)
    for name in names or KINDS:
        print(f"{name}: loss {KINDS[name]():.4f}", flush=True)


def trained(model: Any, x: Any, y: Any, minibatches: Sequence[dict[Any, Any]]) -> float:
    """The last loss of a training."""
    criterion = C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)
    trainer = C.Trainer(model, criterion, [C.adam(model.parameters, 0.01, 0.9)])
    for _ in range(TIMES):
        for minibatch in minibatches:
            trainer.train_minibatch(minibatch)
    return float(trainer.previous_minibatch_loss_average)


def labels(count: int) -> Any:
    return np.eye(CLASSES, dtype=np.float32)[RANDOM.integers(CLASSES, size=count)]


def numbers(*shape: int) -> Any:
    return RANDOM.standard_normal(shape, np.float32)


def images() -> float:
    """Convolution, batch normalisation, pooling, dropout, dense products."""
    x, y = C.input_variable((3, 8, 8)), C.input_variable(CLASSES)
    layers = [Convolution2D(3, 4, pad=True), BatchNormalization(map_rank=1), C.relu, MaxPooling((3, 3), 2), Dropout(0.3), Dense(CLASSES)]
    return trained(Sequential(layers)(x), x, y, [{x: numbers(n, 3, 8, 8), y: labels(n)} for n in (6, 3)])


def recurrences() -> float:
    """Loops over the steps of sequences."""
    x, y = C.sequence.input_variable(7), C.input_variable(CLASSES)
    model = Sequential([Recurrence(LSTM(12)), Recurrence(GRU(10)), C.sequence.last, Dense(CLASSES)])(x)
    lengths = (5, 3, 4), (2, 6, 1, 3)
    return trained(model, x, y, [{x: [numbers(n, 7) for n in each], y: labels(len(each))} for each in lengths])


def attention() -> float:
    """Attention, and normalisation of layers."""
    x, y = C.input_variable((9, 16)), C.input_variable(CLASSES)
    query, key, value = (Dense(16, input_rank=1)(x) for _ in range(3))
    attended = C.times(C.softmax(C.times(query, C.transpose(key, (1, 0))) * 0.25, axis=-1), value)
    model = Dense(CLASSES)(LayerNormalization()(x + attended))
    return trained(model, x, y, [{x: numbers(n, 9, 16), y: labels(n)} for n in (4, 2)])


def words() -> float:
    """Sparse rows, and gradients of some rows of a parameter."""
    x, y = C.sequence.input_variable(20, is_sparse=True), C.sequence.input_variable(CLASSES, is_sparse=True)

    def rows(count: int, width: int) -> Any:
        return csr_matrix(np.eye(width, dtype=np.float32)[RANDOM.integers(width, size=count)])

    lengths = (4, 2), (3, 5, 1)
    model = Sequential([Embedding(6), Dense(CLASSES)])(x)
    return trained(model, x, y, [{x: [rows(n, 20) for n in each], y: [rows(n, CLASSES) for n in each]} for each in lengths])


KINDS: dict[str, Callable[[], float]] = {kind.__name__: kind for kind in (images, recurrences, attention, words)}

if __name__ == "__main__":
    main(sys.argv[1:])
