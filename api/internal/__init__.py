"""Converters of arguments that CNTK programs import from its internals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cntk.core.build import as_variable
from cntk.core.dtypes import as_dtype
from cntk.core.function import Function
from cntk.core.shape import as_shape
from cntk.core.value import NDArrayView
from cntk.core.variable import Variable


def sanitize_dtype_cntk(dtype: Any) -> Any:
    """The floating-point type meant by a NumPy or Python type or a name."""
    return as_dtype(dtype)


sanitize_dtype_numpy = sanitize_dtype_cntk
sanitize_precision = sanitize_dtype_cntk


def sanitize_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints."""
    return as_shape(shape)


def sanitize_input(arg: Any, fallback_dtype: Any = np.float32, reshape: Any = None) -> Variable:
    """An operand as a variable; numbers and arrays become constants, of the shape *reshape* where one is given."""
    if reshape is not None and not isinstance(arg, (Function, Variable)):
        arg = np.reshape(np.asarray(arg, dtype=getattr(arg, "dtype", fallback_dtype)), reshape)
    return as_variable(arg, fallback_dtype)


def sanitize_value(shape: Any, value: Any, dtype: Any, device: Any) -> NDArrayView:
    """An NDArrayView of a number (filling *shape*) or an array."""
    given = np.asarray(value, dtype=as_dtype(dtype))
    filled = np.broadcast_to(given, as_shape(shape)) if shape is not None and given.ndim == 0 else given
    return NDArrayView.from_dense(np.ascontiguousarray(filled), device)


def _as_tuple(x: Any) -> tuple[Any, ...]:
    """A tuple of a scalar or a sequence."""
    return (x,) if not isinstance(x, (list, tuple)) else tuple(x)


def typemap(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of CNTK programs that cast engine objects; there is nothing to cast here."""
    return f


def map_if_possible(obj: Any) -> None:
    """Cast an engine object in place; there is nothing to cast here."""


__all__ = [
    "map_if_possible",
    "sanitize_dtype_cntk",
    "sanitize_dtype_numpy",
    "sanitize_input",
    "sanitize_precision",
    "sanitize_shape",
    "sanitize_value",
    "typemap",
]
