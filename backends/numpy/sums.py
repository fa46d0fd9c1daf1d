"""Sums over axes of an array, as products where the BLAS is faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

FEWEST, MOST = 16, 1024
"""Columns of a matrix from which on its rows or columns are summed several times faster as a product with ones, and up to which a row
so loses nothing of its accuracy."""

MULTIPLIED = (np.dtype(np.float32), np.dtype(np.float64))
"""Element types of the BLAS."""

Scratch = Callable[[str, Sequence[int], Any], Any]


def add_up(full: Any, axes: tuple[int, ...], target: Any, keeps_axes: bool, scratch: Scratch) -> None:
    """Write the sum of *full* over *axes* into *target*, as a backend does."""
    if full.dtype in MULTIPLIED and full.flags.c_contiguous and target.flags.c_contiguous:
        if not keeps_axes and axes and target.size >= FEWEST:
            columns = full.reshape(-1, target.size)
            np.dot(_ones(scratch, len(columns), full.dtype), columns, out=target.reshape(-1))
            return
        if axes == (full.ndim - 1,) and FEWEST <= full.shape[-1] <= MOST:
            np.dot(full.reshape(-1, full.shape[-1]), _ones(scratch, full.shape[-1], full.dtype), out=target.reshape(-1))
            return
    np.add.reduce(full, axes, out=target, keepdims=keeps_axes)


def _ones(scratch: Scratch, count: int, dtype: Any) -> Any:
    ones = scratch("ones", (count,), dtype)
    ones.fill(1)
    return ones
