"""The workloads in opencntk."""

from __future__ import annotations

from typing import Any

import cntk as C

from . import Step, Workload
from .data import CELLS, CLASSES, FILTERS, HIDDEN, MOMENTUM, RATE, ROW, SIDE, TAGS, WORD, images, labels, one_hot, rows, sentences


def dense() -> C.Function:
    with C.layers.default_options(activation=C.relu):
        layers = C.layers.Sequential([C.layers.Dense(HIDDEN), C.layers.Dense(HIDDEN), C.layers.Dense(CLASSES, activation=None)])
    return layers(C.input_variable(ROW, name="x"))


def convolutional() -> C.Function:
    with C.layers.default_options(activation=C.relu, pad=True):
        layers = [part for filters in FILTERS for part in (C.layers.Convolution2D((3, 3), filters), C.layers.MaxPooling((2, 2), strides=2))]
        return C.layers.Sequential([*layers, C.layers.Dense(CLASSES, activation=None)])(C.input_variable((1, SIDE, SIDE), name="x"))


def _training(model: C.Function, y: Any, data: Any, targets: Any) -> Step:
    learner = C.momentum_sgd(model.parameters, RATE, MOMENTUM, unit_gain=False, minibatch_size=C.learners.IGNORE)
    trainer = C.Trainer(model, C.cross_entropy_with_softmax(model, y), [learner])
    x = model.arguments[0]
    return lambda: trainer.train_minibatch({x: data, y: targets})


def _evaluating(model: C.Function, data: Any) -> Step:
    x = model.arguments[0]
    return lambda: model.eval({x: data})


def _train_sentences() -> Step:
    x, y = C.sequence.input_variable(WORD), C.sequence.input_variable(TAGS)
    model = C.layers.Sequential([C.layers.Recurrence(C.layers.LSTM(CELLS)), C.layers.Dense(TAGS)])(x)
    words = sentences()
    return _training(model, y, words, [one_hot(labels(len(sentence), TAGS), TAGS) for sentence in words])


WORKLOADS: dict[str, Workload] = {
    "train rows": lambda: _training(dense(), C.input_variable(CLASSES), rows(64), one_hot(labels(64))),
    "train images": lambda: _training(convolutional(), C.input_variable(CLASSES), images(32), one_hot(labels(32))),
    "train sentences": _train_sentences,
    "one row": lambda: _evaluating(dense(), rows(1)),
    "256 rows": lambda: _evaluating(dense(), rows(256)),
    "one image": lambda: _evaluating(convolutional(), images(1)),
}
