"""A Transformer encoder of usual width, on sequences of one length: the network of transformer.py, wider and deeper."""

from data import classes, features, one_hot, pairs
from transformer import CLASSES, Encoder, cntk_step_of, flop, jax_step_of, nbytes, torch_step_of

TITLE = "Transformer encoder, 6 layers of width 512 with 8 heads, 8 sequences of 128 steps, momentum: training step"
SIZE = 8
SHAPE = Encoder(128, 512, 8, 2048, 6)
FLOP, BYTES = flop(SHAPE, [SHAPE.steps] * SIZE), nbytes(SHAPE, [SHAPE.steps] * SIZE)


def cntk_step():
    return cntk_step_of(SHAPE)


def cntk_data():
    pool = features(SIZE, (SHAPE.steps, SHAPE.width))
    return pairs(pool, one_hot(classes(pool, CLASSES), CLASSES))


def torch_step():
    return torch_step_of(SHAPE)


def torch_data():
    import torch

    return [tuple(map(torch.from_numpy, minibatch)) for minibatch in jax_data()]


def jax_step():
    return jax_step_of(SHAPE)


def jax_data():
    pool = features(SIZE, (SHAPE.steps, SHAPE.width))
    return pairs(pool, classes(pool, CLASSES))
