"""Converts data of other libraries to arrays, by the protocols that they share, so that none of them is imported here.

Everything that takes data from users calls :func:`as_data`: feeds, values of variables, operands, sources.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .tensor import ArrayMixin, TensorOps

_AS_IT_IS = (TensorOps, ArrayMixin, int, float, np.generic, str, bytes, bytearray, dict, type(None))


def as_data(owner: Any, given: Any) -> Any:
    """Data of another library as a NumPy array or a list of these; anything else unchanged.

    These are objects with ``__array__``, ``__array_interface__``, ``__dlpack__``, ``__arrow_c_array__`` or ``__arrow_c_stream__`` and those
    that show their memory (``memoryview``).  A table becomes an array of its rows; what holds lists of any length, as columns of Arrow and
    arrays of objects may, a list of arrays.

    Args:
        owner: what the data is for; named in errors.
        given: the data.

    Raises:
        ValueError: the data cannot be converted to arrays, or has missing values.
    """
    if type(given) is np.ndarray:
        return _of_objects(owner, given) if given.dtype.hasobject else given
    if isinstance(given, (list, tuple)):
        _require_unmasked(owner, given)
        return given
    if isinstance(given, _AS_IT_IS) or hasattr(given, "tocsr"):
        return given
    if isinstance(given, np.ndarray):
        return _unmasked(owner, given)
    if hasattr(given, "__pandas_priority__"):
        _require_nothing_missing(owner, given)
    elif hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        from ..types.arrow import from_arrow

        return from_arrow(owner, given)
    array = _array_of(owner, given)
    if array is None:
        return given
    return _of_objects(owner, array) if array.dtype.hasobject else array


def columns_of(given: Any) -> list[Any]:
    """The names of a table's columns, each of which ``given[name]`` is; none of anything else."""
    for attribute in ("column_names", "columns"):  # Arrow's tables hold their columns in the second
        names = getattr(given, attribute, None)
        if names is not None and hasattr(given, "__getitem__"):
            return list(names)
    return []


def _array_of(owner: Any, given: Any) -> Any:
    """The array that an object declares to be; None if it declares none."""
    try:
        if hasattr(given, "__array__") or hasattr(given, "__array_interface__") or _shows_memory(given):
            return np.asarray(given, order="C")
        return np.asarray(np.from_dlpack(given), order="C") if hasattr(given, "__dlpack__") else None
    except Exception as error:
        array = _as_bfloat16(given)
        if array is not None:
            return array
        raise ValueError(
            f"{owner}: the {type(given).__name__} cannot be converted to a NumPy array: {error}. Convert it first{_way_of(given)}"
        ) from error


def _as_bfloat16(given: Any) -> Any:
    """The array of an object that holds bfloat16, which NumPy does not take from it; None of other objects."""
    from ..types.dlpack import bfloat16_of

    try:
        return bfloat16_of(given) if hasattr(given, "__dlpack__") else None
    except (BufferError, RuntimeError, TypeError):
        return None


def _shows_memory(given: Any) -> bool:
    try:
        memoryview(given)
    except TypeError:
        return False
    return True


def _way_of(given: Any) -> str:
    """Advice for objects that do not convert to arrays by themselves."""
    if hasattr(given, "detach"):
        return ", with .detach().float().cpu().numpy()"
    return f", with .{'get' if hasattr(given, 'get') else 'to_numpy'}()" if hasattr(given, "get") or hasattr(given, "to_numpy") else ""


def _require_unmasked(owner: Any, items: Any) -> None:
    """Check that a list, or list of lists, has no masked arrays in it, whose masks would be lost."""
    if not items or not isinstance(items[0], (list, tuple, np.ndarray)):
        return
    for item in items:
        if type(item) is np.ndarray:
            continue
        if isinstance(item, np.ndarray):
            _unmasked(owner, item)
        elif isinstance(item, (list, tuple)):
            _require_unmasked(owner, item)


def _unmasked(owner: Any, given: Any) -> Any:
    if hasattr(given, "mask") and hasattr(given, "filled") and np.any(given.mask):
        count = np.count_nonzero(given.mask)
        raise ValueError(
            f"{owner}: {count} of {given.size} elements of the masked array are masked; put numbers in their place with .filled(value), or "
            "leave them out with .compressed()"
        )
    return np.asarray(given)


def _require_nothing_missing(owner: Any, given: Any) -> None:
    """Refuse columns with missing values that are marked by more than NaN."""
    columns = [column for _, column in given.items()] if getattr(given, "ndim", 1) == 2 else [given]
    for column in columns:
        marks = not isinstance(getattr(column.dtype, "na_value", np.nan), float)
        if marks and (missing := int(column.isna().sum())):
            name = f" of the column {column.name!r}" if column.name is not None else ""
            raise ValueError(f"{owner}: {missing} of {len(column)} values{name} are missing; fill them with .fillna(value), or .dropna()")


def _of_objects(owner: Any, array: Any) -> Any:
    """An array of objects as sequences or numbers, whichever they are."""
    if array.ndim == 1 and len(array) and all(hasattr(item, "__len__") and not isinstance(item, (str, bytes)) for item in array):
        return [as_data(owner, item) for item in array]
    for place, item in np.ndenumerate(array):
        if not isinstance(item, (numbers.Real, np.bool_)):
            where = ", ".join(map(str, place))
            remedy = (
                "names become numbers with np.unique(names, return_inverse=True)[1], and these vectors with C.one_hot"
                if isinstance(item, str)
                else "put numbers in the place of missing values, or leave them out"
            )
            raise ValueError(f"{owner}: expected numbers, got {type(item).__name__} {item!r:.40} at [{where}]; {remedy}")
    return array.astype(np.float64)
