"""A residual network of 20 layers on images of CIFAR's shape, trained with momentum: convolutions and batch normalisations.

Source: K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR 2016, section 4.2.
"""

from data import classes, features, one_hot, pairs
from torch_mode import prepared
from training import cntk_training, torch_training

TITLE = "residual network of 20 layers, 64 images of 32x32, momentum: training step"
SIZE, SIDE, CHANNELS, CLASSES = 64, 32, 3, 10
STAGES, BLOCKS = (16, 32, 64), 3
RATE, MOMENTUM = 0.05, 0.9
FORGET = 0.1
"""Weight of a minibatch's statistics in the running ones."""

TIME_CONSTANT = 607.4
"""The same in samples: -SIZE / log(1 - FORGET)."""


def convolutions():
    """Pixels of the result, weights, and filters of each convolution."""
    yield SIDE**2, STAGES[0] * CHANNELS * 9, STAGES[0]
    before = STAGES[0]
    for stage, filters in enumerate(STAGES):
        pixels = (SIDE >> stage) ** 2
        for _ in range(BLOCKS):
            yield pixels, filters * before * 9, filters
            yield pixels, filters * filters * 9, filters
            if before != filters:
                yield pixels, filters * before, filters
            before = filters


FIRST = SIDE**2 * STAGES[0] * CHANNELS * 9
PER_IMAGE = sum(pixels * weights for pixels, weights, _ in convolutions()) + STAGES[-1] * CLASSES
WEIGHTS = sum(weights + 2 * filters for _, weights, filters in convolutions()) + STAGES[-1] * CLASSES
FLOP = 2 * SIZE * (3 * PER_IMAGE - FIRST)
# Data in; weights, their gradients and their momentum are each read and written once.  What is kept for the gradients, what a convolution
# gives and what becomes of it after its normalisation, is larger than caches: it is written and read once, and so are its gradients.
ACTIVATIONS = SIZE * sum(pixels * filters for pixels, _, filters in convolutions())
BYTES = 4 * (SIZE * (CHANNELS * SIDE**2 + CLASSES) + 6 * WEIGHTS + 8 * ACTIVATIONS)


def cntk_model(x):
    """The network, as CNTK's example for CIFAR-10 builds it."""
    import cntk as C
    from cntk.layers import BatchNormalization, Convolution2D, Dense, GlobalAveragePooling

    def convolution(x, filters, size=3, stride=1):
        y = Convolution2D(size, filters, strides=stride, pad=True, bias=False, init=C.he_normal())(x)
        return BatchNormalization(map_rank=1, normalization_time_constant=TIME_CONSTANT)(y)

    x = C.relu(convolution(x, STAGES[0]))
    for filters in STAGES:
        for _ in range(BLOCKS):
            stride = filters // x.shape[0]
            y = convolution(C.relu(convolution(x, filters, stride=stride)), filters)
            x = C.relu(y + (x if stride == 1 else convolution(x, filters, size=1, stride=stride)))
    return Dense(CLASSES)(GlobalAveragePooling()(x))


def torch_model():
    """The same network."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before, filters):
            super().__init__()
            stride = filters // before
            self.first, self.second = normalised(before, filters, stride=stride), normalised(filters, filters)
            self.shortcut = nn.Identity() if stride == 1 else normalised(before, filters, size=1, stride=stride)

        def forward(self, x):
            return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))

    def normalised(before, filters, size=3, stride=1):
        convolution = nn.Conv2d(before, filters, size, stride, padding=size // 2, bias=False)
        nn.init.kaiming_normal_(convolution.weight)
        return nn.Sequential(convolution, nn.BatchNorm2d(filters, momentum=FORGET))

    blocks, before = [], STAGES[0]
    for filters in STAGES:
        for _ in range(BLOCKS):
            blocks.append(Block(before, filters))
            before = filters
    ends = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES)]
    return nn.Sequential(normalised(CHANNELS, STAGES[0]), nn.ReLU(), *blocks, *ends)


def cntk_step():
    import cntk as C

    x, y = C.input_variable((CHANNELS, SIDE, SIDE)), C.input_variable(CLASSES)
    model = cntk_model(x)
    learner = C.momentum_sgd(model.parameters, C.learning_parameter_schedule(RATE), C.momentum_schedule(MOMENTUM))
    return cntk_training(model, x, y, learner)


def cntk_data():
    pool = features(SIZE, (CHANNELS, SIDE, SIDE))
    return pairs(pool, one_hot(classes(pool, CLASSES), CLASSES))


def torch_step():
    import torch

    model = prepared(torch_model())
    learner = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    return torch_training(model, learner)


def torch_data():
    import torch

    pool = features(SIZE, (CHANNELS, SIDE, SIDE))
    return pairs(map(torch.from_numpy, pool), map(torch.from_numpy, classes(pool, CLASSES)))
