"""Sums over axes of an array, as products where the BLAS is faster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

FEWEST = 2
"""Sums, or terms of each, from which on a product with ones is faster, of many up to 20 times; it is as accurate."""

MOST = 1024
"""Terms up to which a product adds up a row as accurately as NumPy, which adds in pairs."""

MULTIPLIED = (np.dtype(np.float32), np.dtype(np.float64))
"""Element types of the BLAS."""

_ones: dict[Any, Any] = {}
"""As many ones of each type as the longest sum has had terms."""


def summing(full: Any, axes: tuple[int, ...], target: Any) -> Callable[[], Any]:
    """A function that writes the sum of *full* over *axes* into *target*, as a backend makes it."""
    dtype = full.dtype
    if axes and target.size and dtype in MULTIPLIED and full.flags.c_contiguous and target.flags.c_contiguous:
        sums, terms = target.size, full.size // target.size
        if axes[-1] == len(axes) - 1 and sums >= FEWEST:
            return partial(np.dot, _so_many_ones(terms, dtype), full.reshape(terms, sums), target.reshape(sums))
        if axes[0] == full.ndim - len(axes) and FEWEST <= terms <= MOST:
            return partial(np.dot, full.reshape(sums, terms), _so_many_ones(terms, dtype), target.reshape(sums))
    return partial(np.add.reduce, full, axes, None, target, target.ndim == full.ndim)


def _so_many_ones(count: int, dtype: Any) -> Any:
    ones = _ones.get(dtype)
    if ones is None or ones.size < count:
        ones = _ones[dtype] = np.ones(count, dtype)
    return ones[:count]
