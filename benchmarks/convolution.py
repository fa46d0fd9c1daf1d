"""The convolutional network of CNTK's guided tour, trained with momentum."""

from data import classes, features, one_hot, pairs
from torch_mode import prepared
from training import cntk_training, torch_training

TITLE = "convolutional network, minibatch 256: training step"
SIZE, SIDE, CLASSES = 256, 28, 10
RATE, MOMENTUM = 0.01, 0.9

# Multiplications an image and layer: pixels of the result x filters x what a filter sees.
FIRST = 28 * 28 * 32 * 5 * 5
PER_IMAGE = FIRST + 11 * 11 * 48 * 32 * 3 * 3 + 3 * 3 * 64 * 48 * 3 * 3 + 576 * 96 + 96 * CLASSES
WEIGHTS = 32 * 5 * 5 + 48 * 32 * 3 * 3 + 64 * 48 * 3 * 3 + 576 * 96 + 96 * CLASSES
FLOP = 2 * SIZE * (3 * PER_IMAGE - FIRST)
# Data in; weights, their gradients and their momentum are each read and written once.
BYTES = 4 * (SIZE * (SIDE * SIDE + CLASSES) + 6 * WEIGHTS)


def cntk_model(x):
    """The network, as the guided tour writes it."""
    import cntk as C
    from cntk.layers import Convolution2D, Dense, Dropout, MaxPooling, Sequential

    with C.layers.default_options(activation=C.relu):
        return Sequential(
            [
                Convolution2D((5, 5), num_filters=32, reduction_rank=0, pad=True),
                MaxPooling((3, 3), strides=(2, 2)),
                Convolution2D((3, 3), num_filters=48),
                MaxPooling((3, 3), strides=(2, 2)),
                Convolution2D((3, 3), num_filters=64),
                Dense(96),
                Dropout(dropout_rate=0.5),
                Dense(CLASSES, activation=None),
            ]
        )(x)


def torch_model():
    """The same network."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(32, 48, 3), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(48, 64, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(576, 96), nn.ReLU(), nn.Dropout(0.5), nn.Linear(96, CLASSES),
    )  # fmt: skip


def cntk_step():
    import cntk as C

    x, y = C.input_variable((SIDE, SIDE)), C.input_variable(CLASSES)
    model = cntk_model(x)
    learner = C.momentum_sgd(model.parameters, C.learning_parameter_schedule(RATE), C.momentum_schedule(MOMENTUM))
    return cntk_training(model, x, y, learner)


def cntk_data():
    pool = features(SIZE, (SIDE, SIDE))
    return pairs(pool, one_hot(classes(pool, CLASSES), CLASSES))


def torch_step():
    import torch

    model = prepared(torch_model())
    learner = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    return torch_training(model, learner)


def torch_data():
    import torch

    pool = features(SIZE, (1, SIDE, SIDE))
    return pairs(map(torch.from_numpy, pool), map(torch.from_numpy, classes(pool, CLASSES)))


def jax_step():
    import jax
    import jax.numpy as jnp
    from jax_mode import dense, glorot, momentum_sgd, training

    def convolved(x, layer, padding):
        filters, bias = layer
        y = jax.lax.conv_general_dilated(x, filters, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.nn.relu(y + bias)

    def pooled(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "VALID")

    def apply(parameters, key, x):
        first, second, third, (V, a), (W, b) = parameters
        x = convolved(pooled(convolved(pooled(convolved(x, first, "SAME")), second, "VALID")), third, "VALID")
        x = jax.nn.relu(x.reshape(len(x), -1) @ V + a)
        x = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), 2 * x, 0)
        return x @ W + b

    shapes = (5, 5, 1, 32), (3, 3, 32, 48), (3, 3, 48, 64)
    filters = [(glorot(shape), jnp.zeros(shape[-1], jnp.float32)) for shape in shapes]
    return training(apply, (*filters, dense(576, 96), dense(96, CLASSES)), momentum_sgd(RATE * (1 - MOMENTUM), MOMENTUM))


def jax_data():
    pool = features(SIZE, (SIDE, SIDE, 1))
    return pairs(pool, classes(pool, CLASSES))
