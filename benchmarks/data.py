"""Minibatches of random data that look like real data: dark images with some bright pixels, sentences of few frequent and many rare
words, and labels that can be learned.

This file and the workloads also run on Python 3.6, the last that CNTK 2.7 was made for.
"""

import os

import numpy as np

POOL = 32
"""Number of different minibatches; a new one is taken at each step."""


def features(size, shape, seed=0):
    """A pool of minibatches ``(size, *shape)`` of values in [0, 1], most of them small."""
    random = np.random.RandomState(seed)
    return [(random.rand(size, *shape) ** 4).astype(np.float32) for _ in range(POOL)]


def classes(pool, count, seed=1):
    """Class numbers ``(size,)`` for each minibatch of a pool, as a random linear classifier gives them."""
    teacher = np.random.RandomState(seed).randn(pool[0][0].size, count)
    samples = [minibatch.reshape(len(minibatch), -1) for minibatch in pool]
    middle = np.mean([minibatch.mean(axis=0) for minibatch in samples], axis=0)
    return [((minibatch - middle) @ teacher).argmax(axis=1) for minibatch in samples]


def one_hot(pool, count):
    """The same as dense one-hot rows ``(size, count)``."""
    return [np.eye(count, dtype=np.float32)[labels] for labels in pool]


def sparse_one_hot(pool, count):
    """The same as one-hot rows in SciPy's CSR form."""
    from scipy.sparse import csr_matrix

    return [csr_matrix(rows) for rows in one_hot(pool, count)]


def query_lengths(size, seed=2):
    """Lengths ``(size,)`` for each minibatch of a pool, spread as those of ATIS's queries: 5 to 39 words, 13.4 on average."""
    random = np.random.RandomState(seed)
    return [np.clip(np.rint(random.gamma(9, 1.49, size)), 5, 39).astype(int) for _ in range(POOL)]


def even_lengths(size, least, most, seed=3):
    """Lengths ``(size,)`` for each minibatch of a pool, all from ``least`` to ``most`` equally likely."""
    random = np.random.RandomState(seed)
    return [random.randint(least, most + 1, size) for _ in range(POOL)]


def words(lengths, vocabulary, seed=4):
    """Word numbers, an array a sequence in a list a minibatch: the word of rank r as frequent as 1 / r."""
    random = np.random.RandomState(seed)
    share = np.cumsum(1 / np.arange(1, vocabulary + 1))
    return [[np.searchsorted(share, random.rand(n) * share[-1]) for n in minibatch] for minibatch in lengths]


def tags(pool, vocabulary, count, seed=5):
    """A class number for each word of a pool, which the word and the one before it tell."""
    teacher = np.random.RandomState(seed).randint(count, size=(vocabulary, 2))
    return [[(teacher[s, 0] + np.append(0, teacher[s[:-1], 1])) % count for s in minibatch] for minibatch in pool]


def csr_sequences(pool, count):
    """Number sequences as one-hot rows in SciPy's CSR form, a matrix a sequence."""
    from scipy.sparse import csr_matrix

    def rows(numbers):
        return csr_matrix((np.ones(len(numbers), np.float32), numbers, np.arange(len(numbers) + 1)), (len(numbers), count))

    return [[rows(sequence) for sequence in minibatch] for minibatch in pool]


def data_file(name):
    """Path of a file of real data, in the folder that the environment variable CNTK_TEST_DATA names."""
    return os.path.join(os.environ.get("CNTK_TEST_DATA", ""), name)


def ctf_numbers(name, fields):
    """The sequences of a file of real data in CNTK's text format: of each one the place of the 1 in each of its rows, a field at a time."""
    sequences = {}
    with open(data_file(name)) as lines:
        for line in lines:
            number, *parts = line.split("|")
            sequence = sequences.setdefault(number, [[] for _ in fields])
            for part in parts:
                field, _, row = part.partition(" ")
                if field in fields:
                    sequence[fields.index(field)].append(int(row.partition(":")[0]))
    return [[np.array(numbers) for numbers in sequence] for sequence in sequences.values()]


def pairs(left, right):
    """What belongs together, in a list of pairs."""
    return list(zip(left, right))  # noqa: B905  (strict= came after Python 3.6)
