"""An embedding of a million words, whose gradients are in few rows: the mean of a text's vectors, and a dense layer on it."""

import numpy as np
from data import even_lengths, one_hot, pairs, words
from training import cntk_training, torch_training

TITLE = "embedding of 1,000,000 words by 100, 32 texts of 20 to 40 words, SGD: training step"
SIZE, LEAST, MOST, VOCABULARY, EMBEDDING, CLASSES = 32, 20, 40, 1000000, 100, 5
RATE = 0.1


def texts():
    """Word numbers of each text in lists a minibatch, and the texts' classes."""
    pool = words(even_lengths(SIZE, LEAST, MOST), VOCABULARY)
    random = np.random.RandomState(1)
    teacher = random.randn(VOCABULARY, CLASSES).astype(np.float32)
    return pool, [np.array([teacher[text].sum(axis=0).argmax() for text in minibatch]) for minibatch in pool]


LENGTHS = even_lengths(SIZE, LEAST, MOST)
STEPS = sum(lengths.sum() for lengths in LENGTHS) / len(LENGTHS)
ROWS = np.mean([len(np.unique(np.concatenate(minibatch))) for minibatch in words(LENGTHS, VOCABULARY)])
# Sums of vectors and of their gradients, and the dense layer.
FLOP = int(2 * STEPS * EMBEDDING + 2 * 3 * SIZE * EMBEDDING * CLASSES)
# Data in; vectors that the words of a minibatch have, and their gradients, are each read and written once.
BYTES = int(4 * (2 * STEPS + SIZE * CLASSES + 4 * (ROWS * EMBEDDING + EMBEDDING * CLASSES)))


def cntk_model(x):
    """The network; initial vectors as of GloVe's size, uniform."""
    import cntk as C

    vectors = C.layers.Embedding(EMBEDDING, init=C.glorot_uniform())(x)
    return C.layers.Dense(CLASSES)(C.sequence.reduce_sum(vectors))


def cntk_step():
    import cntk as C

    x, y = C.sequence.input_variable(VOCABULARY, is_sparse=True), C.input_variable(CLASSES)
    model = cntk_model(x)
    return cntk_training(model, x, y, C.sgd(model.parameters, C.learning_parameter_schedule(RATE)))


def cntk_data():
    from data import csr_sequences

    pool, labels = texts()
    return pairs(csr_sequences(pool, VOCABULARY), one_hot(labels, CLASSES))


def torch_step():
    import torch
    from torch import nn

    vectors = nn.EmbeddingBag(VOCABULARY, EMBEDDING, mode="sum", sparse=True)
    nn.init.xavier_uniform_(vectors.weight)
    dense = nn.Linear(EMBEDDING, CLASSES)

    def model(numbers, starts):
        return dense(vectors(numbers, starts))

    learner = torch.optim.SGD([*vectors.parameters(), *dense.parameters()], lr=RATE)
    return torch_training(model, learner)


def torch_data():
    import torch

    def tensors(minibatch, labels):
        starts = np.cumsum([0] + [len(text) for text in minibatch[:-1]])
        return tuple(map(torch.from_numpy, (np.concatenate(minibatch), starts, labels)))

    return [tensors(*both) for both in pairs(*texts())]
