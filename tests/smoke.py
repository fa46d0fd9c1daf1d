"""Everything a user touches, once, in about a second.

Runs without pytest too (``python tests/smoke.py``), for the environment that holds the built wheel and nothing else.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

import numpy as np

import cntk as C
from cntk.cli import main


def data() -> tuple[np.ndarray, np.ndarray]:
    """Points of two classes that a line separates, with one-hot labels."""
    points = np.random.default_rng(1).normal(size=(256, 2)).astype(np.float32)
    return points, np.eye(2, dtype=np.float32)[(points.sum(axis=1) > 0).astype(int)]


def test_arithmetic() -> None:
    x = C.input_variable(2, name="x")
    np.testing.assert_allclose((2 * x + 1).eval({x: np.array([[1, 2], [3, 4]], np.float32)}), [[3, 5], [7, 9]])


def test_gradients() -> None:
    x = C.input_variable(2, needs_gradient=True)
    np.testing.assert_allclose(C.square(x).grad({x: [[1, 2]]}), [[2, 4]])


def test_functions_are_called() -> None:
    x = C.input_variable(3)
    model = C.layers.Dense(2, activation=C.relu)(x)
    assert model(np.ones((4, 3), np.float32)).shape == (4, 2)
    assert model.clone("clone").parameters[0].shape == (3, 2)


def test_graphs_are_searched() -> None:
    x = C.input_variable(3)
    model = C.tanh(C.times(x, C.parameter((3, 2), name="W")), name="result")
    assert model.find_by_name("W").shape == (3, 2)
    assert model.find_by_name("result").op_name == "Tanh"


def test_convolution() -> None:
    x = C.input_variable((1, 8, 8))
    model = C.layers.Sequential([C.layers.Convolution2D((3, 3), 4, activation=C.relu), C.layers.MaxPooling((2, 2), (2, 2))])(x)
    assert model.eval({x: np.ones((2, 1, 8, 8), np.float32)}).shape == (2, 4, 3, 3)


def learners(parameters: object) -> Iterator[object]:
    rate, momentum = C.learning_parameter_schedule(0.1), C.momentum_schedule(0.9)
    yield C.sgd(parameters, rate)
    yield C.momentum_sgd(parameters, rate, momentum)
    yield C.adam(parameters, C.learning_parameter_schedule_per_sample(0.1), momentum)


def test_training() -> None:
    points, labels = data()
    for number in range(3):
        x, y = C.input_variable(2), C.input_variable(2)
        model = C.layers.Dense(2)(x)
        loss, error = C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)
        learner = list(learners(model.parameters))[number]
        trainer = C.Trainer(model, (loss, error), [learner])
        for start in range(0, 10 * 256, 32):
            rows = slice(start % 256, start % 256 + 32)
            trainer.train_minibatch({x: points[rows], y: labels[rows]})
        assert trainer.test_minibatch({x: points, y: labels}) < 0.1


def test_training_of_a_criterion_with_progress() -> None:
    points, labels = data()
    x, y = C.input_variable(2), C.input_variable(2)
    model = C.layers.Dense(2)(x)
    criterion = C.combine([C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        criterion.train(
            (points, labels),
            minibatch_size=32,
            max_epochs=2,
            parameter_learners=[C.sgd(model.parameters, C.learning_parameter_schedule(0.5))],
            callbacks=[C.logging.ProgressPrinter()],
        )
        assert criterion.test((points, labels)).metric < 0.2
    assert "Finished Epoch[2" in printed.getvalue()


def test_mistakes_are_explained() -> None:
    message = ""
    try:
        C.times(C.input_variable(3), C.parameter((2, 2)))
    except ValueError as error:
        message = str(error)
    assert "Times" in message
    assert "smoke.py" in message


def test_the_program() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["doctor"]) == 0
        assert main(["plugins"]) == 0
    assert "numpy: ready" in printed.getvalue()


if __name__ == "__main__":
    tests = [(name, test) for name, test in list(globals().items()) if name.startswith("test_")]
    for name, test in tests:
        test()
        print(f"{name} passed")
    print(f"{len(tests)} passed, with {C.__file__}")
