"""Where models are entered, and the data that they are tried on."""

import numpy as np
from scipy.sparse import csr_matrix

MODELS = {}
"""By name a function that builds a model, and returns it with the data of its inputs by their names."""


def model(build):
    """Enter a model under the name of the function that builds it."""
    MODELS[build.__name__] = build
    return build


def numbers(*shape, low=-1, high=1, dtype=np.float32):
    """Numbers that are the same for equal shapes, with every version of NumPy."""
    return np.random.RandomState(sum(shape) + len(shape)).uniform(low, high, shape).astype(dtype)


def steps(*shape, lengths=(3, 1, 4), dtype=np.float32):
    """Sequences of these lengths."""
    return [numbers(length, *shape, dtype=dtype) for length in lengths]


def classes(count, which, dtype=np.float32):
    """One-hot rows."""
    return np.eye(count, dtype=dtype)[list(which)]


def sparse(count, which, dtype=np.float32):
    """One-hot rows as a CSR matrix."""
    return csr_matrix(classes(count, which, dtype))
