"""Arrays of ONNX files: tensors as NumPy's arrays, and the other way round."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ....core.common.dtypes import bfloat16, is_bfloat16, is_half
from ...protobuf import DamagedFile
from .messages import Entry, Tensor

TYPES: dict[int, Any] = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
    12: np.uint32,
    13: np.uint64,
}
"""NumPy's types by ONNX's numbers."""
BFLOAT16 = 16
"""The number of bfloat16, which is a package's."""
CODES = {np.dtype(kind): code for code, kind in TYPES.items()}

NAMES = {
    0: "undefined",
    8: "string",
    14: "complex64",
    15: "complex128",
    BFLOAT16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
} | {code: np.dtype(kind).name for code, kind in TYPES.items()}
"""What errors call element types."""

_FIELD = {np.float32: "float_data", np.float64: "double_data", np.int64: "int64_data", np.uint32: "uint64_data", np.uint64: "uint64_data"}
"""Where values are that are not raw, by type; the others are in ``int32_data``."""

EXTERNAL = 1
"""Value of ``data_location`` where values are in another file."""
MOST_AXES = 64


class UnsupportedTensor(ValueError):
    """A tensor of an element type that is not read."""


# ---- writing -------------------------------------------------------------------------------------


def write_tensor(array: Any, name: str = "") -> Tensor:
    """The tensor of an array, with its values as raw bytes.

    Raises:
        TypeError: there is no such element type in ONNX.
    """
    array = np.asarray(array)
    return Tensor(dims=array.shape, data_type=code_of(array.dtype), name=name, raw_data=raw_values(array))


def raw_values(array: Any) -> memoryview:
    """The values of an array as files have them: row by row, little-endian.  They are not copied if they lie like that."""
    contiguous = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return contiguous.reshape(-1).view(np.uint8).data


def move_apart(tensor: Tensor, location: str, offset: int) -> Any:
    """Let a tensor say that its values are in another file; returns these values.

    Args:
        tensor: a tensor with raw values.
        location: the other file, relative to the folder of the model.
        offset: the first byte of the values in it.
    """
    values, tensor.raw_data = tensor.raw_data, None
    where = {"location": location, "offset": str(offset), "length": str(len(values))}
    tensor.external_data = [Entry(key, value) for key, value in where.items()]
    tensor.data_location = EXTERNAL
    return values


def code_of(dtype: Any) -> int:
    """ONNX's number of an element type.

    Raises:
        TypeError: it has none.
    """
    if is_bfloat16(dtype):
        return BFLOAT16
    if np.dtype(dtype) not in CODES:
        raise TypeError(f"ONNX files hold arrays of {', '.join(kind.name for kind in CODES)}, bfloat16, got {np.dtype(dtype).name}")
    return CODES[np.dtype(dtype)]


def type_of(code: Any) -> np.dtype[Any]:
    """The element type of ONNX's number.

    Raises:
        UnsupportedTensor: values of this type are not read.
        ValueError: it is bfloat16, and the package that has it is not installed.
    """
    if code == BFLOAT16:
        return np.dtype(bfloat16())
    if code not in TYPES:
        read = ", ".join(sorted(NAMES[one] for one in (*TYPES, BFLOAT16)))
        raise UnsupportedTensor(f"values of type {NAMES.get(code, code)}; those of type {read} are read")
    return np.dtype(TYPES[code])


# ---- reading -------------------------------------------------------------------------------------


def read_tensor(tensor: Tensor, folder: str | None) -> Any:
    """The array of a tensor, as a view of the file's bytes where these have the same form.

    Args:
        tensor: the tensor.
        folder: where other files with values are; None if the model was not read from a file.

    Raises:
        UnsupportedTensor: the element type is one that NumPy does not have.
        DamagedFile: number of values and shape do not go together, or another file is not there.
    """
    label = f"tensor {tensor.name or ''!r:.80}"
    shape = tuple(int(dim) for dim in tensor.dims)
    if any(dim < 0 for dim in shape) or len(shape) > MOST_AXES:
        raise DamagedFile(f"{label}: expected a shape of at most {MOST_AXES} sizes from 0 on, found {shape!s:.80}")
    if tensor.segment is not None:
        raise UnsupportedTensor(f"{label} is a segment of a larger tensor, which is not read")
    try:
        dtype, count = type_of(tensor.data_type or 0), math.prod(shape)
    except ValueError as error:
        raise UnsupportedTensor(f"{label} has {error}") from None
    if tensor.data_location == EXTERNAL:
        found = _external(tensor, dtype, count, folder, label)
    elif tensor.raw_data is not None:
        if len(tensor.raw_data) != count * dtype.itemsize:
            raise DamagedFile(f"{label}: expected {count * dtype.itemsize} bytes for the shape {shape}, found {len(tensor.raw_data)}")
        found = np.frombuffer(tensor.raw_data, dtype.newbyteorder("<"))
    else:
        found = _typed(tensor, dtype)
        if len(found) != count:
            raise DamagedFile(f"{label}: expected {count} values for the shape {shape}, found {len(found)}")
    return found.astype(dtype, copy=False).reshape(shape)


def _typed(tensor: Tensor, dtype: Any) -> Any:
    """Values from the field of their type."""
    values = np.asarray(getattr(tensor, _FIELD.get(dtype.type, "int32_data")))
    if is_half(dtype):
        return values.astype(np.uint16).view(dtype)
    return values.view(np.uint64) if dtype == np.uint64 and values.dtype == np.int64 else values.astype(dtype)


def _external(tensor: Tensor, dtype: Any, count: int, folder: str | None, label: str) -> Any:
    """Values from another file."""
    where = {entry.key: entry.value or "" for entry in tensor.external_data}
    location = where.get("location", "")
    if folder is None:
        raise DamagedFile(f"{label}: its values are in the file {location!r:.80} beside the model; load the model by its path")
    offset, length = _size(where, "offset", 0, label), _size(where, "length", count * dtype.itemsize, label)
    if length != count * dtype.itemsize:
        raise DamagedFile(f"{label}: expected {count * dtype.itemsize} bytes in {location!r:.80}, found {length}")
    path = path_inside(folder, location, label)
    if offset + length > os.path.getsize(path):
        raise DamagedFile(f"{label}: expected {length} bytes from byte {offset} on in {location!r:.80}, which has {os.path.getsize(path)}")
    return np.fromfile(path, dtype.newbyteorder("<"), count, offset=offset)


def _size(where: Mapping[str | None, str], key: str, default: int, label: str) -> int:
    text = where.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise DamagedFile(f"{label}: expected a number as {key} of its values, found {text!r:.40}")
    return int(text)


def folder_of(source: str) -> str | None:
    """The folder in which other files with the values of a file are; None where the model is none of a file."""
    return os.path.dirname(os.path.abspath(source)) if os.path.isfile(source) else None


def path_inside(folder: str, location: str, label: str) -> str:
    """The path of a file in a folder, or below it.

    Raises:
        DamagedFile: it lies outside, or there is no such file.
    """
    inside = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(inside, location.replace("\0", "")))
    if not location or "\0" in location or os.path.isabs(location) or os.path.commonpath([inside, path]) != inside:
        raise DamagedFile(f"{label}: its values are to be in {location!r:.80}, which is not in the model's folder; that is refused")
    if not os.path.isfile(path):
        raise DamagedFile(f"{label}: its values are to be in {location!r:.80}, and there is no such file beside the model")
    return path
