"""Responses of the Open Inference Protocol, version 2: arrays in, bytes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from cntk.serving.datatypes import name_of
from cntk.serving.refusals import Refusal
from cntk.serving.requests import Request

JSON = b"application/json"
BINARY = b"application/octet-stream"

_encoder = msgspec.json.Encoder()


class Response(NamedTuple):
    """The body of a response.

    Attributes:
        body: its bytes.
        header_length: how many of them are JSON, before binary data; None for all.
    """

    body: bytes
    header_length: int | None


def write_response(request: Request, model: str, version: str, results: Mapping[str, np.ndarray[Any, Any]]) -> Response:
    """Write what was computed for a request.

    Args:
        request: what was asked for.
        model: name of the model.
        version: its version.
        results: the outputs, by name.

    Raises:
        Refusal: an output that is to be JSON has NaN or infinite numbers.
    """
    wanted = request.outputs or dict.fromkeys(results, request.binary)
    tensors, data = [], []
    for name, is_binary in wanted.items():
        array = results[name]
        tensor: dict[str, Any] = {"name": name, "datatype": name_of(array.dtype), "shape": array.shape}
        if is_binary:
            data.append(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
            tensor["parameters"] = {"binary_data_size": len(data[-1])}
        else:
            tensor["data"] = _numbers(name, array)
        tensors.append(tensor)
    head: dict[str, Any] = {"model_name": model, "model_version": version, "outputs": tensors}
    if request.id:
        head["id"] = request.id
    encoded = _encoder.encode(head)
    return Response(b"".join([encoded, *data]), len(encoded)) if data else Response(encoded, None)


def _numbers(name: str, array: np.ndarray[Any, Any]) -> list[Any]:
    flat = array.ravel()
    if array.dtype.kind not in "biu":
        flat = flat.astype(np.float64)
        if not np.isfinite(flat).all():
            at = [int(i) for i in np.unravel_index(int(np.isfinite(flat).argmin()), array.shape)]
            raise Refusal(
                422,
                f"the output {name!r} is {array[tuple(at)]} at {at}, which JSON does not have; ask for it as binary data, with "
                '"parameters": {"binary_data": true}, to get such numbers',
            )
    return flat.tolist()
