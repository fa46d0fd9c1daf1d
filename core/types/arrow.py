"""Reads Arrow's data through the C structures that all its libraries exchange.

Source: Apache Arrow, "The Arrow C data interface" and "The Arrow C stream interface",
https://arrow.apache.org/docs/format/CDataInterface.html; layouts of buffers: https://arrow.apache.org/docs/format/Columnar.html.
"""

from __future__ import annotations

import ctypes
import json
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p
from itertools import pairwise
from typing import Any

import numpy as np


class _Schema(Structure):
    pass


class _Array(Structure):
    pass


class _Stream(Structure):
    pass


_Schema._fields_ = [
    *(("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p)),
    *(("flags", c_int64), ("n_children", c_int64)),
    *(("children", POINTER(POINTER(_Schema))), ("dictionary", POINTER(_Schema))),
    *(("release", CFUNCTYPE(None, POINTER(_Schema))), ("private_data", c_void_p)),
]
_Array._fields_ = [
    *((name, c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    *(("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(_Array))), ("dictionary", POINTER(_Array))),
    *(("release", CFUNCTYPE(None, POINTER(_Array))), ("private_data", c_void_p)),
]
_Stream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))),
    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(_Stream))),
    *(("release", CFUNCTYPE(None, POINTER(_Stream))), ("private_data", c_void_p)),
]

_pointer_in = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

_NUMBERS = {
    b"e": np.float16,
    b"f": np.float32,
    b"g": np.float64,
    b"c": np.int8,
    b"s": np.int16,
    b"i": np.int32,
    b"l": np.int64,
    b"C": np.uint8,
    b"S": np.uint16,
    b"I": np.uint32,
    b"L": np.uint64,
}
_OFFSETS = {b"+l": np.int32, b"+L": np.int64}
_OTHERS = {b"u": "text", b"U": "text", b"vu": "text", b"z": "bytes", b"Z": "bytes", b"n": "nulls", b"d": "decimals", b"t": "times"}
_FIXED_SHAPE = "arrow.fixed_shape_tensor"


def from_arrow(owner: Any, given: Any) -> Any:
    """The data, copied, of an object with ``__arrow_c_stream__`` or ``__arrow_c_array__``: an array, or a list of arrays if it is of lists.

    Args:
        owner: what the data is for; named in errors.
        given: the object.

    Raises:
        ValueError: values are missing, or are not numbers.
    """
    try:
        if hasattr(given, "__arrow_c_array__"):
            return _from_capsules(*given.__arrow_c_array__())
        return _from_stream(given.__arrow_c_stream__())
    except _UnfitError as error:
        raise ValueError(f"{owner}: the {type(given).__name__} {error}") from None


class _UnfitError(Exception):
    """Data cannot be converted to numbers."""


def _from_capsules(schema_capsule: Any, array_capsule: Any) -> Any:
    """An array; the capsules release what they hold when they go."""
    schema = _Schema.from_address(_pointer_in(schema_capsule, b"arrow_schema"))
    return _read(schema, _Array.from_address(_pointer_in(array_capsule, b"arrow_array")))


def _from_stream(capsule: Any) -> Any:
    """The arrays of a stream, joined."""
    stream = _Stream.from_address(_pointer_in(capsule, b"arrow_array_stream"))
    schema = _Schema()
    _require_success(stream, stream.get_schema(byref(stream), byref(schema)))
    try:
        parts = []
        while True:
            array = _Array()
            _require_success(stream, stream.get_next(byref(stream), byref(array)))
            if not array.release:
                break
            try:
                parts.append(_read(schema, array))
            finally:
                array.release(byref(array))
        return _joined(parts) if parts else _read(schema, None)
    finally:
        schema.release(byref(schema))


def _require_success(stream: _Stream, code: int) -> None:
    if code:
        message = stream.get_last_error(byref(stream))
        raise _UnfitError(f"gives no data: {message.decode(errors='replace') if message else f'error {code}'}")


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return [item for part in parts for item in part] if isinstance(parts[0], list) else np.concatenate(parts)


def _read(schema: _Schema, array: _Array | None, begin: int = 0, count: int | None = None) -> Any:
    """What an array holds from place *begin* on; nothing of its type where there is none."""
    begin += array.offset if array is not None else 0
    count = (array.length if array is not None else 0) if count is None else count
    kind: bytes = schema.format
    if array is not None:
        _require_values(schema, array, begin, count)
    if schema.dictionary:
        places = _numbers(_NUMBERS[kind], array, begin, count)
        values = _read(schema.dictionary.contents, array.dictionary.contents if array is not None else None)
        return [values[place] for place in places] if isinstance(values, list) else values[places]
    if kind in _NUMBERS:
        return _numbers(_NUMBERS[kind], array, begin, count)
    if kind == b"b":
        bits = np.unpackbits(_numbers(np.uint8, array, 0, (begin + count + 7) // 8), bitorder="little")
        return bits[begin : begin + count].astype(bool)
    if kind in _OFFSETS:
        bounds = _numbers(_OFFSETS[kind], array, begin, count + 1).tolist() if count else [0]
        values = _child(schema, array, 0, bounds[0], bounds[-1] - bounds[0])
        return [values[start - bounds[0] : stop - bounds[0]] for start, stop in pairwise(bounds)]
    if kind.startswith(b"+w:"):
        each = int(kind[3:])
        values = _child(schema, array, 0, begin * each, count * each)
        if isinstance(values, list):
            return [values[i * each : (i + 1) * each] for i in range(count)]
        return values.reshape(count, *(_shape_of(schema) or (each,)), *values.shape[1:])
    if kind == b"+s":
        names = [schema.children[i].contents.name for i in range(schema.n_children)]
        return _table([_child(schema, array, i, begin, count) for i in range(schema.n_children)], names)
    told = next((name for begun, name in _OTHERS.items() if kind.startswith(begun)), f"data of the type '{kind.decode()}'")
    raise _UnfitError(f"holds {told}{_place(schema)}; expected numbers, or lists of numbers. Convert or leave out what is none")


def _place(schema: _Schema) -> str:
    return f" in the column '{schema.name.decode()}'" if schema.name else ""


def _child(schema: _Schema, array: _Array | None, which: int, begin: int, count: int) -> Any:
    return _read(schema.children[which].contents, array.children[which].contents if array is not None else None, begin, count)


def _numbers(kind: Any, array: _Array | None, begin: int, count: int) -> Any:
    """Numbers of the second buffer, copied."""
    dtype = np.dtype(kind)
    if array is None or not count:
        return np.empty(0, dtype)
    return np.frombuffer(ctypes.string_at(array.buffers[1] + begin * dtype.itemsize, count * dtype.itemsize), dtype)


def _require_values(schema: _Schema, array: _Array, begin: int, count: int) -> None:
    """Refuse missing values among those that are read."""
    if array.null_count == 0 or not array.n_buffers or not array.buffers[0] or not count:
        return
    first = begin // 8
    there = np.frombuffer(ctypes.string_at(array.buffers[0] + first, (begin + count + 7) // 8 - first), np.uint8)
    missing = count - int(np.unpackbits(there, bitorder="little")[begin - first * 8 :][:count].sum())
    if missing:
        told = f"{missing} of {count} values{_place(schema)} missing (null)"
        raise _UnfitError(f"has {told}; fill them, as with .fill_null(value), or drop them")


def _table(columns: list[Any], names: list[bytes]) -> Any:
    """Columns of numbers side by side; a single column of lists or arrays as it is."""
    if len(columns) == 1 and (isinstance(columns[0], list) or columns[0].ndim > 1):
        return columns[0]
    for column, name in zip(columns, names, strict=True):
        if isinstance(column, list) or column.ndim > 1:
            raise _UnfitError(f"has lists in the column '{name.decode()}' beside other columns; give each column by itself")
    if not columns:
        raise _UnfitError("has no columns")
    return np.stack(columns, axis=1)


def _shape_of(schema: _Schema) -> tuple[int, ...] | None:
    """The shape of each element of a tensor array."""
    told = _metadata(schema)
    if told.get("ARROW:extension:name") != _FIXED_SHAPE:
        return None
    said = json.loads(told["ARROW:extension:metadata"])
    order = said.get("permutation")
    if order and order != sorted(order):
        raise _UnfitError(f"holds tensors with their axes in the order {order}; give them in the order in which they lie")
    return tuple(said["shape"])


def _metadata(schema: _Schema) -> dict[str, str]:
    """The metadata of a type: a count, and the length and bytes of each key and value."""
    if not schema.metadata:
        return {}
    place = schema.metadata

    def number() -> int:
        nonlocal place
        found = ctypes.cast(place, POINTER(ctypes.c_int32)).contents.value
        place += 4
        return found

    def text() -> str:
        nonlocal place
        length = number()
        found = ctypes.string_at(place, length).decode(errors="replace")
        place += length
        return found

    return {text(): text() for _ in range(number())}
