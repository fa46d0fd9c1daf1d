"""A small Transformer encoder, built from layers and operators, that classifies sequences of 64 steps: dense layers, layer normalisation
and attention with several heads.

Source: A. Vaswani et al., "Attention is all you need", NIPS 2017, section 3.
"""

from collections import namedtuple

import numpy as np
from data import classes, features, one_hot, pairs
from torch_mode import prepared
from training import cntk_training, torch_training

TITLE = "Transformer encoder, 2 layers of width 128 with 4 heads, 16 sequences of 64 steps, momentum: training step"
SIZE, CLASSES = 16, 10
RATE, MOMENTUM = 0.01, 0.9
EPSILON = 1e-5

Encoder = namedtuple("Encoder", "steps width heads inner layers")
"""Steps of a sequence at most, numbers of a step, heads of attention, numbers between the two dense layers, and layers."""

SHAPE = Encoder(64, 128, 4, 512, 2)


def weights(shape):
    """Weights of the network."""
    layer = 4 * shape.width**2 + 2 * shape.width * shape.inner + 9 * shape.width + shape.inner
    return shape.layers * layer + shape.steps * shape.width + shape.width * CLASSES


def flop(shape, lengths):
    """Operations of a training step: queries, keys, values, their result and the two dense layers; scores and averages of all steps."""
    dense = 4 * shape.width**2 + 2 * shape.width * shape.inner
    layers = sum(steps * (dense + 2 * steps * shape.width) for steps in lengths)
    return 2 * 3 * (shape.layers * layers + len(lengths) * shape.width * CLASSES)


def nbytes(shape, lengths):
    """Data in; weights, their gradients and their momentum are each read and written once."""
    return 4 * (sum(lengths) * shape.width + len(lengths) * CLASSES + 6 * weights(shape))


FLOP, BYTES = flop(SHAPE, [SHAPE.steps] * SIZE), nbytes(SHAPE, [SHAPE.steps] * SIZE)


def cntk_model(x, shape=SHAPE):
    """The network; samples are whole sequences (steps, width)."""
    import cntk as C

    steps, width, heads, inner, layers = shape

    def dense(x, outputs, **options):
        return C.layers.Dense(outputs, map_rank=1, **options)(x)

    def normalised(x):
        x = x - C.reduce_mean(x, axis=-1)
        return x / C.sqrt(C.reduce_mean(x * x, axis=-1) + EPSILON) * C.parameter(width, init=1) + C.parameter(width, init=0)

    def attention(x):
        queries, keys, values = (dense(x, width) for _ in range(3))

        def head(number):
            q, k, v = (C.slice(y, -1, number * width // heads, (number + 1) * width // heads) for y in (queries, keys, values))
            scores = C.times(q, C.transpose(k, (1, 0))) * (width // heads) ** -0.5
            return C.times(C.softmax(scores, axis=-1), v)

        return dense(C.splice(*map(head, range(heads)), axis=-1), width)

    x = x + C.parameter((steps, width), init=0)
    for _ in range(layers):
        x = normalised(x + attention(x))
        x = normalised(x + dense(dense(x, inner, activation=C.relu), width))
    return C.layers.Dense(CLASSES)(C.reshape(C.reduce_mean(x, axis=0), width))


def torch_model(shape=SHAPE):
    """The same network; where sequences have different lengths they are padded, and *lengths* is given as well."""
    import torch
    from torch import nn

    steps, width, heads, inner, layers = shape

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.positions = nn.Parameter(torch.zeros(steps, width))
            layer = nn.TransformerEncoderLayer(width, heads, inner, dropout=0, layer_norm_eps=EPSILON, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, layers)
            self.dense = nn.Linear(width, CLASSES)

        def forward(self, x, lengths=None):
            if lengths is None:
                return self.dense(self.encoder(x + self.positions).mean(1))
            longest = x.shape[1]
            padding = torch.arange(longest) >= lengths[:, None]
            y = self.encoder(x + self.positions[:longest], src_key_padding_mask=padding)
            return self.dense(y.masked_fill(padding[:, :, None], 0).sum(1) / lengths[:, None])

    return Model()


def cntk_step():
    return cntk_step_of(SHAPE)


def cntk_step_of(shape):
    """A step on whole sequences."""
    import cntk as C

    x, y = C.input_variable((shape.steps, shape.width)), C.input_variable(CLASSES)
    model = cntk_model(x, shape)
    learner = C.momentum_sgd(model.parameters, C.learning_parameter_schedule(RATE), C.momentum_schedule(MOMENTUM))
    return cntk_training(model, x, y, learner)


def cntk_data():
    pool = features(SIZE, (SHAPE.steps, SHAPE.width))
    return pairs(pool, one_hot(classes(pool, CLASSES), CLASSES))


def torch_step():
    return torch_step_of(SHAPE)


def torch_step_of(shape):
    """The same step."""
    import torch

    model = prepared(torch_model(shape))
    learner = torch.optim.SGD(model.parameters(), lr=RATE * (1 - MOMENTUM), momentum=MOMENTUM)
    return torch_training(model, learner)


def torch_data():
    import torch

    return [tuple(map(torch.from_numpy, minibatch)) for minibatch in jax_data()]


def jax_step():
    return jax_step_of(SHAPE)


def jax_step_of(shape):
    """The same step."""
    import jax
    import jax.numpy as jnp
    from jax_mode import dense, momentum_sgd, softmax_attention, training

    ones, zeros = np.ones(shape.width, np.float32), np.zeros(shape.width, np.float32)

    def layer(number):
        square = [dense(shape.width, shape.width, 10 * number + i) for i in range(4)]
        return square, dense(shape.width, shape.inner, number), dense(shape.inner, shape.width, number), [(ones, zeros)] * 2

    def normalised(x, norm):
        x = x - x.mean(axis=-1, keepdims=True)
        return x / jnp.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON) * norm[0] + norm[1]

    def apply(parameters, key, x):
        positions, layers, (W, b) = parameters
        x = x + positions
        for square, (up, up_bias), (down, down_bias), norms in layers:
            queries, keys, values = ((x @ W + b).reshape(*x.shape[:2], shape.heads, -1) for W, b in square[:3])
            mean = softmax_attention(queries, keys, values).reshape(x.shape)
            x = normalised(x + mean @ square[3][0] + square[3][1], norms[0])
            x = normalised(x + jax.nn.relu(x @ up + up_bias) @ down + down_bias, norms[1])
        return x.mean(axis=1) @ W + b

    positions = np.zeros((shape.steps, shape.width), np.float32)
    parameters = positions, [layer(number) for number in range(shape.layers)], dense(shape.width, CLASSES)
    return training(apply, parameters, momentum_sgd(RATE * (1 - MOMENTUM), MOMENTUM))


def jax_data():
    pool = features(SIZE, (SHAPE.steps, SHAPE.width))
    return pairs(pool, classes(pool, CLASSES))
