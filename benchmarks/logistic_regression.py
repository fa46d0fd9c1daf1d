"""Logistic regression as in CNTK's guided tour: two inputs, two classes, sparse labels, SGD.

So small that it measures what a framework adds to the arithmetic.
"""

import numpy as np
from data import classes, features, pairs, sparse_one_hot
from torch_mode import prepared
from training import cntk_training, torch_training

TITLE = "logistic regression, minibatch 32: training step"
SIZE, INPUTS, CLASSES = 32, 2, 2
RATE = 0.1

FLOP = 2 * SIZE * 2 * INPUTS * CLASSES
BYTES = 4 * (SIZE * (INPUTS + 1) + 3 * (INPUTS + 1) * CLASSES)


def cntk_step():
    import cntk as C

    x, y = C.input_variable(INPUTS), C.input_variable(CLASSES, is_sparse=True)
    model = C.layers.Dense(CLASSES)(x)
    learner = C.sgd(model.parameters, C.learning_parameter_schedule(RATE))
    return cntk_training(model, x, y, learner)


def cntk_data():
    pool = features(SIZE, (INPUTS,))
    return pairs(pool, sparse_one_hot(classes(pool, CLASSES), CLASSES))


def torch_step():
    import torch

    model = prepared(torch.nn.Linear(INPUTS, CLASSES))
    learner = torch.optim.SGD(model.parameters(), lr=RATE)
    return torch_training(model, learner)


def torch_data():
    import torch

    pool = features(SIZE, (INPUTS,))
    return pairs(map(torch.from_numpy, pool), map(torch.from_numpy, classes(pool, CLASSES)))


def numpy_step():
    """The arithmetic alone, written down without a framework."""
    weights = np.random.RandomState(2).randn(INPUTS, CLASSES).astype(np.float32)
    bias = np.zeros(CLASSES, np.float32)
    row = np.arange(SIZE)

    def step(samples, labels):
        scores = samples @ weights + bias
        gradient = np.exp(scores - scores.max(axis=1, keepdims=True))
        gradient /= gradient.sum(axis=1, keepdims=True)
        -np.log(gradient[row, labels.indices]).sum()
        (scores.argmax(axis=1) != labels.indices).sum()
        gradient[row, labels.indices] -= 1
        weights[...] -= RATE / SIZE * (samples.T @ gradient)
        bias[...] -= RATE / SIZE * gradient.sum(axis=0)

    return step


numpy_data = cntk_data
