"""What a file remembers of the function that it was written from: its graph, with sequences, blocks and names that ONNX does not have.

The record is an entry of the file's metadata: the dictionary that CNTK's model files are, in which parameters and constants have the names
of the file's arrays in place of values.  It belongs to the nodes, inputs and outputs that it was written with, of which it has a digest;
where another program has changed these the file is what they say.  Values of arrays may change: they are in the file once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from ....core.graph.block import combine
from ....core.graph.function import Function
from ....core.graph.variable import Output, Variable
from ...protobuf import DamagedFile
from ..reader import read_function
from ..wire import view_dictionary, write_dictionary
from ..writer import write_function
from .messages import Attribute, Entry, Graph, Model, ValueInfo, write_message
from .tensors import read_tensor

KEY = "opencntk.function"
"""The key of the entry."""
LARGEST = 2**28
"""Bytes of a record that is not packed."""


def write_record(function: Function, roots: list[Variable], names: Mapping[Any, str], graph: Graph) -> list[Entry]:
    """The entry of a file; none where CNTK's model files do not hold the function.

    Args:
        function: the function that the file is written from.
        roots: those of its results that the file has.
        names: what the file calls the arrays of parameters and constants.
        graph: the file's graph.
    """
    whole = _of_roots(function, roots)
    if whole.placeholders:  # results of nodes within blocks are none of a function of their own
        return []
    try:
        described = write_function(whole, names)
    except (ValueError, TypeError):
        return []
    record = {"digest": digest(graph), "function": described, "arguments": [one.uid for one in whole.arguments]}
    packed = zlib.compress(b"".join(write_dictionary(record)))
    return [Entry(KEY, base64.b85encode(packed).decode())]


def _of_roots(function: Function, roots: list[Variable]) -> Function:
    """The function of results, which is *function* where it has no others."""
    if list(function.outputs) == roots:
        return function
    if len(roots) == 1 and isinstance(roots[0], Output) and len(roots[0].owner.outputs) == 1:
        return roots[0].owner
    return combine(roots)


def has_record(model: Model) -> bool:
    """Whether a file remembers the function that it was written from."""
    return any(entry.key == KEY for entry in model.metadata_props)


def read_record(model: Model, device: Any, source: str, folder: str | None) -> Function | None:
    """The function that a file was written from; None where another program has changed the graph since.

    Each array of the model is let go as soon as it is read.

    Args:
        model: the file's message.
        device: the device of parameters and constants.
        source: what errors call the file.
        folder: where other files with values are; None if the model was not read from a file.

    Raises:
        RuntimeError: the record cannot be read.
    """
    found = _unpacked(next(entry.value or "" for entry in model.metadata_props if entry.key == KEY), source)
    graph = model.graph or Graph()
    if model.functions or graph.sparse_initializer or found.get("digest") != digest(graph):
        return None
    if not isinstance(found.get("function"), dict):
        raise DamagedFile(f"{source}: there is no function in the record")
    tensors = {tensor.name or "": tensor for tensor in graph.initializer}

    def value(name: str) -> Any:
        tensor = tensors.pop(name)
        array = read_tensor(tensor, folder)
        tensor.raw_data = None
        return array

    made: Any = read_function(found["function"], device, source, value)
    arguments = {one.uid: one for one in made.arguments}
    order = found.get("arguments")
    made.order = tuple(arguments[uid] for uid in order if isinstance(uid, str) and uid in arguments) if isinstance(order, list) else ()
    return cast(Function, made)


def _unpacked(text: str, source: str) -> dict[str, Any]:
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(base64.b85decode(text), LARGEST)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise DamagedFile(f"{source}: the record of its function is damaged: {error}") from None
    if not unpacker.eof:
        raise DamagedFile(f"{source}: the record of its function is cut off, or has more than {LARGEST} bytes")
    return view_dictionary(data)


# ---- what a record belongs to --------------------------------------------------------------------


def digest(graph: Graph) -> str:
    """The digest of what a graph computes, but for the values of its arrays."""
    made = hashlib.sha256()
    for part in _parts(graph):
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.hexdigest()


def _parts(graph: Graph) -> Iterator[bytes]:
    """A graph in pieces, without what is for readers alone: texts, names of nodes."""
    for tensor in graph.initializer:
        yield f"{tensor.name} {tensor.data_type} {[int(dim) for dim in tensor.dims]}".encode()
    for kind, infos in (("inputs", graph.input), ("outputs", graph.output)):
        yield kind.encode()
        yield from (_bytes_of(ValueInfo(info.name, info.type)) for info in infos)
    for node in graph.node:
        yield f"{node.domain or ''} {node.op_type} {node.overload or ''}".encode()
        yield repr((list(node.input), list(node.output))).encode()
        for one in sorted(node.attribute, key=lambda attribute: attribute.name or ""):
            yield _bytes_of(Attribute(one.name) if one.g or one.graphs else replace(one, doc_string=None))
            for inner in (*([one.g] if one.g else []), *one.graphs):
                yield from _parts(inner)


def _bytes_of(message: Any) -> bytes:
    return b"".join(map(bytes, write_message(message)))
