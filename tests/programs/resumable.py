"""A training that uses all that a checkpoint must hold; ``python resumable.py FOLDER`` goes on where an earlier process was stopped.

It prints the parameters' digest, so that a run that was stopped any number of times can be compared with one that was not.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

import cntk as C
from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.train import DataUnit

WIDTH, CLASSES, SAMPLES = 8, 3, 200


def write_data(path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, SAMPLES)
    inputs = rng.standard_normal((SAMPLES, WIDTH)) + labels[:, None]
    lines = (f"|x {' '.join(f'{v:.4f}' for v in x)} |y {label}:1" for x, label in zip(inputs, labels, strict=True))
    path.write_text("\n".join(lines) + "\n")


def network(x: Any) -> Any:
    """Dropout, noise, normalisation: what draws random numbers or keeps statistics."""
    hidden = C.layers.Dense(16, activation=C.relu)(x)
    hidden = C.layers.BatchNormalization()(C.layers.Dropout(0.2)(hidden))
    noisy = hidden * C.random.uniform_like(hidden, 0.9, 1.1)
    return C.layers.Dense(CLASSES)(noisy)


def train(folder: Path, samples: int) -> str:
    x, y = C.input_variable(WIDTH), C.input_variable(CLASSES, is_sparse=True)
    z = network(x)
    loss, error = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    weights = [p for p in z.parameters if len(p.shape) > 1]
    others = [p for p in z.parameters if len(p.shape) < 2]
    rates = C.learning_parameter_schedule([0.02, 0.01, 0.005], epoch_size=700)
    first = C.adam(weights, rates, C.momentum_schedule(0.9), gaussian_noise_injection_std_dev=0.001)
    second = C.momentum_sgd(others, 0.01, C.momentum_as_time_constant_schedule(100), l2_regularization_weight=1e-4)
    writer = C.cntk_py.ProgressWriter(3)
    trainer = C.Trainer(z, (loss, error), [first, second], writer)

    def slow_down(index: int, average_error: float, num_samples: int, num_minibatches: int) -> bool:
        second.reset_learning_rate(C.learning_parameter_schedule(0.01 / (1 + index) + average_error / 1000))
        return True

    streams = StreamDefs(x=StreamDef(field="x", shape=WIDTH), y=StreamDef(field="y", shape=CLASSES, is_sparse=True))
    path = str(folder / "data.ctf")
    source = MinibatchSource(CTFDeserializer(path, streams), randomization_seed=3)
    held_out = MinibatchSource(CTFDeserializer(path, streams), randomize=False, max_sweeps=1)
    C.training_session(
        trainer,
        source,
        C.minibatch_size_schedule([8, 16], epoch_size=1000),
        {x: source.streams.x, y: source.streams.y},
        progress_frequency=(7, DataUnit.minibatch),
        max_samples=samples,
        checkpoint_config=C.CheckpointConfig(str(folder / "model"), (2, DataUnit.minibatch)),
        cv_config=C.CrossValidationConfig(held_out, 300, minibatch_size=50, callback=slow_down),
    ).train()
    digest = hashlib.sha256()
    for variable in (*z.parameters, *z.constants):
        digest.update(np.ascontiguousarray(variable.value).tobytes())
    digest.update(repr([learner.total_number_of_samples_seen() for learner in (first, second)]).encode())
    digest.update(repr(writer.total_training_updates()).encode())
    return digest.hexdigest()


if __name__ == "__main__":
    place = Path(sys.argv[1])
    if not (place / "data.ctf").exists():
        write_data(place / "data.ctf")
    print("started", flush=True)
    print(train(place, int(sys.argv[2])), flush=True)
