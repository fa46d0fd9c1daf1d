"""Networks of any size, to see how cost grows with it: a function each of CNTK's API and of PyTorch, given minibatch, steps, layers and
width, to a function that takes a training step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from training import cntk_training, torch_training

CLASSES, RATE = 10, 0.01


class Size(NamedTuple):
    """Of a network and its minibatch; *steps* of a sequence are 0 where there are none."""

    minibatch: int = 64
    steps: int = 0
    layers: int = 2
    width: int = 256

    @property
    def flop(self) -> int:
        """Arithmetic of the products in a training step; data needs no gradient."""
        if self.steps:
            return 2 * self.minibatch * self.steps * 4 * self.width**2 * (2 + 3)
        return 2 * self.minibatch * (self.width**2 * (3 * self.layers - 1) + 3 * self.width * CLASSES)


class Curve(NamedTuple):
    """What grows, and the sizes that are measured."""

    title: str
    axis: str
    values: tuple[int, ...]
    size: Size

    def sizes(self) -> list[Size]:
        """The sizes, smallest first."""
        return [self.size._replace(**{self.axis: value}) for value in self.values]


CURVES = [
    Curve("minibatch, 2 layers of 256", "minibatch", (1, 4, 16, 64, 256, 1024, 4096, 16384), Size()),
    Curve("steps of a sequence, LSTM of 128, 16 sequences", "steps", (1, 3, 10, 30, 100, 300, 1000), Size(16, 0, 1, 128)),
    Curve("layers of 64, minibatch 64", "layers", (1, 2, 5, 10, 20, 50, 100, 200), Size(width=64)),
    Curve("width of 2 layers, minibatch 64", "width", (16, 64, 256, 1024, 4096), Size()),
]

Step = Callable[[], object]


def data(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Random samples, sequences of samples where the size has steps, and class numbers."""
    random = np.random.default_rng(0)
    shape = (size.minibatch, size.steps, size.width) if size.steps else (size.minibatch, size.width)
    return random.standard_normal(shape, np.float32), random.integers(CLASSES, size=size.minibatch)


def cntk_step(size: Size) -> Step:
    """A training step of opencntk on minibatches of one size."""
    import cntk as C

    x = (C.sequence.input_variable if size.steps else C.input_variable)(size.width)
    y = C.input_variable(CLASSES)
    if size.steps:
        hidden = C.sequence.last(C.layers.Recurrence(C.layers.LSTM(size.width))(x))
    else:
        hidden = C.layers.For(range(size.layers), lambda: C.layers.Dense(size.width, activation=C.relu))(x)
    model = C.layers.Dense(CLASSES)(hidden)
    step = cntk_training(model, x, y, C.sgd(model.parameters, C.learning_parameter_schedule(RATE)))
    samples, classes = data(size)
    labels = np.eye(CLASSES, dtype=np.float32)[classes]
    return partial(step, list(samples) if size.steps else samples, labels)


def torch_step(size: Size) -> Step:
    """The same of PyTorch."""
    import torch
    from torch import nn

    class Last(nn.Module):
        def forward(self, lstm: tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
            return lstm[1][0][0]

    if size.steps:
        layers: list[nn.Module] = [nn.LSTM(size.width, size.width, batch_first=True), Last()]
    else:
        layers = [layer for _ in range(size.layers) for layer in (nn.Linear(size.width, size.width), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(size.width, CLASSES))
    step = torch_training(model, torch.optim.SGD(model.parameters(), lr=RATE))
    return partial(step, *map(torch.from_numpy, data(size)))


STEPS: dict[str, Callable[[Size], Step]] = {"opencntk": cntk_step, "PyTorch": torch_step}
