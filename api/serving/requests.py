"""Requests of the Open Inference Protocol, version 2: bytes in, tensors out.

Source: https://github.com/kserve/open-inference-protocol, specification/protocol/inference_rest.md, and its extension for binary tensors,
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct

from cntk.serving.datatypes import dtype_of
from cntk.serving.limits import Limits
from cntk.serving.refusals import BadTensor, Refusal

MOST_AXES = 16
SHOWN = 200
"""Letters of what a client has sent that an error repeats."""

NO_DATA = Raw()

_Scalar = str | int | float | bool | None
_Size = Annotated[int, Meta(ge=0, le=2**31)]


class InputTensor(Struct):
    """A tensor of a request, as it is in JSON; null is what some clients send for what is not there."""

    name: str
    shape: Annotated[list[_Size], Meta(max_length=MOST_AXES)]
    datatype: str
    parameters: dict[str, _Scalar] | None = None
    data: Raw = NO_DATA


class RequestedOutput(Struct):
    """An output that a request asks for."""

    name: str
    parameters: dict[str, _Scalar] | None = None


class Body(Struct):
    """The JSON of a request."""

    inputs: Annotated[list[InputTensor], Meta(max_length=1000)]
    id: str | None = None
    parameters: dict[str, _Scalar] | None = None
    outputs: Annotated[list[RequestedOutput], Meta(max_length=1000)] | None = None


class _Inputs(Struct):
    """A request of which some tensors are damaged."""

    inputs: list[Raw]


class _Named(Struct):
    """A tensor, damaged or not, that has a name."""

    name: str


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
_NOT_FINITE = re.compile(rb"NaN|-?Infinity")
_PLACE = re.compile(r"`\$\.inputs\[(\d+)\]")
"""Where msgspec says that an input is wrong."""


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
            raise BadTensor(tensor.name, f"the input {tensor.name!r:.{SHOWN}} is given twice")
        nbytes = (tensor.parameters or {}).get("binary_data_size")
        if nbytes is None:
            tensors[tensor.name] = _from_json(tensor)
        else:
            tensors[tensor.name] = _from_bytes(tensor, body, end, nbytes)
            end += int(nbytes)
    if end != len(body):
        raise Refusal(400, f"the inputs take {end} bytes of the request, by their binary_data_size and the JSON; it has {len(body)}")
    binary = _flag(asked.parameters, "binary_data_output", False)
    outputs = {output.name: _is_binary(output, binary) for output in asked.outputs or ()}
    return Request(asked.id or "", tensors, outputs, binary)


def _header_length(given: bytes, total: int) -> int:
    if not given.isdigit() or len(given) > 12 or int(given) > total:
        shown = given[:20].decode("latin-1")
        raise Refusal(400, f"Inference-Header-Content-Length: expected how many of the request's {total} bytes are JSON, got {shown!r}")
    return int(given)


def _decoded(head: Any) -> Body:
    try:
        return _body.decode(head)
    except msgspec.ValidationError as error:
        place = _PLACE.search(str(error))
        name = None if place is None else _name_at(head, int(place[1]))
        text = "the request" if name is None else f"the request, in its input {name!r:.{SHOWN}},"
        raise BadTensor(name, f"{text} is not one of the Open Inference Protocol: {error}", 400) from None
    except RecursionError:
        raise BadTensor(None, "the request's JSON is nested too deeply; tensors have as many levels of lists as axes, or one") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if (name := _not_finite(head)) is not None:
            raise BadTensor(
                name, f"the input {name!r:.{SHOWN}} has NaN or Infinity, which JSON does not have; send such numbers as binary data"
            ) from None
        raise BadTensor(None, f"the request is not JSON: {error}", 400) from None


def _name_at(head: Any, place: int) -> str | None:
    """The name of an input by its place, if it has one."""
    try:
        return msgspec.json.decode(msgspec.json.decode(head, type=_Inputs).inputs[place], type=_Named).name
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _not_finite(head: Any) -> str | None:
    """The input in which there is a number that JSON does not have, though others write it."""
    without, count = _NOT_FINITE.subn(b"null", head)
    try:
        return next((one.name for one in _body.decode(without).inputs if b"null" in bytes(one.data)), None) if count else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _require_elements(asked: Body, limits: Limits) -> None:
    """See that memory for the tensors may be had."""
    counts = [math.prod(tensor.shape) for tensor in asked.inputs]
    if sum(counts) > limits.elements:
        most = asked.inputs[counts.index(max(counts))].name
        raise BadTensor(
            most, f"the inputs have {sum(counts)} elements together, {most!r:.{SHOWN}} most of them; this server takes {limits.elements}"
        )


def _dtype(tensor: InputTensor) -> np.dtype[Any]:
    for name in ("shared_memory_region", "shared_memory_offset", "shared_memory_byte_size"):
        if name in (tensor.parameters or {}):
            raise BadTensor(
                tensor.name, f"the input {tensor.name!r:.{SHOWN}} is in shared memory, which this server does not use; send its data"
            )
    try:
        return dtype_of(tensor.datatype)
    except ValueError as error:
        raise BadTensor(tensor.name, f"the input {tensor.name!r:.{SHOWN}}: {error}") from None


def _from_bytes(tensor: InputTensor, body: bytes, begin: int, nbytes: _Scalar) -> np.ndarray[Any, Any]:
    dtype, count = _dtype(tensor), math.prod(tensor.shape)
    if type(nbytes) is not int or nbytes != count * dtype.itemsize:
        raise BadTensor(
            tensor.name,
            f"the input {tensor.name!r:.{SHOWN}}: {tensor.datatype} of shape {tensor.shape} has {count * dtype.itemsize} bytes, and "
            f"binary_data_size says {nbytes!r}",
        )
    if tensor.data is not NO_DATA:
        raise BadTensor(tensor.name, f"the input {tensor.name!r:.{SHOWN}} has both data and binary_data_size; expected one of the two")
    if begin + nbytes > len(body):
        raise BadTensor(tensor.name, f"the input {tensor.name!r:.{SHOWN}}: {nbytes} bytes were announced, and {len(body) - begin} came")
    return np.frombuffer(body, dtype, count, begin).reshape(tensor.shape)


def _from_json(tensor: InputTensor) -> np.ndarray[Any, Any]:
    dtype = _dtype(tensor)
    if tensor.data is NO_DATA:
        raise BadTensor(tensor.name, f"the input {tensor.name!r:.{SHOWN}} has no data")
    numbers = _flat(tensor, dtype)
    count = math.prod(tensor.shape)
    if len(numbers) != count:
        raise BadTensor(
            tensor.name, f"the input {tensor.name!r:.{SHOWN}}: shape {tensor.shape} has {count} elements, and data has {len(numbers)}"
        )
    try:
        with np.errstate(over="raise"):
            found = np.array(numbers, np.float64).astype(dtype) if dtype.kind in "fV" else np.array(numbers, dtype)
    except (OverflowError, FloatingPointError):
        raise BadTensor(tensor.name, f"the input {tensor.name!r:.{SHOWN}} has a number that {tensor.datatype} does not hold") from None
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
        raise BadTensor(tensor.name, f"the input {tensor.name!r:.{SHOWN}}: the lists of data are not nested as the shape {sizes} says")
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
    return BadTensor(tensor.name, f"the input {tensor.name!r:.{SHOWN}}: data is not {tensor.datatype} of shape {tensor.shape}: {text}")


def _is_binary(output: RequestedOutput, otherwise: bool) -> bool:
    """Whether an output is wanted as binary data."""
    for name in ("classification", "shared_memory_region"):
        if name in (output.parameters or {}):
            raise Refusal(422, f"the output {output.name!r:.{SHOWN}}: this server does not have the option {name!r}; it gives the numbers")
    return _flag(output.parameters, "binary_data", otherwise)


def _flag(parameters: dict[str, _Scalar] | None, name: str, otherwise: bool) -> bool:
    value = (parameters or {}).get(name, otherwise)
    if not isinstance(value, bool):
        raise Refusal(400, f"the parameter {name!r} is true or false, got {value!r:.{SHOWN}}")
    return value
