"""Toy data of two sequences of words, each with one label, read from CNTK's text format: a classifier learns them by heart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.layers import GRU, LSTM, Dense, Embedding, Fold, Recurrence, RNNStep, Sequential
from cntk.testing import assert_close

WORDS, CLASSES = 1000, 5
TEXT = """
0   |x 560:1        |y 1 0 0 0 0
0   |x 0:1
0   |x 0:1
1   |x 560:1        |y 0 1 0 0 0
1   |x 0:1
1   |x 0:1
1   |x 424:1
"""


def parsed(text: str) -> tuple[list[list[int]], Any]:
    """Words of each sequence, and the labels."""
    words: dict[int, list[int]] = {}
    labels: dict[int, list[float]] = {}
    for line in text.strip().splitlines():
        number, *fields = line.split("|")
        for field in fields:
            name, *values = field.split()
            if name == "x":
                words.setdefault(int(number), []).append(int(values[0].split(":")[0]))
            else:
                labels[int(number)] = [float(value) for value in values]
    return [words[i] for i in sorted(words)], np.array([labels[i] for i in sorted(labels)], np.float32)


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("block", [LSTM, GRU, RNNStep])
def test_a_classifier_learns_by_heart(block: Any, is_sparse: bool) -> None:
    words, labels = parsed(TEXT)
    feature = C.sequence.input_variable(WORDS, is_sparse=is_sparse)
    label = C.input_variable(CLASSES)
    model = Sequential([Embedding(8), Recurrence(block(8)), Fold(block(8), go_backwards=True), Dense(CLASSES)])(feature)
    assert str(model.type) == "Tensor[5]"
    loss, metric = C.cross_entropy_with_softmax(model, label), C.classification_error(model, label)
    learner = C.adam(model.parameters, C.learning_parameter_schedule(0.05), C.momentum_schedule(0.9))
    trainer = C.Trainer(model, (loss, metric), [learner])
    one_hot = [np.eye(WORDS, dtype=np.float32)[sequence] for sequence in words]
    data = C.Value.one_hot(words, WORDS) if is_sparse else one_hot
    for _ in range(150):
        trainer.train_minibatch({feature: data, label: labels})
    assert trainer.previous_minibatch_loss_average < 0.05
    assert trainer.previous_minibatch_evaluation_average == 0
    alone = [model.eval({feature: C.Value.one_hot([sequence], WORDS) if is_sparse else [one_hot[i]]}) for i, sequence in enumerate(words)]
    assert_close(np.concatenate(alone), model.eval({feature: data}))
