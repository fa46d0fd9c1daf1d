"""CNTK's dictionaries as bytes: the protobuf messages ``Dictionary`` and ``DictionaryValue``.

Values of dictionaries keep their types in a file, by these classes

==================  ==============================================================
in the file         in Python
==================  ==============================================================
None, Bool, String  ``None``, ``bool``, ``str``
Int, SizeT          ``int``, ``np.uint64``
Float, Double       ``np.float32``, ``float``
NDShape             :class:`NDShape`, in Python's order of axes
Axis                :class:`FileAxis`
Vector, Dictionary  ``list``, ``dict``
NDArrayView         a dense array of float16/32/64, bfloat16, int8 or int16
==================  ==============================================================

A message of protobuf has less than 2 GiB.  A larger file begins with :data:`MARK` and the length of the message (4 bytes, little-endian);
behind the message are the values of its arrays, one after the other.

Source: Protocol Buffers, "Encoding", https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import numpy as np

from ...core.common.dtypes import dtype_named, is_half
from ..protobuf import FIXED32, FIXED64, VARINT, Chunks, Piece, varint

MARK = b"ktnc"
LARGEST_MESSAGE = 2**31 - 1
DICTIONARY_VERSION = 2
VALUE_VERSION = 2
DEEPEST = 100
"""How many dictionaries and vectors may be nested."""
MOST_AXES = 64
"""Axes of an array, as NumPy has it."""

_NONE, _BOOL, _INT, _SIZE, _FLOAT, _DOUBLE, _STRING, _SHAPE, _AXIS, _VECTOR, _DICTIONARY, _ARRAY = range(12)
_FIRST_VALUE_FIELD = 2
"""A value of type n > 0 is in the field of number n + 2."""

_TYPES = {1: "float32", 2: "float64", 4: "float16", 5: "int8", 6: "int16", 7: "bfloat16"}
"""Element types by their numbers; bfloat16 is ours, CNTK has no such type."""
_CODES = {name: code for code, name in _TYPES.items()}
_FIELDS = {"float32": (4, "<f4"), "float16": (4, "<f4"), "bfloat16": (4, "<f4"), "float64": (5, "<f8"), "int8": (6, "i1")}
"""Field and element type of the values in the file; int16 are varints, in field 7."""
_SIGNED = 7


class NDShape(tuple[int, ...]):
    """A shape; -1, -2 and -3 stand for inferred, unknown and free dimensions."""

    __slots__ = ()


class FileAxis(NamedTuple):
    """An axis as files have it."""

    number: int
    name: str
    ordered: bool


# ---- writing -------------------------------------------------------------------------------------


def write_file(entries: dict[str, Any], largest: int = LARGEST_MESSAGE) -> Chunks:
    """The bytes of a file with a dictionary, in pieces; the values of arrays behind the rest where a message would be too large.

    Raises:
        TypeError: an entry is of a type that files do not have.
    """
    made = write_dictionary(entries)
    if made.size <= largest:
        return made
    values = Chunks()
    message = write_dictionary(entries, values)
    made = Chunks()
    made.add(MARK + struct.pack("<I", message.size))
    made.extend([*message, *values])
    made.size += message.size + values.size
    return made


def write_dictionary(entries: dict[str, Any], values: Chunks | None = None, depth: int = 0) -> Chunks:
    """The bytes of a dictionary, in pieces.

    Args:
        entries: its entries.
        values: where the values of arrays go; into the dictionary where None.
        depth: how many dictionaries and lists it lies in.

    Raises:
        TypeError: an entry is of a type that files do not have, or lies too deep.
    """
    made = Chunks()
    made.add_number(1, DICTIONARY_VERSION)
    for key, value in entries.items():
        if not isinstance(key, str):
            raise TypeError(f"a file's dictionary has strings as keys, got {type(key).__name__} {key!r:.80}")
        entry = Chunks()
        entry.add_bytes(1, key.encode())
        entry.add_message(2, write_value(value, values, depth + 1))
        made.add_message(2, entry)
    return made


def write_value(value: Any, values: Chunks | None = None, depth: int = 0) -> Chunks:
    """The bytes of a value, in pieces; *values* and *depth* as for :func:`write_dictionary`.

    Raises:
        TypeError: it is of a type that files do not have, or lies too deep.
    """
    if depth > DEEPEST:
        raise TypeError(f"a file holds at most {DEEPEST} dictionaries and lists in one another")
    if hasattr(value, "has_value"):  # a cntk_py.DictionaryValue
        value = value.value
    made = Chunks()
    made.add_number(1, VALUE_VERSION)
    kind = _kind_of(value)
    made.add_number(2, kind)
    field = kind + _FIRST_VALUE_FIELD
    if kind in (_BOOL, _INT, _SIZE):
        if not -(2**63) <= int(value) < 2**64:
            raise TypeError(f"a model file holds integers of 64 bits, got {value}")
        made.add(varint(field << 3 | VARINT) + varint(int(value)))
    elif kind == _FLOAT:
        made.add(varint(field << 3 | FIXED32) + struct.pack("<f", value))
    elif kind == _DOUBLE:
        made.add(varint(field << 3 | FIXED64) + struct.pack("<d", value))
    elif kind == _STRING:
        made.add_bytes(field, value.encode())
    elif kind == _SHAPE:
        made.add_message(field, _write_shape(value))
    elif kind == _AXIS:
        made.add_message(field, _write_axis(value))
    elif kind == _VECTOR:
        vector = Chunks()
        for item in value:
            vector.add_message(1, write_value(item, values, depth + 1))
        made.add_message(field, vector)
    elif kind == _DICTIONARY:
        made.add_message(field, write_dictionary(value, values, depth))
    elif kind == _ARRAY:
        made.add_message(field, _write_array(value, values))
    return made


def _kind_of(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return _INT if -(2**31) <= value < 2**31 else _SIZE
    for types, kind in _KINDS:
        if isinstance(value, types):
            return kind
    raise TypeError(
        "a model file holds None, bools, numbers, strings, lists, dictionaries, shapes, axes and arrays, "
        f"got {type(value).__name__} {value!r:.80}"
    )


_KINDS: tuple[tuple[Any, int], ...] = (
    (type(None), _NONE),
    ((bool, np.bool_), _BOOL),
    ((np.int8, np.int16, np.int32, np.uint8, np.uint16), _INT),
    (np.integer, _SIZE),
    (np.float32, _FLOAT),
    ((float, np.floating), _DOUBLE),
    (str, _STRING),
    (NDShape, _SHAPE),
    (FileAxis, _AXIS),
    ((list, tuple), _VECTOR),
    (dict, _DICTIONARY),
    (np.ndarray, _ARRAY),
)


def _write_shape(shape: tuple[int, ...]) -> Chunks:
    made = Chunks()
    if shape:
        made.add_bytes(1, b"".join(varint(dim) for dim in reversed(shape)))
    return made


def _write_axis(axis: FileAxis) -> Chunks:
    made = Chunks()
    made.add_number(1, axis.number)
    made.add_bytes(2, axis.name.encode())
    made.add_number(3, axis.ordered)
    return made


def _write_array(array: Any, apart: Chunks | None) -> Chunks:
    if array.dtype.name not in _CODES or not array.dtype.isnative:
        raise TypeError(f"a model file holds arrays of {', '.join(_CODES)}, got one of {array.dtype}; convert it with .astype")
    made, values = Chunks(), Chunks()
    made.add_number(1, _CODES[array.dtype.name])
    made.add_message(3, _write_shape(array.shape))
    if apart is not None:
        apart.add(memoryview(_behind(array).view(np.uint8)))
        return made
    if array.dtype == np.int16:
        field = _SIGNED
        values.add_bytes(1, b"".join(varint(2 * n if n >= 0 else -2 * n - 1) for n in array.reshape(-1).tolist()))
    else:
        field, kind = _FIELDS[array.dtype.name]
        contiguous: Any = np.ascontiguousarray(array, kind).reshape(-1)
        values.add_bytes(1, memoryview(contiguous).cast("B"))
    made.add_message(field, values)
    return made


def _behind(array: Any) -> Any:
    """The values of an array as they are behind the message."""
    return np.ascontiguousarray(array, _form_behind(array.dtype)).reshape(-1)


def _form_behind(dtype: Any) -> Any:
    """Element type of an array's values behind the message; CNTK takes float32 for float16 there."""
    return np.dtype("<f4") if is_half(dtype) else np.dtype(dtype).newbyteorder("<")


# ---- reading -------------------------------------------------------------------------------------


def read_dictionary(data: Any) -> dict[str, Any]:
    """The dictionary that bytes encode.

    Raises:
        DamagedFile: they do not encode one; the message names the place.
    """
    found: dict[str, Any] = _owned(view_dictionary(data))
    return found


def view_dictionary(data: Any) -> dict[str, Any]:
    """The dictionary that bytes encode; arrays are views of these bytes where they have the same form there.

    Raises:
        DamagedFile: they do not encode one; the message names the place.
    """
    view = memoryview(data).cast("B")
    if bytes(view[:4]) != MARK or len(view) < 8:
        return _read_dictionary(Piece(view, 0, len(view)), 0)
    size = int.from_bytes(view[4:8], "little")
    whole = Piece(view, 8, len(view))
    message = whole.take(size, "a dictionary")
    message.apart = whole
    found = _read_dictionary(message, 0)
    if whole.at != whole.end:
        raise whole.damaged(f"the end of the file, found {whole.end - whole.at} bytes more")
    return found


def read_value(data: Any) -> Any:
    """The value that bytes encode.

    Raises:
        DamagedFile: they do not encode one; the message names the place.
    """
    view = memoryview(data).cast("B")
    return _owned(_read_value(Piece(view, 0, len(view)), 0))


def _read_dictionary(piece: Piece, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    begin, version = piece.at, 0
    for field, value in piece.fields():
        if field == 1:
            version = piece.number(value, "the version of a dictionary")
        elif field == 2:
            entry = piece.inside(value, "an entry of a dictionary").message("an entry of a dictionary", key=1, value=2)
            if "key" not in entry or "value" not in entry:
                raise piece.damaged("an entry of a dictionary with key and value", value.at)
            made[piece.inside(entry["key"], "a key").text()] = _read_value(piece.inside(entry["value"], "a value"), depth + 1)
        else:
            raise piece.damaged(f"a dictionary, found a message with field {field}", begin)
    if version != DICTIONARY_VERSION:
        raise piece.damaged(f"a dictionary of version {DICTIONARY_VERSION}, found {version}", begin)
    return made


def _read_value(piece: Piece, depth: int) -> Any:
    begin, kind, held, version = piece.at, _NONE, None, 0
    if depth > DEEPEST:
        raise piece.damaged(f"at most {DEEPEST} dictionaries and lists in one another")
    for field, value in piece.fields():
        if field == 1:
            version = piece.number(value, "the version of a value")
        elif field == 2:
            kind = piece.number(value, "the type of a value")
        else:
            held = field, value
    if version != VALUE_VERSION or kind > _ARRAY:
        raise piece.damaged(f"a value of version {VALUE_VERSION}, found version {version} and type {kind}", begin)
    if kind == _NONE:
        return None
    if held is None or held[0] != kind + _FIRST_VALUE_FIELD:
        raise piece.damaged(f"a value of type {kind} in field {kind + _FIRST_VALUE_FIELD}", begin)
    return _READERS[kind](piece, held[1], depth)


def _read_int(piece: Piece, value: Any, depth: int) -> int:
    number = piece.number(value, "an integer") % 2**32
    return number - 2**32 if number >= 2**31 else number


def _read_real(piece: Piece, value: Any, size: int, code: str) -> float:
    inside = piece.inside(value, "a number")
    if inside.end - inside.at != size:
        raise inside.damaged(f"a number of {size} bytes")
    return float(struct.unpack(code, inside.bytes)[0])


def _read_shape(piece: Piece) -> NDShape:
    dims: list[int] = []
    for field, value in piece.fields():
        if field != 1:
            raise piece.damaged(f"a shape, found a message with field {field}")
        if isinstance(value, int):
            dims.append(value)
        else:
            while value.at < value.end:
                dims.append(value.varint())
        if len(dims) > MOST_AXES:
            raise piece.damaged(f"a shape of at most {MOST_AXES} axes")
    return NDShape(dim - 2**64 if dim >= 2**63 else dim for dim in reversed(dims))


def _read_axis(piece: Piece) -> FileAxis:
    fields = piece.message("an axis", index=1, name=2, ordered=3)
    index = _read_int(piece, fields.get("index", 0), 0)
    name = piece.inside(fields["name"], "the name of an axis").text() if "name" in fields else ""
    return FileAxis(index, name, bool(fields.get("ordered", 0)))


def _read_vector(piece: Piece, depth: int) -> list[Any]:
    made = []
    for field, value in piece.fields():
        if field != 1:
            raise piece.damaged(f"a list, found a message with field {field}")
        made.append(_read_value(piece.inside(value, "an element of a list"), depth + 1))
    return made


def _read_array(piece: Piece) -> Any:
    begin = piece.at
    fields = piece.message("an array", type=1, format=2, shape=3, floats=4, doubles=5, bytes=6, integers=7)
    code = fields.get("type", 0)
    if code not in _TYPES:
        raise piece.damaged(f"an array of one of the types {sorted(_TYPES)}, found {code}", begin)
    if fields.get("format", 0):
        raise piece.damaged(f"a dense array, found storage format {fields['format']}", begin)
    shape = _read_shape(piece.inside(fields["shape"], "the shape of an array")) if "shape" in fields else NDShape()
    dtype = dtype_named(_TYPES[code])
    if any(dim < 0 for dim in shape) or len(shape) > MOST_AXES:
        raise piece.damaged(f"an array of known shape, of at most {MOST_AXES} axes, found {tuple(shape)!s:.80}", begin)
    wanted = math.prod(shape)
    if piece.apart is not None:
        kind = _form_behind(dtype)
        found = np.frombuffer(piece.apart.take(wanted * kind.itemsize, "an array").bytes, kind)
        with np.errstate(over="ignore"):
            return found.astype(dtype, copy=False).reshape(shape)
    name, kind = ("integers", "") if dtype == np.int16 else (_NAMES[_FIELDS[dtype.name][0]], _FIELDS[dtype.name][1])
    message = piece.inside(fields.get(name, Piece(piece.data, begin, begin)), "the values of an array")
    values = message.message("the values of an array", values=1).get("values", Piece(piece.data, begin, begin))
    values = piece.inside(values, "the values of an array")
    if dtype == np.int16:
        found = _read_signed(values)
    elif len(values.bytes) % np.dtype(kind).itemsize:
        raise piece.damaged(f"values of {np.dtype(kind).itemsize} bytes each", values.at)
    else:
        found = np.frombuffer(values.bytes, kind)
    if len(found) != wanted:
        raise piece.damaged(f"{wanted} values for an array of shape {tuple(shape)}, found {len(found)}", begin)
    with np.errstate(over="ignore"):
        return found.astype(dtype, copy=False).reshape(shape)


_NAMES = {4: "floats", 5: "doubles", 6: "bytes"}


def _read_signed(piece: Piece) -> Any:
    """Integers of 16 bits: numbers of one to three bytes, the sign in the lowest bit."""
    data = np.frombuffer(piece.bytes, np.uint8)
    ends = np.flatnonzero(data < 128)
    begins = np.concatenate(([0], ends[:-1] + 1))[: len(ends)]
    lengths = ends - begins + 1
    if (ends[-1] + 1 if len(ends) else 0) != len(data) or lengths.max(initial=0) > 3:
        raise piece.damaged("integers of 16 bits")
    numbers = np.zeros(len(ends), np.int32)
    for place in range(3):
        there = lengths > place
        numbers[there] |= (data[begins[there] + place] & 127).astype(np.int32) << 7 * place
    if numbers.max(initial=0) >= 2**16:
        raise piece.damaged("integers of 16 bits")
    return ((numbers >> 1) ^ -(numbers & 1)).astype(np.int16)


_READERS: dict[int, Any] = {
    _BOOL: lambda piece, value, depth: bool(piece.number(value, "a bool")),
    _INT: _read_int,
    _SIZE: lambda piece, value, depth: np.uint64(piece.number(value, "a number")),
    _FLOAT: lambda piece, value, depth: np.float32(_read_real(piece, value, 4, "<f")),
    _DOUBLE: lambda piece, value, depth: _read_real(piece, value, 8, "<d"),
    _STRING: lambda piece, value, depth: piece.inside(value, "a string").text(),
    _SHAPE: lambda piece, value, depth: _read_shape(piece.inside(value, "a shape")),
    _AXIS: lambda piece, value, depth: _read_axis(piece.inside(value, "an axis")),
    _VECTOR: lambda piece, value, depth: _read_vector(piece.inside(value, "a list"), depth),
    _DICTIONARY: lambda piece, value, depth: _read_dictionary(piece.inside(value, "a dictionary"), depth),
    _ARRAY: lambda piece, value, depth: _read_array(piece.inside(value, "an array")),
}


def _owned(value: Any) -> Any:
    """The same value, with arrays of its own."""
    if isinstance(value, np.ndarray):
        return value if value.flags.owndata and value.flags.writeable else value.copy()
    if isinstance(value, dict):
        return {key: _owned(one) for key, one in value.items()}
    return [_owned(one) for one in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """The same value in Python's own types, as users see it, with arrays of its own."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _owned(value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value
