"""Trains three small networks, large enough for compiled loops, and prints their losses, and whether compiled loops
have been used.

    python -I tests/small_training.py

Needs nothing but the installed package, so that it can be run wherever that is to be tried.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cntk as C

UPDATES = 4


def losses(model: Any, label: Any, learner: Any, minibatches: Iterator[Any]) -> list[float]:
    """The loss of each minibatch of a training."""
    loss = C.cross_entropy_with_softmax(model, label)
    trainer = C.Trainer(model, (loss, C.classification_error(model, label)), [learner])
    found = []
    for _ in range(UPDATES):
        trainer.train_minibatch(next(minibatches))
        found.append(round(trainer.previous_minibatch_loss_average, 6))
    return found


def images() -> list[float]:
    """Convolution, batch normalisation, pooling, dropout and a part of what they give."""
    random = np.random.default_rng(1)
    x, y = C.input_variable((3, 24, 24)), C.input_variable(10)
    hidden = C.layers.Sequential([
        C.layers.Convolution2D((3, 3), 16, pad=True, init=C.glorot_uniform(seed=1)),
        C.layers.BatchNormalization(map_rank=1),
        C.relu,
        C.layers.MaxPooling((2, 2), (2, 2)),
        C.layers.Dropout(0.2, seed=5),
        C.layers.Convolution2D((5, 5), 24, C.relu, pad=True, init=C.glorot_uniform(seed=2)),
    ])(x)  # fmt: skip
    part = C.softmax(hidden[:, 2:10, 1:9], axis=-1) + C.reduce_max(hidden[:20], axis=0)[:, 2:10, 1:9]
    model = C.layers.Dense(10, init=C.glorot_uniform(seed=3))(part)
    data = (
        {x: random.normal(size=(32, 3, 24, 24)).astype(np.float32), y: np.eye(10, dtype=np.float32)[random.integers(0, 10, 32)]}
        for _ in range(UPDATES)
    )
    return losses(model, y, C.momentum_sgd(model.parameters, 0.05, 0.9), data)


def vectors() -> list[float]:
    """Large products of matrices, a chain of operators, and Adam."""
    random = np.random.default_rng(2)
    x, y = C.input_variable(400), C.input_variable(16)
    hidden = C.layers.Dense(512, init=C.glorot_uniform(seed=1))(x)
    hidden = C.tanh(hidden * C.sigmoid(hidden) + 1)
    model = C.layers.Dense(16, init=C.glorot_uniform(seed=2))(C.layers.Dense(512, C.relu, init=C.glorot_uniform(seed=3))(hidden))
    data = (
        {x: random.normal(size=(512, 400)).astype(np.float32), y: np.eye(16, dtype=np.float32)[random.integers(0, 16, 512)]}
        for _ in range(UPDATES)
    )
    return losses(model, y, C.adam(model.parameters, 0.001, 0.9), data)


def texts() -> list[float]:
    """Sparse words out of a text file, an embedding and a recurrence."""
    words, tags, random = 2000, 7, np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.ctf"
        lines = []
        for sequence in range(128):
            for _ in range(random.integers(1, 12)):
                word = int(random.integers(words))
                lines.append(f"{sequence} |word {word}:1 {(word * 7) % words}:0.5 |tag {word % tags}:1\n")
        path.write_text("".join(lines))
        streams = C.io.StreamDefs(word=C.io.StreamDef("word", words, is_sparse=True), tag=C.io.StreamDef("tag", tags, is_sparse=True))
        source = C.io.MinibatchSource(C.io.CTFDeserializer(str(path), streams), randomize=False)
        x, y = C.sequence.input_variable(words, is_sparse=True), C.sequence.input_variable(tags, is_sparse=True)
        layers = [
            C.layers.Embedding(96, init=C.glorot_uniform(seed=1)),
            C.layers.Recurrence(C.layers.LSTM(96, init=C.glorot_uniform(seed=2))),
            C.layers.Dense(tags, init=C.glorot_uniform(seed=3)),
        ]
        model = C.layers.Sequential(layers)(x)
        data = (source.next_minibatch(300, input_map={x: source.streams.word, y: source.streams.tag}) for _ in range(UPDATES))
        return losses(model, y, C.sgd(model.parameters, 0.5), data)


if __name__ == "__main__":
    found: dict[str, Any] = {train.__name__: train() for train in (images, vectors, texts)}
    print(json.dumps({**found, "is_compiled": "cntk.core.machine.loops" in sys.modules}))
