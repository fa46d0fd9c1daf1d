"""The four floating-point types that networks compute in.

NumPy has three of them.  bfloat16 is the package ``ml_dtypes``', which is imported when a program names the type.  To NumPy it is a type of
no kind, so that what holds for floating-point numbers is asked here.
"""

from __future__ import annotations

from enum import IntEnum
from importlib.util import find_spec
from typing import Any

import numpy as np

FLOAT_TYPES: tuple[type[np.floating[Any]], ...] = (np.float16, np.float32, np.float64)
"""NumPy's."""

_SINGLE = np.dtype(np.float32)
_BFLOAT16, _HALVES = "E", "eE"
"""Letters (``np.dtype.char``) of bfloat16, and of both types of 16 bits."""


class DataType(IntEnum):
    """Numbers that CNTK's engine gives to element types."""

    Unknown = 0
    Float = 1
    Double = 2
    UChar = 3
    Float16 = 4
    Int8 = 5
    Int16 = 6
    BFloat16 = 7
    """Ours: CNTK has no such type."""


def is_half(dtype: Any) -> bool:
    """Whether it is one of the types of 16 bits, float16 and bfloat16, of which sums and updates are computed in float32."""
    return (dtype if isinstance(dtype, np.dtype) else np.dtype(dtype)).char in _HALVES


def is_bfloat16(dtype: Any) -> bool:
    """Whether it is bfloat16."""
    return np.dtype(dtype).char == _BFLOAT16


def is_float_type(given: Any) -> bool:
    """Whether it is one of the types that networks compute in, the scalar type itself."""
    return isinstance(given, type) and issubclass(given, np.generic) and (given in FLOAT_TYPES or is_bfloat16(given))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is a type of floating-point numbers."""
    return dtype.kind == "f" or dtype.char == _BFLOAT16


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether it is a type of real numbers, or of truth values."""
    return dtype.kind in "fiub" or dtype.char == _BFLOAT16


def computing_type(dtype: Any) -> np.dtype[Any]:
    """The type to compute in: types of 16 bits are widened to float32, since their products and maxima are slow and their sums inexact."""
    known = np.dtype(dtype)
    return _SINGLE if known.char in _HALVES else known


def limits_of(dtype: Any) -> Any:
    """The limits of a floating-point type, as of ``np.finfo``, which does not know bfloat16.

    >>> from cntk.core.common.dtypes import limits_of
    >>> float(limits_of(np.float16).max), float(limits_of(C.bfloat16).eps)
    (65504.0, 0.0078125)
    """
    if not is_bfloat16(dtype):
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


def bfloat16() -> Any:
    """The scalar type bfloat16.

    Raises:
        ValueError: the package that has it is not installed.
    """
    try:
        import ml_dtypes
    except ImportError:
        raise ValueError(
            "data type bfloat16 needs the package ml_dtypes, which is not installed: pip install 'opencntk[bfloat16]'; without it use "
            "float32, or float16 with a loss scale (Trainer(..., loss_scale='dynamic'))"
        ) from None
    return ml_dtypes.bfloat16


def float_types() -> tuple[Any, ...]:
    """The types that networks can compute in here: NumPy's, and bfloat16 where its package is installed."""
    return FLOAT_TYPES if find_spec("ml_dtypes") is None else (bfloat16(), *FLOAT_TYPES)


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


def as_dtype(dtype: Any) -> Any:
    """Return the NumPy type meant by a NumPy type, a dtype, a Python type, a name or a :class:`DataType`.

    As in CNTK, ``float`` means float64, ``int`` means float32 and the string ``'float'`` means float32.

    Raises:
        ValueError: the type is none of bfloat16, float16, float32 and float64, or bfloat16 without the package that has it.
    """
    if dtype is DataType.BFloat16 or (isinstance(dtype, str) and dtype == "bfloat16"):
        return bfloat16()
    try:
        if dtype in _ALIASES:
            return _ALIASES[dtype]
        given = np.dtype(dtype)
    except (TypeError, ValueError):
        given = None
    if given is None or not is_float_type(given.type):
        raise ValueError(f"data type {dtype!r} is not supported; use bfloat16, float16, float32 or float64")
    return given.type


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
    return DataType.BFloat16 if dtype is not None and is_bfloat16(dtype) else _NUMBERS[dtype]


def dtype_named(name: str) -> np.dtype[Any]:
    """The type of a name, as :func:`dtype_name` gives it.

    Raises:
        ValueError: it is bfloat16, whose package is not installed.
    """
    return np.dtype(bfloat16() if name == "bfloat16" else name)


def dtype_name(dtype: Any) -> str:
    """Name of a dtype as error messages show it."""
    return "unknown" if dtype is None else np.dtype(dtype).name
