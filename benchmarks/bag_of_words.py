"""Texts as bags of words out of a large vocabulary: a sparse input whose weights get gradients in few rows."""

import numpy as np
from data import even_lengths, one_hot, pairs, words
from training import cntk_training, torch_training

TITLE = "bag of words 100,000-100-5, 64 texts of about 50 words, SGD: training step"
SIZE, LEAST, MOST, VOCABULARY, HIDDEN, CLASSES = 64, 30, 70, 100000, 100, 5
RATE = 0.1


def texts():
    """Word numbers and how often each occurs, a pair a text in lists a minibatch, and the texts' classes."""
    pool = words(even_lengths(SIZE, LEAST, MOST), VOCABULARY)
    teacher = np.random.RandomState(1).randn(VOCABULARY, CLASSES)
    labels = [np.array([teacher[text].sum(axis=0).argmax() for text in minibatch]) for minibatch in pool]
    return [[np.unique(text, return_counts=True) for text in minibatch] for minibatch in pool], labels


def non_zeros():
    """Words that differ, on average: within their text, and within their minibatch."""
    pool, _ = texts()
    found = [np.concatenate([numbers for numbers, _ in minibatch]) for minibatch in pool]
    return np.mean([[len(numbers), len(np.unique(numbers))] for numbers in found], axis=0)


ENTRIES, ROWS = non_zeros()
# Forward and weights' gradients of both layers, and the gradients of the hidden layer.
FLOP = int(2 * (2 * ENTRIES * HIDDEN + 3 * SIZE * HIDDEN * CLASSES))
# Data in, numbers and counts; the weights that the words of a minibatch have, and their gradients, are each read and written once.
BYTES = int(4 * (2 * ENTRIES + SIZE * CLASSES + 4 * (ROWS * HIDDEN + HIDDEN * CLASSES)))


def cntk_step():
    import cntk as C
    from cntk.layers import Dense, Sequential

    x, y = C.input_variable(VOCABULARY, is_sparse=True), C.input_variable(CLASSES)
    model = Sequential([Dense(HIDDEN, activation=C.relu), Dense(CLASSES)])(x)
    learner = C.sgd(model.parameters, C.learning_parameter_schedule(RATE))
    return cntk_training(model, x, y, learner)


def cntk_data():
    from scipy.sparse import csr_matrix

    pool, labels = texts()

    def rows(minibatch):
        numbers, counts = (np.concatenate(part) for part in zip(*minibatch))  # noqa: B905  (strict= came after Python 3.6)
        ends = np.cumsum([0] + [len(words) for words, _ in minibatch])
        return csr_matrix((counts.astype(np.float32), numbers, ends), (SIZE, VOCABULARY))

    return pairs([rows(minibatch) for minibatch in pool], one_hot(labels, CLASSES))


def torch_step():
    import torch
    from torch import nn

    first, bias = nn.EmbeddingBag(VOCABULARY, HIDDEN, mode="sum", sparse=True), nn.Parameter(torch.zeros(HIDDEN))
    with torch.no_grad():
        first.weight.mul_(VOCABULARY**-0.5)
    second = nn.Linear(HIDDEN, CLASSES)

    def model(numbers, starts, counts):
        return second(torch.relu(first(numbers, starts, counts) + bias))

    learner = torch.optim.SGD([*first.parameters(), bias, *second.parameters()], lr=RATE)
    return torch_training(model, learner)


def torch_data():
    import torch

    def tensors(samples, labels):
        arrays = samples.indices.astype(np.int64), samples.indptr[:-1].astype(np.int64), samples.data, labels.argmax(axis=1)
        return tuple(map(torch.from_numpy, arrays))

    return [tensors(*minibatch) for minibatch in cntk_data()]
