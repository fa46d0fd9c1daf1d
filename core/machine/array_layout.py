"""The fields of a NumPy array that compiled loops read, and a check that they are where loops expect them."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

WORD = 8
"""Bytes of an address, and of a number in a shape."""

DATA, SHAPE, STRIDES = object.__basicsize__, object.__basicsize__ + 2 * WORD, object.__basicsize__ + 3 * WORD
"""Offsets of the address, shape and strides in an array object, by NumPy's C interface."""


def is_known() -> bool:
    """Whether this NumPy's arrays are laid out like that, tested with three of different shapes and strides."""
    if sys.implementation.name != "cpython" or np.ndarray.__basicsize__ < STRIDES + WORD:
        return False
    whole = np.arange(60, dtype=np.float32)
    return all(map(_is_read_back, (whole[7:], whole.reshape(5, 12).T, whole.astype(np.float64).reshape(3, 4, 5)[::-1, 1:, ::2])))


def _is_read_back(array: Any) -> bool:
    """Whether the fields of an array object are the array's; reads no memory by them, since they may be no addresses."""
    data, shape, strides = (ctypes.c_size_t.from_address(id(array) + offset).value for offset in (DATA, SHAPE, STRIDES))
    if data != array.__array_interface__["data"][0] or strides - shape != array.ndim * WORD:
        return False
    numbers = ctypes.c_ssize_t * (2 * array.ndim)
    return tuple(numbers.from_address(shape)) == (*array.shape, *array.strides)
