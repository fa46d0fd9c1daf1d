"""Minibatches of random data that look like real data: dark images with some bright pixels, and labels that can be learned.

This file and the workloads also run on Python 3.6, the last that CNTK 2.7 was made for.
"""

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


def pairs(left, right):
    """What belongs together, in a list of pairs."""
    return list(zip(left, right))  # noqa: B905  (strict= came after Python 3.6)
