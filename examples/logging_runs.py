"""Logging a run: train a multi-layer perceptron on handwritten digits in a loop of one's own, log its losses and errors to MLflow.

    python examples/logging_runs.py                   8 x 8 digits that come with scikit-learn, enlarged
    python examples/logging_runs.py --data FOLDER     MNIST's own files

Needs ``pip install opencntk[mlflow,demo]``. ``mlflow ui`` shows the run: its parameters, the curves of loss and error, and their figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import mnist

import cntk as C

INPUT_DIM = 784
HIDDEN_LAYERS = 2
HIDDEN_DIM = 400
CLASSES = 10


def create_model(features: Any) -> Any:
    """The network: dense layers with rectified linear units, then a linear one."""
    with C.layers.default_options(init=C.glorot_uniform(), activation=C.relu):
        hidden = C.layers.For(range(HIDDEN_LAYERS), lambda: C.layers.Dense(HIDDEN_DIM))
        return C.layers.Dense(CLASSES, activation=None)(hidden(features))


def train(data: mnist.Digits, minibatch_size: int, minibatches: int) -> tuple[Any, list[float], list[float]]:
    """Train a new network.

    Returns:
        The trainer, and loss and error of each minibatch.
    """
    features, label = C.input_variable(INPUT_DIM), C.input_variable(CLASSES)
    model = create_model(features / 255.0)
    loss = C.cross_entropy_with_softmax(model, label)
    error = C.classification_error(model, label)
    learner = C.sgd(model.parameters, C.learning_parameter_schedule(0.2))
    trainer = C.Trainer(model, (loss, error), [learner], [C.logging.ProgressPrinter(freq=100)])
    source = C.io.MinibatchSourceFromData({"features": pixels(data), "labels": data.labels}, max_samples=minibatches * minibatch_size)
    losses, errors = [], []
    for _ in range(minibatches):
        minibatch = source.next_minibatch(minibatch_size)
        trainer.train_minibatch({features: minibatch[source.streams.features], label: minibatch[source.streams.labels]})
        losses.append(trainer.previous_minibatch_loss_average)
        errors.append(trainer.previous_minibatch_evaluation_average)
    return trainer, losses, errors


def evaluate(trainer: Any, data: mnist.Digits, minibatch_size: int = 512) -> float:
    """Share of digits that are not recognised."""
    features, label = trainer.loss_function.arguments
    images, labels = pixels(data), data.labels
    wrong = 0.0
    for start in range(0, len(labels), minibatch_size):
        part = slice(start, start + minibatch_size)
        wrong += trainer.test_minibatch({features: images[part], label: labels[part]}) * len(labels[part])
    return wrong / len(labels)


def pixels(data: mnist.Digits) -> Any:
    """Images as rows of numbers from 0 to 255."""
    return data.images.reshape(-1, INPUT_DIM) * 255


def main(arguments: Sequence[str] | None = None) -> tuple[str | None, float]:
    """Run the example; return the run's id and the share of test digits that are not recognised."""
    parser = argparse.ArgumentParser(description="Train a network that recognises handwritten digits; log the run to MLflow.")
    parser.add_argument("--data", help="folder with MNIST's files; scikit-learn's digits where left out")
    parser.add_argument("--minibatch-size", type=int, default=64)
    parser.add_argument("--minibatches", type=int, default=1000)
    options = parser.parse_args(arguments)

    C.cntk_py.set_fixed_random_seed(1)
    training, tested = mnist.load(options.data)
    params = {"hidden layers": HIDDEN_LAYERS, "hidden dim": HIDDEN_DIM, "minibatch size": options.minibatch_size}
    with C.logging.MLflowProgressWriter(run_name="digits", params=params) as run_logger:
        trainer, losses, errors = train(training, options.minibatch_size, options.minibatches)
        error = evaluate(trainer, tested)
        run_logger.log("Loss", losses)
        run_logger.log("Error", errors)
        run_logger.log("Test error", error)
    print(f"test error {error:.2%}; the run is {run_logger.run_id}")
    return run_logger.run_id, error


if __name__ == "__main__":
    main()
