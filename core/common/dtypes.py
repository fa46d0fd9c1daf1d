"""The three floating-point types that networks compute in."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

FLOAT_TYPES = (np.float16, np.float32, np.float64)


class DataType(IntEnum):
    """Numbers that CNTK's engine gives to element types."""

    Unknown = 0
    Float = 1
    Double = 2
    UChar = 3
    Float16 = 4
    Int8 = 5
    Int16 = 6


def computing_type(dtype: Any) -> np.dtype[Any]:
    """The type to compute in: float16 is widened to float32, since its products and maxima are slow and its sums inexact."""
    return np.dtype(np.float32) if dtype == np.float16 else np.dtype(dtype)


_ALIASES: dict[Any, type[np.floating[Any]]] = {
    float: np.float64,
    int: np.float32,
    "float": np.float32,
    "float16": np.float16,
    "float32": np.float32,
    "double": np.float64,
    "float64": np.float64,
    DataType.Float16: np.float16,
    DataType.Float: np.float32,
    DataType.Double: np.float64,
}


def as_dtype(dtype: Any) -> type[np.floating[Any]]:
    """Return the NumPy type meant by a NumPy type, a dtype, a Python type, a name or a :class:`DataType`.

    As in CNTK, ``float`` means float64, ``int`` means float32 and the string ``'float'`` means float32.

    Raises:
        ValueError: the type is not one of float16, float32 and float64.
    """
    try:
        if dtype in _ALIASES:
            return _ALIASES[dtype]
        scalar = np.dtype(dtype).type
    except (TypeError, ValueError):
        scalar = None
    if scalar not in FLOAT_TYPES:
        if "bfloat16" in (dtype if isinstance(dtype, str) else getattr(scalar, "__name__", "")):
            raise ValueError(
                "data type bfloat16 is not supported: no backend computes in it; use float32, or float16, of which learners keep float32 "
                "masters, with a loss scale (Trainer(..., loss_scale='dynamic'))"
            )
        raise ValueError(f"data type {dtype!r} is not supported; use float16, float32 or float64")
    return scalar


def as_stored_dtype(dtype: Any) -> Any:
    """As :func:`as_dtype`, and int8 and int16 as well, which parameters of operators of other engines may have."""
    try:
        return dtype if dtype in (np.int8, np.int16) else _INTEGERS[dtype]
    except (KeyError, TypeError):
        return as_dtype(dtype)


_INTEGERS: dict[Any, Any] = {DataType.Int8: np.int8, DataType.Int16: np.int16, np.dtype(np.int8): np.int8, np.dtype(np.int16): np.int16}
_NUMBERS: dict[Any, DataType] = {
    None: DataType.Unknown,
    np.float16: DataType.Float16,
    np.float32: DataType.Float,
    np.float64: DataType.Double,
    np.int8: DataType.Int8,
    np.int16: DataType.Int16,
}


def data_type_of(dtype: Any) -> DataType:
    """Number of an element type; that of None is unknown."""
    return _NUMBERS[dtype]


def dtype_name(dtype: Any) -> str:
    """Name of a dtype as error messages show it."""
    return "unknown" if dtype is None else np.dtype(dtype).name
