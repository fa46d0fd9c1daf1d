"""A network of three dense layers, 784-400-400-10 with ReLU, trained with Adam: matrix products and the learner's update."""

from data import classes, features, one_hot, pairs
from torch_mode import prepared
from training import cntk_training, torch_training

TITLE = "dense network 784-400-400-10, minibatch 256, Adam: training step"
SIZE, INPUTS, HIDDEN, CLASSES = 256, 784, 400, 10
RATE, MOMENTUM, VARIANCE_MOMENTUM = 0.001, 0.9, 0.999

FIRST, WEIGHTS = INPUTS * HIDDEN, INPUTS * HIDDEN + HIDDEN * HIDDEN + HIDDEN * CLASSES
# Forward, weights' gradients, and activations' gradients, which the first layer does without.
FLOP = 2 * SIZE * (3 * WEIGHTS - FIRST)
# Data in; weights, their gradients and Adam's two averages are each read and written once.
BYTES = 4 * (SIZE * (INPUTS + CLASSES) + 8 * WEIGHTS)


def cntk_step():
    import cntk as C

    x, y = C.input_variable(INPUTS), C.input_variable(CLASSES)
    dense = C.layers.Dense
    model = C.layers.Sequential([dense(HIDDEN, activation=C.relu), dense(HIDDEN, activation=C.relu), dense(CLASSES)])(x)
    rate = C.learning_parameter_schedule(RATE)
    learner = C.adam(model.parameters, rate, MOMENTUM, variance_momentum=VARIANCE_MOMENTUM)
    return cntk_training(model, x, y, learner)


def cntk_data():
    pool = features(SIZE, (INPUTS,))
    return pairs(pool, one_hot(classes(pool, CLASSES), CLASSES))


def torch_step():
    import torch

    nn = torch.nn
    layers = nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)
    model = prepared(nn.Sequential(*layers))
    learner = torch.optim.Adam(model.parameters(), lr=RATE, betas=(MOMENTUM, VARIANCE_MOMENTUM))
    return torch_training(model, learner)


def torch_data():
    import torch

    pool = features(SIZE, (INPUTS,))
    return pairs(map(torch.from_numpy, pool), map(torch.from_numpy, classes(pool, CLASSES)))


def jax_step():
    import jax
    from jax_mode import adam, dense, training

    def apply(parameters, key, x):
        *hidden, (W, b) = parameters
        for V, a in hidden:
            x = jax.nn.relu(x @ V + a)
        return x @ W + b

    layers = dense(INPUTS, HIDDEN), dense(HIDDEN, HIDDEN, 1), dense(HIDDEN, CLASSES, 2)
    return training(apply, layers, adam(RATE, MOMENTUM, VARIANCE_MOMENTUM))


def jax_data():
    pool = features(SIZE, (INPUTS,))
    return pairs(pool, classes(pool, CLASSES))
