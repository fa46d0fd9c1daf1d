"""The workloads in PyTorch, on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from . import Step, Workload
from .data import CELLS, CLASSES, FILTERS, HIDDEN, MOMENTUM, RATE, ROW, SIDE, TAGS, WORD, images, labels, rows, sentences


def _dense() -> Any:
    return nn.Sequential(nn.Linear(ROW, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))


def _convolutional() -> Any:
    first, second = FILTERS
    return nn.Sequential(
        *(nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(second * (SIDE // 4) ** 2, CLASSES)),
    )


def _training(model: Any, data: Any, targets: Any) -> Step:
    learner = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    wanted = torch.from_numpy(targets)

    def step() -> float:
        learner.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(data), wanted)
        loss.backward()
        learner.step()
        return float(loss.item())

    return step


class _Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrence, self.scores = nn.LSTM(WORD, CELLS), nn.Linear(CELLS, TAGS)

    def forward(self, words: PackedSequence) -> Any:
        return self.scores(self.recurrence(words)[0].data)


def _train_sentences() -> Step:
    packed = pack_sequence([torch.from_numpy(sentence) for sentence in sentences()], enforce_sorted=False)
    return _training(_Tagger(), packed, labels(len(packed.data), TAGS))


def _evaluating(model: Any, data: Any) -> Step:
    model.eval()

    def step() -> Any:
        with torch.inference_mode():
            return model(torch.from_numpy(data)).numpy()

    return step


WORKLOADS: dict[str, Workload] = {
    "train rows": lambda: _training(_dense(), torch.from_numpy(rows(64)), labels(64)),
    "train images": lambda: _training(_convolutional(), torch.from_numpy(images(32)), labels(32)),
    "train sentences": _train_sentences,
    "one row": lambda: _evaluating(_dense(), rows(1)),
    "256 rows": lambda: _evaluating(_dense(), rows(256)),
    "one image": lambda: _evaluating(_convolutional(), images(1)),
}
