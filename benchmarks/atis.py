"""The tagger on the queries of ATIS, about 500 words a minibatch, which are in memory."""

import numpy as np
import tagger
from data import POOL, csr_sequences, ctf_numbers, pairs

TITLE = "LSTM tagger 943-150-300-129 on ATIS from memory, at most 500 words, momentum: training"
FILE = "atis.train.ctf"
SIZE, WORDS = 500, 493.6
"""Words of a minibatch at most, and on average."""

FLOP = int(2 * WORDS * 3 * tagger.PER_WORD)
BYTES = int(4 * (2 * WORDS + 6 * tagger.WEIGHTS))

ON_HOST = (2,)
"""Which parts of PyTorch's minibatches stay on the host where it computes on a GPU: lengths."""


def queries():
    """Word numbers of each query and the labels of these, two lists a minibatch; queries in a random order."""
    found = ctf_numbers(FILE, ["S0", "S2"])
    minibatches, room = [], 0
    for number in np.random.RandomState(0).permutation(len(found)):
        words, labels = found[number]
        if len(words) > room:
            minibatches.append(([], []))
            room = SIZE
        minibatches[-1][0].append(words)
        minibatches[-1][1].append(labels)
        room -= len(words)
    return minibatches[:POOL]


def cntk_step():
    return tagger.cntk_step()


def cntk_data():
    words, labels = zip(*queries())  # noqa: B905  (strict= came after Python 3.6)
    return pairs(csr_sequences(words, tagger.VOCABULARY), csr_sequences(labels, tagger.CLASSES))


def torch_step():
    return tagger.torch_step()


def torch_data():
    return tagger.torch_minibatches(queries())
