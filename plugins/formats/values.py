"""Converts arguments and states of operators, values of Python, to the types of CNTK's dictionaries and back.

Values of other types become a dictionary with one key:

===============  =================================================================================
``@tuple``       the elements of a tuple
``@integer``     the digits of an integer beyond 64 bits, or below -2**31
``@array``       element type, shape and bytes of an array whose element type the format lacks
``@dtype``       the name of a ``np.dtype``
``@type``        the name of a type of NumPy, or of ``bool``, ``int`` or ``float`` with ``builtins.`` in front
``@dictionary``  a dictionary with a key that begins with ``@``
===============  =================================================================================
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...core.common.dtypes import dtype_named, is_float_type
from ...core.types.axis import Axis
from .attributes import file_axis, python_axis, static
from .wire import FileAxis

ARRAY, INTEGER = "@array", "@integer"
_TUPLE, _DTYPE, _TYPE, _DICTIONARY = "@tuple", "@dtype", "@type", "@dictionary"

DEEPEST = 20
"""How many lists, tuples and dictionaries may be nested."""

_BUILTINS: dict[str, type] = {f"builtins.{kind.__name__}": kind for kind in (bool, int, float)}
_NUMBERS = "biufc"
"""Kinds of element types."""
_TYPES = frozenset(kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in _NUMBERS)


def written(value: Any, place: str, depth: int = 0) -> Any:
    """A value in the types of files.

    Args:
        value: None, a bool, number, string, axis, element type or array; or a tuple, list or dictionary with strings as keys of these.
        place: its name in errors.
        depth: how many others it lies in.

    Raises:
        TypeError: it is, or holds, something else, or lies too deep.
    """
    if depth > DEEPEST:
        raise TypeError(f"{place:.80} lies in more than {DEEPEST} lists, tuples and dictionaries")
    if value is None or isinstance(value, (str, bool, np.float32)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        number = int(value)
        return number if -(2**31) <= number < 2**64 else tagged_integer(number)
    if isinstance(value, (float, np.floating)) or is_float_type(type(value)):
        return float(value)
    if isinstance(value, Axis):
        return static(-1 - value.static_axis_index()) if value.is_static_axis else file_axis(value)
    if isinstance(value, np.ndarray) and (value.dtype.kind in _NUMBERS or is_native(value.dtype)):
        return value if is_native(value.dtype) else tagged_array(value)
    if isinstance(value, list):
        return [written(item, f"{place}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {_TUPLE: [written(item, f"{place}[{i}]", depth + 1) for i, item in enumerate(value)]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        found = {key: written(item, f"{place}[{key!r}]", depth + 1) for key, item in value.items()}
        return {_DICTIONARY: found} if any(key.startswith("@") for key in found) else found
    if isinstance(value, np.dtype) and value.isnative and _name_of(value.type):
        return {_DTYPE: value.name}
    if isinstance(value, type) and (name := _name_of(value)):
        return {_TYPE: name}
    raise TypeError(
        f"{place} is {_described(value)}; a file holds numbers, strings, bools, None, axes, element types, arrays of numbers, and tuples, "
        "lists and dictionaries with strings as keys of these"
    )


def read(value: Any) -> Any:
    """The value that :func:`written` was given; arrays are its own.

    Raises:
        ValueError: the file does not have one.
    """
    if isinstance(value, np.uint64):
        return int(value)
    if isinstance(value, FileAxis):
        return python_axis(value)
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list):
        return [read(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if len(value) == 1 and tag in _READERS:
        return _READERS[tag](value[tag])
    if any(key.startswith("@") for key in value):
        raise ValueError(f"expected a dictionary, or one of {', '.join(_READERS)}; found {sorted(value)!r:.80}")
    return {key: read(item) for key, item in value.items()}


def is_native(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of this type are written as they are."""
    return dtype.isnative and is_float_type(dtype.type)


def tagged_array(array: Any) -> dict[str, Any]:
    """An array of any type of numbers."""
    kind = array.dtype.newbyteorder("<")
    return {ARRAY: [kind.str, list(array.shape), np.frombuffer(array.astype(kind).tobytes(), np.int8)]}


def array_of(parts: Any) -> Any:
    """The array that :func:`tagged_array` was given, of what it has under its key.

    Raises:
        ValueError: it is not one.
    """
    try:
        kind, shape, raw = parts
        if not re.fullmatch(f"[<|][{_NUMBERS}][0-9]{{1,2}}", kind):
            raise ValueError(f"{kind!r:.80} is not a type of numbers")
        return np.frombuffer(raw.tobytes(), kind).reshape(shape).copy()
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"expected element type, shape and bytes of an array ({error})") from None


def tagged_integer(number: int) -> dict[str, Any]:
    """An integer of any size."""
    return {INTEGER: str(number)}


def integer_of(text: Any) -> int:
    """The integer that :func:`tagged_integer` was given, of what it has under its key.

    Raises:
        ValueError: it is not one.
    """
    if not isinstance(text, str) or not re.fullmatch(r"-?\d{1,1000}", text):
        raise ValueError(f"expected the digits of an integer, got {text!r:.80}")
    return int(text)


def _tuple_of(items: Any) -> tuple[Any, ...]:
    if not isinstance(items, list):
        raise ValueError(f"expected the elements of a tuple, found {items!r:.80}")
    return tuple(read(item) for item in items)


def _dictionary_of(items: Any) -> dict[str, Any]:
    if not isinstance(items, dict):
        raise ValueError(f"expected a dictionary, found {items!r:.80}")
    return {key: read(item) for key, item in items.items()}


def _dtype_of(name: Any) -> Any:
    if name == "bfloat16":
        return dtype_named(name)
    kind = next((np.dtype(kind) for kind in _TYPES if np.dtype(kind).name == name), None)
    if kind is None:
        raise ValueError(f"expected the name of an element type, found {name!r:.80}")
    return kind


def _type_of(name: Any) -> Any:
    return _BUILTINS[name] if isinstance(name, str) and name in _BUILTINS else _dtype_of(name).type


def _name_of(kind: type) -> str:
    """The name of a type in a file; nothing where it is not a type of numbers."""
    if kind in _TYPES or is_float_type(kind):
        return np.dtype(kind).name
    return next((name for name, known in _BUILTINS.items() if known is kind), "")


def _described(value: Any) -> str:
    return f"a dictionary with the keys {list(value)!r:.80}" if isinstance(value, dict) else f"{type(value).__name__} {value!r:.80}"


_READERS: dict[str, Any] = {
    _TUPLE: _tuple_of,
    INTEGER: integer_of,
    ARRAY: array_of,
    _DTYPE: _dtype_of,
    _TYPE: _type_of,
    _DICTIONARY: _dictionary_of,
}
