"""Requests of the Open Inference Protocol, version 2: bytes in, tensors out.

Source: https://github.com/kserve/open-inference-protocol, specification/protocol/inference_rest.md, and its extension for binary tensors,
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md.
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct

from cntk.serving.datatypes import dtype_of
from cntk.serving.limits import Limits
from cntk.serving.refusals import BadTensor, Refusal

MOST_AXES = 16
EXPLAINED = 2**20
"""Bytes of JSON up to which a mistake in it is looked for closely."""

NO_DATA = Raw()

_Scalar = str | int | float | bool | None
_Size = Annotated[int, Meta(ge=0, le=2**31)]


class InputTensor(Struct):
    """A tensor of a request, as it is in JSON."""

    name: str
    shape: Annotated[list[_Size], Meta(max_length=MOST_AXES)]
    datatype: str
    parameters: dict[str, _Scalar] = {}
    data: Raw = NO_DATA


class RequestedOutput(Struct):
    """An output that a request asks for."""

    name: str
    parameters: dict[str, _Scalar] = {}


class Body(Struct):
    """The JSON of a request."""

    inputs: Annotated[list[InputTensor], Meta(max_length=1000)]
    id: str = ""
    parameters: dict[str, _Scalar] = {}
    outputs: Annotated[list[RequestedOutput], Meta(max_length=1000)] = []


class Request(NamedTuple):
    """What a request asks for.

    Attributes:
        id: what the response repeats.
        tensors: by name.
        outputs: names of the outputs wanted, with whether each is wanted as binary data; empty for all.
        binary: whether outputs are wanted as binary data where *outputs* is empty.
    """

    id: str
    tensors: dict[str, np.ndarray[Any, Any]]
    outputs: dict[str, bool]
    binary: bool


_body = msgspec.json.Decoder(Body)
_decoders: dict[tuple[str, int], msgspec.json.Decoder[Any]] = {}
_KINDS: dict[str, Any] = {"b": bool, "i": int, "u": int}


def read_request(body: bytes, header_length: bytes | None, limits: Limits) -> Request:
    """Read a request.

    Args:
        body: what came.
        header_length: the header ``Inference-Header-Content-Length``: how many bytes of it are JSON, before binary data; None for all.
        limits: what is taken at most.

    Raises:
        Refusal: it is not of the protocol, or beyond a limit.
        BadTensor: a tensor's data does not fit its own shape and datatype.
    """
    size = len(body) if header_length is None else _header_length(header_length, len(body))
    head = body if size == len(body) else memoryview(body)[:size]
    asked = _decoded(head)
    _require_elements(asked, limits)
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    end = size
    for tensor in asked.inputs:
        if tensor.name in tensors:
            raise BadTensor(tensor.name, f"the input {tensor.name!r} is given twice")
        nbytes = tensor.parameters.get("binary_data_size")
        if nbytes is None:
            tensors[tensor.name] = _from_json(tensor)
        else:
            tensors[tensor.name] = _from_bytes(tensor, body, end, nbytes)
            end += int(nbytes)
    if end != len(body):
        raise Refusal(400, f"the inputs take {end} bytes of the request, by their binary_data_size and the JSON; it has {len(body)}")
    for output in asked.outputs:
        _require_plain(output)
    binary = asked.parameters.get("binary_data_output") is True
    outputs = {output.name: output.parameters.get("binary_data", binary) is True for output in asked.outputs}
    return Request(asked.id, tensors, outputs, binary)


def _header_length(given: bytes, total: int) -> int:
    if not given.isdigit() or len(given) > 12 or int(given) > total:
        shown = given[:20].decode("latin-1")
        raise Refusal(400, f"Inference-Header-Content-Length: expected how many of the request's {total} bytes are JSON, got {shown!r}")
    return int(given)


def _decoded(head: Any) -> Body:
    try:
        return _body.decode(head)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"the request is not one of the Open Inference Protocol: {error}", example=EXAMPLE) from None
    except RecursionError:
        raise Refusal(422, "the request's JSON is nested too deeply; tensors have as many levels of lists as axes, or one") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if (name := _not_finite(head)) is not None:
            raise BadTensor(
                name, f"the input {name!r} has NaN or Infinity, which JSON does not have; send such numbers as binary data"
            ) from None
        raise Refusal(400, f"the request is not JSON: {error}", example=EXAMPLE) from None


def _not_finite(head: Any) -> str | None:
    """The input in which there is a number that JSON does not have, though others write it."""
    if len(head) > EXPLAINED:
        return None
    try:
        asked = json.loads(bytes(head))
        return next((str(one["name"]) for one in asked["inputs"] if _has_infinite(one["data"])), None)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _has_infinite(data: Any) -> bool:
    return any(map(_has_infinite, data)) if isinstance(data, list) else isinstance(data, float) and not math.isfinite(data)


def _require_elements(asked: Body, limits: Limits) -> None:
    """See that memory for the tensors may be had."""
    wanted = sum(math.prod(tensor.shape) for tensor in asked.inputs)
    if wanted > limits.elements:
        raise Refusal(422, f"the inputs have {wanted} elements together; this server takes {limits.elements} at most")


def _dtype(tensor: InputTensor) -> np.dtype[Any]:
    for name in ("shared_memory_region", "shared_memory_offset", "shared_memory_byte_size"):
        if name in tensor.parameters:
            raise BadTensor(tensor.name, f"the input {tensor.name!r} is in shared memory, which this server does not use; send its data")
    try:
        return dtype_of(tensor.datatype)
    except ValueError as error:
        raise BadTensor(tensor.name, f"the input {tensor.name!r}: {error}") from None


def _from_bytes(tensor: InputTensor, body: bytes, begin: int, nbytes: _Scalar) -> np.ndarray[Any, Any]:
    dtype, count = _dtype(tensor), math.prod(tensor.shape)
    if type(nbytes) is not int or nbytes != count * dtype.itemsize:
        raise BadTensor(
            tensor.name,
            f"the input {tensor.name!r}: {tensor.datatype} of shape {tensor.shape} has {count * dtype.itemsize} bytes, and "
            f"binary_data_size says {nbytes!r}",
        )
    if tensor.data is not NO_DATA:
        raise BadTensor(tensor.name, f"the input {tensor.name!r} has both data and binary_data_size; expected one of the two")
    if begin + nbytes > len(body):
        raise BadTensor(tensor.name, f"the input {tensor.name!r}: {nbytes} bytes were announced, and {len(body) - begin} came")
    return np.frombuffer(body, dtype, count, begin).reshape(tensor.shape)


def _from_json(tensor: InputTensor) -> np.ndarray[Any, Any]:
    dtype = _dtype(tensor)
    if tensor.data is NO_DATA:
        raise BadTensor(tensor.name, f"the input {tensor.name!r} has no data")
    numbers = _flat(tensor, dtype)
    count = math.prod(tensor.shape)
    if len(numbers) != count:
        raise BadTensor(tensor.name, f"the input {tensor.name!r}: shape {tensor.shape} has {count} elements, and data has {len(numbers)}")
    try:
        with np.errstate(over="raise"):
            found = np.array(numbers, np.float64).astype(dtype) if dtype.kind in "fV" else np.array(numbers, dtype)
    except (OverflowError, FloatingPointError):
        raise BadTensor(tensor.name, f"the input {tensor.name!r} has a number that {tensor.datatype} does not hold") from None
    return found.reshape(tensor.shape)


def _flat(tensor: InputTensor, dtype: np.dtype[Any]) -> list[Any]:
    """The elements one after another; data is a flat list, or one nested as the shape says."""
    kind = _KINDS.get(dtype.kind, float)
    data: Any = tensor.data
    depth = len(tensor.shape)
    try:
        return _decoder(kind, 1).decode(data)
    except msgspec.ValidationError as error:
        if depth < 2 or "got `array`" not in str(error):
            raise _bad_data(tensor, error) from None
    try:
        nested = _decoder(kind, depth).decode(data)
    except msgspec.ValidationError as error:
        raise _bad_data(tensor, error) from None
    sizes = tensor.shape
    is_shaped = len(nested) == sizes[0]
    for size in sizes[1:]:
        is_shaped = is_shaped and all(len(part) == size for part in nested)
        nested = [item for part in nested for item in part]
    if not is_shaped:
        raise BadTensor(tensor.name, f"the input {tensor.name!r}: the lists of data are not nested as the shape {sizes} says")
    return nested


def _decoder(kind: type, depth: int) -> msgspec.json.Decoder[Any]:
    key = kind.__name__, depth
    if key not in _decoders:
        wanted: Any = kind
        for _ in range(depth):
            wanted = list[wanted]
        _decoders[key] = msgspec.json.Decoder(wanted)
    return _decoders[key]


def _bad_data(tensor: InputTensor, error: Exception) -> BadTensor:
    text = str(error).replace("`$[...]", "`data[...]").replace("`$", "`data")
    return BadTensor(tensor.name, f"the input {tensor.name!r}: data is not {tensor.datatype} of shape {tensor.shape}: {text}")


def _require_plain(output: RequestedOutput) -> None:
    for name in ("classification", "shared_memory_region"):
        if name in output.parameters:
            raise Refusal(422, f"the output {output.name!r}: this server does not have the option {name!r}; it gives the numbers")


EXAMPLE: dict[str, Any] = {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1.5]}]}
"""A request, for errors in which no model is known."""
