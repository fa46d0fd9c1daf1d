"""A residual network of 50 layers on images of 224x224 pixels, trained with momentum: blocks of a 1x1, a 3x3 and a 1x1 convolution.

Source: K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR 2016, table 1; the stride is that of the
3x3 convolution, as in PyTorch's.
"""

import numpy as np
from data import POOL, features, one_hot, pairs
from torch_mode import prepared
from training import cntk_training, torch_training

TITLE = "ResNet-50, 8 images of 224x224, momentum: training step"
SIZE, SIDE, CHANNELS, CLASSES = 8, 224, 3, 1000
STEM, STAGES, BLOCKS, WIDENING = 64, (64, 128, 256, 512), (3, 4, 6, 3), 4
RATE, MOMENTUM = 0.01, 0.9
TIME_CONSTANT = 75.9
"""Samples within which running statistics forget: -SIZE / log(1 - 0.1)."""


def convolutions():
    """Pixels of the result, weights, filters, and pixels and channels of the operand, of each convolution."""
    side = SIDE // 2
    yield side**2, STEM * CHANNELS * 49, STEM, SIDE**2, CHANNELS
    side, before = side // 2, STEM
    for stage, inner in enumerate(STAGES):
        for block in range(BLOCKS[stage]):
            stride = 2 if stage and not block else 1
            out = side // stride
            yield side**2, inner * before, inner, side**2, before
            yield out**2, inner * inner * 9, inner, side**2, inner
            yield out**2, WIDENING * inner * inner, WIDENING * inner, out**2, inner
            if not block:
                yield out**2, WIDENING * inner * before, WIDENING * inner, side**2, before
            side, before = out, WIDENING * inner


FIRST = (SIDE // 2) ** 2 * STEM * CHANNELS * 49
PER_IMAGE = sum(pixels * weights for pixels, weights, *_ in convolutions()) + WIDENING * STAGES[-1] * CLASSES
WEIGHTS = sum(weights + 2 * filters for _, weights, filters, *_ in convolutions()) + WIDENING * STAGES[-1] * CLASSES
FLOP = 2 * SIZE * (3 * PER_IMAGE - FIRST)
# As in resnet.py: data in; weights, gradients and momentum once each; results of convolutions and normalisations, and their gradients, go
# out to memory and come back.
ACTIVATIONS = sum(pixels * filters for pixels, _, filters, *_ in convolutions())
BYTES = 4 * (SIZE * (CHANNELS * SIDE**2 + CLASSES) + 6 * WEIGHTS + 8 * SIZE * ACTIVATIONS)


def cntk_model(x):
    """The network."""
    import cntk as C
    from cntk.layers import BatchNormalization, Convolution2D, Dense, GlobalAveragePooling, MaxPooling

    def convolution(x, filters, size=1, stride=1):
        y = Convolution2D(size, filters, strides=stride, pad=True, bias=False, init=C.he_normal())(x)
        return BatchNormalization(map_rank=1, normalization_time_constant=TIME_CONSTANT)(y)

    x = MaxPooling((3, 3), strides=2, pad=True)(C.relu(convolution(x, STEM, 7, 2)))
    for stage, inner in enumerate(STAGES):
        for block in range(BLOCKS[stage]):
            stride = 2 if stage and not block else 1
            y = C.relu(convolution(C.relu(convolution(x, inner)), inner, 3, stride))
            x = C.relu(convolution(y, WIDENING * inner) + (x if block else convolution(x, WIDENING * inner, 1, stride)))
    return Dense(CLASSES)(GlobalAveragePooling()(x))


def torch_model():
    """The same network."""
    import torch
    from torch import nn

    def normalised(before, filters, size=1, stride=1):
        convolution = nn.Conv2d(before, filters, size, stride, padding=size // 2, bias=False)
        nn.init.kaiming_normal_(convolution.weight)
        return nn.Sequential(convolution, nn.BatchNorm2d(filters))

    class Block(nn.Module):
        def __init__(self, before, inner, stride):
            super().__init__()
            out = WIDENING * inner
            self.inner = nn.Sequential(
                normalised(before, inner), nn.ReLU(), normalised(inner, inner, 3, stride), nn.ReLU(), normalised(inner, out)
            )
            self.shortcut = nn.Identity() if before == out else normalised(before, out, 1, stride)

        def forward(self, x):
            return torch.relu(self.inner(x) + self.shortcut(x))

    blocks, before = [], STEM
    for stage, inner in enumerate(STAGES):
        for block in range(BLOCKS[stage]):
            blocks.append(Block(before, inner, 2 if stage and not block else 1))
            before = WIDENING * inner
    begin = normalised(CHANNELS, STEM, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    return nn.Sequential(*begin, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


def labels():
    """Class numbers for each minibatch; of so many classes and pixels a teacher would be too large."""
    random = np.random.RandomState(1)
    return [random.randint(CLASSES, size=SIZE) for _ in range(POOL)]


def cntk_step():
    import cntk as C

    x, y = C.input_variable((CHANNELS, SIDE, SIDE)), C.input_variable(CLASSES)
    model = cntk_model(x)
    learner = C.momentum_sgd(model.parameters, C.learning_parameter_schedule(RATE), C.momentum_schedule(MOMENTUM))
    return cntk_training(model, x, y, learner)


def cntk_data():
    return pairs(features(SIZE, (CHANNELS, SIDE, SIDE)), one_hot(labels(), CLASSES))


def torch_step():
    import torch

    model = prepared(torch_model())
    learner = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    return torch_training(model, learner)


def torch_data():
    import torch

    return pairs(map(torch.from_numpy, features(SIZE, (CHANNELS, SIDE, SIDE))), map(torch.from_numpy, labels()))
