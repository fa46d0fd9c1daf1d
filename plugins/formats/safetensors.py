"""The safetensors format: values of parameters alone, by name.

A file is the length of a header (8 bytes, little-endian), the header in JSON, and the values, row by row, without gaps.

Source: Hugging Face, safetensors, "Format", https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...core.common.dtypes import dtype_named
from ...core.common.shape import format_shape, is_concrete, size_of
from ...core.graph.function import Function
from ...core.graph.graph import depth_first_search
from ...core.graph.variable import Constant, Parameter
from ...core.storage.file_magic import is_safetensors
from ..ops.batch_normalization import BatchNormalization
from ..ops.identity import Assign
from ..protobuf import DamagedFile

LARGEST_HEADER = 100_000_000
"""Bytes of a header, as other readers have it."""
MOST_AXES = 64
_CODES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64"}
_NAMES = {code: name for name, code in _CODES.items()}

Holder = Parameter | Constant

METADATA = "__metadata__"
"""The key of the entry that is not a tensor."""


class SafeTensors:
    """What ``Function.save(..., format='safetensors')`` writes and ``Function.restore`` reads."""

    @staticmethod
    def recognises(data: Any) -> bool:
        """Whether bytes begin as a file of this format."""
        return is_safetensors(data)

    @staticmethod
    def write(function: Function) -> Iterable[Any]:
        """The bytes of the file, in pieces."""
        return write_tensors({key: holder.value for key, holder in holders_of(function).items()})

    @staticmethod
    def read(data: Any, device: Any, source: str) -> Function:
        """There is no function in a file of this format."""
        raise ValueError(
            f"{source} is a safetensors file, which holds values and no graph; build the function as the program that saved it did, "
            "and call its restore"
        )

    @staticmethod
    def described(data: Any, source: str) -> list[str]:
        """Lines about a file: name, element type and shape of each tensor."""
        return [f"{key}: {tensor.dtype.name} {format_shape(tensor.shape)}" for key, tensor in _tensors_of(data, source).items()]

    @staticmethod
    def restore(function: Function, data: Any, source: str) -> None:
        """Give the parameters of *function* the values of the file, all of them or none.

        Raises:
            ValueError: names, shapes or element types differ.
            RuntimeError: the file is damaged.
        """
        tensors = _tensors_of(data, source)
        holders = holders_of(function)
        wrong = list(_differences(holders, tensors))
        if wrong:
            more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            raise ValueError(f"restore: {source} belongs to another function than {function}: {'; '.join(wrong[:5])}{more}")
        for key, holder in holders.items():
            holder.value = tensors[key]


def _tensors_of(data: Any, source: str) -> dict[str, Any]:
    try:
        return read_tensors(data)
    except DamagedFile as error:
        raise DamagedFile(f"{source} is not a safetensors file, or damaged: {error}") from None


def holders_of(function: Function) -> dict[str, Holder]:
    """The values of a function in a file, by key: its parameters, in their order, and the constants that operators change.

    A key is the name where no other has the same; else the name, or ``parameter`` where there is none, with the first number behind it
    that makes it unique: ``W.0``, ``W.1``.  So keys depend on names and the order of the graph alone, not on uids.
    """
    changed = (v for node in depth_first_search(function, _changes_constants, -1) for v in _changed_by(node))
    holders: list[Holder] = list(dict.fromkeys([*function.parameters, *(v for v in changed if isinstance(v, Constant))]))
    names = [holder.name or "parameter" for holder in holders]
    count = Counter(names)
    taken = {name for name in names if count[name] == 1 and name != "parameter"}
    found: dict[str, Holder] = {}
    numbers: Counter[str] = Counter()
    for name, holder in zip(names, holders, strict=True):
        key = name
        if name not in taken or key in found or key == METADATA:
            while (key := f"{name}.{numbers[name]}") in taken:
                numbers[name] += 1
            numbers[name] += 1
            taken.add(key)
        found[key] = holder
    return found


def _changes_constants(node: Any) -> bool:
    return isinstance(getattr(node, "op", None), (BatchNormalization, Assign))


def _changed_by(node: Any) -> Any:
    return node.inputs[3:] if isinstance(node.op, BatchNormalization) else node.inputs[:1]


def _differences(holders: dict[str, Holder], tensors: dict[str, Any]) -> Iterator[str]:
    for key in holders:
        if key not in tensors:
            yield f"the file has no '{key}'"
    for key, tensor in tensors.items():
        if key not in holders:
            yield f"the file has '{key}', the function has not"
            continue
        shape, dtype = holders[key].shape, np.dtype(holders[key].dtype)
        if tensor.shape != shape or tensor.dtype != dtype:
            found = f"{tensor.dtype.name} of shape {format_shape(tensor.shape)}"
            yield f"'{key}' is {dtype.name} of shape {format_shape(shape)}, in the file {found}"


# ---- bytes ---------------------------------------------------------------------------------------


def write_tensors(tensors: dict[str, Any]) -> list[Any]:
    """The bytes of a file with these arrays, in pieces."""
    header: dict[str, Any] = {METADATA: {"format": "np", "producer": "opencntk"}}
    pieces, end = [], 0
    for key, value in sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):  # so that all are aligned
        if not is_concrete(value.shape) or value.dtype.name not in _CODES:
            raise TypeError(f"'{key}' of type {value.dtype} cannot be saved as a tensor")
        code = _CODES[value.dtype.name]
        data = np.ascontiguousarray(value, _type_of(code)).reshape(-1).view(np.uint8).data
        header[key] = {"dtype": code, "shape": list(value.shape), "data_offsets": [end, end + len(data)]}
        end += len(data)
        pieces.append(data)
    described = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    described += b" " * (-len(described) % 8)
    return [len(described).to_bytes(8, "little"), described, *pieces]


def read_tensors(data: Any) -> dict[str, Any]:
    """The arrays that the bytes of a file hold, by key, as views of these bytes.

    Raises:
        DamagedFile: they are not such a file; the message names the place.
    """
    view = memoryview(data).cast("B")
    if len(view) < 8:
        raise DamagedFile(f"byte 0: expected 8 bytes of a header's length, found {len(view)}")
    size = int.from_bytes(view[:8], "little")
    if size > LARGEST_HEADER or size > len(view) - 8:
        raise DamagedFile(f"byte 0: expected the length of a header of at most {min(LARGEST_HEADER, len(view) - 8)} bytes, found {size}")
    values = view[8 + size :]
    found, end = {}, 0
    described = [_described(key, entry, len(values)) for key, entry in _header(view[8 : 8 + size]).items() if key != METADATA]
    for key, dtype, shape, begin, stop in sorted(described, key=lambda one: one[3:]):
        if begin != end:
            what = "overlap those before them" if begin < end else "leave a gap before them"
            raise DamagedFile(f"byte {8 + size + begin}: the values of '{key}' {what}, which end at byte {8 + size + end}")
        found[key] = np.frombuffer(values[begin:stop], dtype).reshape(shape)
        end = stop
    if end != len(values):
        raise DamagedFile(f"byte {8 + size + end}: expected the end of the file, found {len(values) - end} bytes more")
    return found


def _header(data: Any) -> dict[str, Any]:
    try:
        found = json.loads(bytes(data).decode(), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"byte 8: expected a header in JSON: {error}") from None
    if not isinstance(found, dict):
        raise DamagedFile(f"byte 8: expected a header with an object, found {type(found).__name__}")
    return found


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {twice!r:.80} occurs twice")
    return found


def _described(key: str, entry: Any, size: int) -> tuple[str, Any, tuple[int, ...], int, int]:
    """Key, element type, shape, begin and end of a tensor."""

    def refuse(reason: str) -> DamagedFile:
        return DamagedFile(f"byte 8: tensor {key!r:.80}: {reason}")

    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise refuse(f"expected dtype, shape and data_offsets, found {entry!r:.80}")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _NAMES:
        raise refuse(f"expected one of the element types {', '.join(_NAMES)}, found {entry['dtype']!r:.40}")
    shape, offsets = (_sizes(entry[name]) for name in ("shape", "data_offsets"))
    if shape is None or len(shape) > MOST_AXES:
        raise refuse(f"expected a shape of at most {MOST_AXES} sizes, found {entry['shape']!r:.80}")
    if offsets is None or len(offsets) != 2 or not offsets[0] <= offsets[1] <= size:
        raise refuse(f"expected data_offsets in order, of at most {size}, found {entry['data_offsets']!r:.80}")
    dtype = _type_of(entry["dtype"])
    if offsets[1] - offsets[0] != size_of(shape) * dtype.itemsize:
        raise refuse(f"expected {size_of(shape) * dtype.itemsize} bytes for the shape {list(shape)}, found {offsets[1] - offsets[0]}")
    return key, dtype, shape, *offsets


def _type_of(code: str) -> np.dtype[Any]:
    """The element type of a code, as it lies in files."""
    return dtype_named(_NAMES[code]).newbyteorder("<")


def _sizes(value: Any) -> tuple[int, ...] | None:
    """A list of numbers from 0 to 2**63 - 1; None for anything else."""
    fits = isinstance(value, list) and all(type(one) is int and 0 <= one < 2**63 for one in value)
    return tuple(value) if fits else None
