"""A classifier of sequences: a GRU forwards and another backwards, and a dense layer on where each of them ends."""

import numpy as np
from data import even_lengths, one_hot, pairs
from training import cntk_training, torch_training

TITLE = "bidirectional GRU 100-128, 64 sequences of 10 to 59 steps, SGD: training step"
SIZE, LEAST, MOST, INPUTS, HIDDEN, CLASSES = 64, 10, 59, 100, 128, 5
RATE = 0.1

STEPS = sum(lengths.sum() for lengths in even_lengths(SIZE, LEAST, MOST)) / len(even_lengths(SIZE, LEAST, MOST))
INPUT_WEIGHTS, STATE_WEIGHTS = INPUTS * 3 * HIDDEN, HIDDEN * 3 * HIDDEN
WEIGHTS = 2 * (INPUT_WEIGHTS + STATE_WEIGHTS) + 2 * HIDDEN * CLASSES
# Two directions, forward and weights' gradients, and the gradients of states; data needs none.
FLOP = int(2 * 2 * STEPS * (2 * INPUT_WEIGHTS + 3 * STATE_WEIGHTS) + 2 * 3 * SIZE * 2 * HIDDEN * CLASSES)
# Data in; weights and their gradients are each read and written once.
BYTES = int(4 * (STEPS * INPUTS + SIZE * CLASSES + 4 * WEIGHTS))

ON_HOST = (1,)
"""Which parts of PyTorch's minibatches stay on the host where it computes on a GPU: lengths."""


def sequences():
    """Sequences ``(length, INPUTS)`` in lists a minibatch, and their classes, which the means of the first inputs tell."""
    random = np.random.RandomState(0)
    pool = [[random.randn(n, INPUTS).astype(np.float32) for n in lengths] for lengths in even_lengths(SIZE, LEAST, MOST)]
    return pool, [np.array([x[:, :CLASSES].mean(axis=0).argmax() for x in minibatch]) for minibatch in pool]


def cntk_step():
    import cntk as C
    from cntk.layers import GRU, Dense, Recurrence

    x, y = C.sequence.input_variable(INPUTS), C.input_variable(CLASSES)
    ends = C.sequence.last(Recurrence(GRU(HIDDEN))(x)), C.sequence.first(Recurrence(GRU(HIDDEN), go_backwards=True)(x))
    model = Dense(CLASSES)(C.splice(*ends))
    learner = C.sgd(model.parameters, C.learning_parameter_schedule(RATE))
    return cntk_training(model, x, y, learner)


def cntk_data():
    pool, labels = sequences()
    return pairs(pool, one_hot(labels, CLASSES))


def torch_step():
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence

    gru, dense = nn.GRU(INPUTS, HIDDEN, bidirectional=True), nn.Linear(2 * HIDDEN, CLASSES)

    def model(samples, lengths):
        _, ends = gru(pack_padded_sequence(samples, lengths, enforce_sorted=False))
        return dense(torch.cat([ends[0], ends[1]], dim=1))

    learner = torch.optim.SGD(nn.ModuleList([gru, dense]).parameters(), lr=RATE)
    return torch_training(model, learner)


def torch_data():
    import torch
    from torch.nn.utils.rnn import pad_sequence

    return [
        (pad_sequence([torch.from_numpy(x) for x in samples]), torch.tensor([len(x) for x in samples]), torch.from_numpy(labels))
        for samples, labels in pairs(*sequences())
    ]
