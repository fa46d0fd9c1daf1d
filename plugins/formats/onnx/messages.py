"""The messages that ONNX files are made of.

A message is a dataclass; :data:`FIELDS` says which field of the file each attribute is.  An attribute that the file does not have is None,
or empty where there may be several.

Source: ONNX, "Open Neural Network Exchange Intermediate Representation Specification", https://onnx.ai/onnx/repo-docs/IR.html.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...protobuf import BYTES, FIXED32, FIXED64, VARINT, Chunks, Piece, varint

M = TypeVar("M")

DEEPEST = 64
"""How many messages may be nested: each level of a graph within a graph is three."""


@dataclass
class Entry:
    """A key and its value."""

    key: str | None = None
    value: str | None = None


@dataclass
class OperatorSet:
    """A version of the operators of a domain."""

    domain: str | None = None
    version: int | None = None


@dataclass
class Tensor:
    """An array.  Its values are in the field of its element type, in ``raw_data``, or in another file."""

    dims: Any = ()
    data_type: int | None = None
    segment: Piece | None = None
    float_data: Any = ()
    int32_data: Any = ()
    string_data: list[Any] = field(default_factory=list)
    int64_data: Any = ()
    name: str | None = None
    raw_data: Any = None
    double_data: Any = ()
    uint64_data: Any = ()
    doc_string: str | None = None
    external_data: list[Entry] = field(default_factory=list)
    data_location: int | None = None


@dataclass
class SparseTensor:
    """An array of which only the entries that are not 0 are given."""

    values: Tensor | None = None
    indices: Tensor | None = None
    dims: Any = ()


@dataclass
class Dimension:
    """The size of an axis: a number, a name, or neither."""

    dim_value: int | None = None
    dim_param: str | None = None
    denotation: str | None = None


@dataclass
class Shape:
    """The sizes of all axes."""

    dim: list[Dimension] = field(default_factory=list)


@dataclass
class TensorType:
    """Element type and shape of an array."""

    elem_type: int | None = None
    shape: Shape | None = None


@dataclass
class Type:
    """The type of a value; of those that are not arrays only that they are there."""

    tensor_type: TensorType | None = None
    sequence_type: Any = None
    map_type: Any = None
    sparse_tensor_type: TensorType | None = None
    optional_type: Any = None
    denotation: str | None = None


@dataclass
class ValueInfo:
    """Name and type of a value."""

    name: str | None = None
    type: Type | None = None
    doc_string: str | None = None


@dataclass
class Attribute:
    """An attribute of a node."""

    name: str | None = None
    f: float | None = None
    i: int | None = None
    s: Any = None
    t: Tensor | None = None
    g: Graph | None = None
    floats: Any = ()
    ints: Any = ()
    strings: list[Any] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    doc_string: str | None = None
    type: int | None = None
    ref_attr_name: str | None = None
    sparse_tensor: SparseTensor | None = None


@dataclass
class Node:
    """An operator at work."""

    input: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    name: str | None = None
    op_type: str | None = None
    attribute: list[Attribute] = field(default_factory=list)
    doc_string: str | None = None
    domain: str | None = None
    overload: str | None = None
    metadata_props: list[Entry] = field(default_factory=list)


@dataclass
class Graph:
    """Nodes in an order in which they can run, with what they read and give."""

    node: list[Node] = field(default_factory=list)
    name: str | None = None
    initializer: list[Tensor] = field(default_factory=list)
    doc_string: str | None = None
    input: list[ValueInfo] = field(default_factory=list)
    output: list[ValueInfo] = field(default_factory=list)
    value_info: list[ValueInfo] = field(default_factory=list)
    sparse_initializer: list[SparseTensor] = field(default_factory=list)
    metadata_props: list[Entry] = field(default_factory=list)


@dataclass
class LocalFunction:
    """An operator that a file defines by other operators."""

    name: str | None = None
    input: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    attribute: list[str] = field(default_factory=list)
    node: list[Node] = field(default_factory=list)
    doc_string: str | None = None
    opset_import: list[OperatorSet] = field(default_factory=list)
    domain: str | None = None
    attribute_proto: list[Attribute] = field(default_factory=list)
    overload: str | None = None


@dataclass
class Model:
    """A file."""

    ir_version: int | None = None
    producer_name: str | None = None
    producer_version: str | None = None
    domain: str | None = None
    model_version: int | None = None
    doc_string: str | None = None
    graph: Graph | None = None
    opset_import: list[OperatorSet] = field(default_factory=list)
    metadata_props: list[Entry] = field(default_factory=list)
    functions: list[LocalFunction] = field(default_factory=list)


def names_read(graph: Graph) -> Iterator[str]:
    """The names that nodes of a graph read, and those in the graphs inside them; and its results."""
    yield from (result.name or "" for result in graph.output)
    for node in graph.node:
        yield from node.input
        yield from names_read_inside(node)


def names_read_inside(node: Node) -> Iterator[str]:
    """The names that are read in the graphs inside a node."""
    for one in node.attribute:
        for inner in (*([one.g] if one.g is not None else []), *one.graphs):
            yield from names_read(inner)


# ---- how values are encoded ----------------------------------------------------------------------


class Scalar(NamedTuple):
    """A kind of value that is no message.

    Attributes:
        wire: protobuf's wire type of one value.
        encode: the value as bytes, without length.
        decode: the value that :meth:`Piece.fields` gave.
        unpack: all values of a field that are packed into one piece, as an array; None where values are not packed.
        pack: an array as such a piece; None likewise.
    """

    wire: int
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    unpack: Callable[[Piece], Any] | None = None
    pack: Callable[[Any], Any] | None = None


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _unpack_varints(piece: Piece) -> Any:
    """The numbers of a piece, as int64; larger unsigned ones as their complement."""
    data = np.frombuffer(piece.bytes, np.uint8)
    ends = np.flatnonzero(data < 128)
    begins = np.concatenate(([0], ends[:-1] + 1))[: len(ends)]
    lengths = ends - begins + 1
    if (ends[-1] + 1 if len(ends) else 0) != len(data) or lengths.max(initial=0) > 10:
        raise piece.damaged("numbers of at most 64 bits")
    numbers = np.zeros(len(ends), np.uint64)
    for place in range(lengths.max(initial=0)):
        there = lengths > place
        numbers[there] |= (data[begins[there] + place] & 127).astype(np.uint64) << np.uint64(7 * place)
    return numbers.view(np.int64)


def _unpack_fixed(code: str) -> Callable[[Piece], Any]:
    size = np.dtype(code).itemsize

    def unpack(piece: Piece) -> Any:
        if len(piece.bytes) % size:
            raise piece.damaged(f"numbers of {size} bytes each, found {len(piece.bytes)} bytes")
        return np.frombuffer(piece.bytes, code)

    return unpack


def _fixed(code: str, letter: str) -> Scalar:
    wire = FIXED32 if np.dtype(code).itemsize == 4 else FIXED64
    return Scalar(
        wire,
        lambda number: struct.pack(letter, number),
        lambda piece: struct.unpack(letter, piece.bytes)[0],
        _unpack_fixed(code),
        lambda numbers: np.ascontiguousarray(numbers, code).reshape(-1).view(np.uint8).data,
    )


INTEGER = Scalar(
    VARINT, lambda number: varint(int(number)), _signed, _unpack_varints, lambda numbers: b"".join(varint(int(n)) for n in numbers)
)
FLOAT, DOUBLE = _fixed("<f4", "<f"), _fixed("<f8", "<d")
TEXT = Scalar(BYTES, lambda text: text.encode(), Piece.text)
RAW = Scalar(BYTES, lambda data: data, lambda piece: piece.bytes)
PIECE = Scalar(BYTES, lambda piece: piece.bytes, lambda piece: piece)
"""A message that is kept as it is."""

Kind = Scalar | type[Any]

FIELDS: dict[type[Any], dict[str, tuple[int, Kind]]] = {
    Entry: {"key": (1, TEXT), "value": (2, TEXT)},
    OperatorSet: {"domain": (1, TEXT), "version": (2, INTEGER)},
    Tensor: {
        "dims": (1, INTEGER),
        "data_type": (2, INTEGER),
        "segment": (3, PIECE),
        "float_data": (4, FLOAT),
        "int32_data": (5, INTEGER),
        "string_data": (6, RAW),
        "int64_data": (7, INTEGER),
        "name": (8, TEXT),
        "raw_data": (9, RAW),
        "double_data": (10, DOUBLE),
        "uint64_data": (11, INTEGER),
        "doc_string": (12, TEXT),
        "external_data": (13, Entry),
        "data_location": (14, INTEGER),
    },
    SparseTensor: {"values": (1, Tensor), "indices": (2, Tensor), "dims": (3, INTEGER)},
    Dimension: {"dim_value": (1, INTEGER), "dim_param": (2, TEXT), "denotation": (3, TEXT)},
    Shape: {"dim": (1, Dimension)},
    TensorType: {"elem_type": (1, INTEGER), "shape": (2, Shape)},
    Type: {
        "tensor_type": (1, TensorType),
        "sequence_type": (4, PIECE),
        "map_type": (5, PIECE),
        "denotation": (6, TEXT),
        "sparse_tensor_type": (8, TensorType),
        "optional_type": (9, PIECE),
    },
    ValueInfo: {"name": (1, TEXT), "type": (2, Type), "doc_string": (3, TEXT)},
    Attribute: {
        "name": (1, TEXT),
        "f": (2, FLOAT),
        "i": (3, INTEGER),
        "s": (4, RAW),
        "t": (5, Tensor),
        "g": (6, Graph),
        "floats": (7, FLOAT),
        "ints": (8, INTEGER),
        "strings": (9, RAW),
        "tensors": (10, Tensor),
        "graphs": (11, Graph),
        "doc_string": (13, TEXT),
        "type": (20, INTEGER),
        "ref_attr_name": (21, TEXT),
        "sparse_tensor": (22, SparseTensor),
    },
    Node: {
        "input": (1, TEXT),
        "output": (2, TEXT),
        "name": (3, TEXT),
        "op_type": (4, TEXT),
        "attribute": (5, Attribute),
        "doc_string": (6, TEXT),
        "domain": (7, TEXT),
        "overload": (8, TEXT),
        "metadata_props": (9, Entry),
    },
    Graph: {
        "node": (1, Node),
        "name": (2, TEXT),
        "initializer": (5, Tensor),
        "doc_string": (10, TEXT),
        "input": (11, ValueInfo),
        "output": (12, ValueInfo),
        "value_info": (13, ValueInfo),
        "sparse_initializer": (15, SparseTensor),
        "metadata_props": (16, Entry),
    },
    LocalFunction: {
        "name": (1, TEXT),
        "input": (4, TEXT),
        "output": (5, TEXT),
        "attribute": (6, TEXT),
        "node": (7, Node),
        "doc_string": (8, TEXT),
        "opset_import": (9, OperatorSet),
        "domain": (10, TEXT),
        "attribute_proto": (11, Attribute),
        "overload": (13, TEXT),
    },
    Model: {
        "ir_version": (1, INTEGER),
        "producer_name": (2, TEXT),
        "producer_version": (3, TEXT),
        "domain": (4, TEXT),
        "model_version": (5, INTEGER),
        "doc_string": (6, TEXT),
        "graph": (7, Graph),
        "opset_import": (8, OperatorSet),
        "metadata_props": (14, Entry),
        "functions": (25, LocalFunction),
    },
}
"""By message and attribute the number of the field and the kind of its values."""

_BY_NUMBER: Mapping[type[Any], dict[int, tuple[str, Kind]]] = {
    message: {number: (name, kind) for name, (number, kind) in fields.items()} for message, fields in FIELDS.items()
}


# ---- writing -------------------------------------------------------------------------------------


def write_message(message: Any) -> Chunks:
    """The bytes of a message, in pieces; values of arrays are not copied."""
    made = Chunks()
    for name, (number, kind) in FIELDS[type(message)].items():
        value = getattr(message, name)
        if value is None:
            continue
        if not isinstance(kind, Scalar):
            for one in value if isinstance(value, list) else (value,):
                made.add_message(number, write_message(one))
        elif isinstance(value, list):
            for one in value:
                made.add_bytes(number, kind.encode(one))
        elif isinstance(value, (tuple, np.ndarray)):
            if len(value):
                assert kind.pack is not None
                _add_array(made, message, number, kind, value)
        elif kind.wire == BYTES:
            made.add_bytes(number, kind.encode(value))
        else:
            made.add(varint(number << 3 | kind.wire) + kind.encode(value))
    return made


def _add_array(made: Chunks, message: Any, number: int, kind: Scalar, values: Any) -> None:
    """A field of many numbers: packed where the schema says so, one by one else, for readers that go by it."""
    if isinstance(message, Tensor):
        assert kind.pack is not None
        made.add_bytes(number, kind.pack(values))
        return
    for one in values:
        made.add(varint(number << 3 | kind.wire) + kind.encode(one))


# ---- reading -------------------------------------------------------------------------------------


def read_message(of: type[M], piece: Piece, depth: int = 0) -> M:
    """The message that a piece of a file holds.  Fields that are not known here are left out.

    Raises:
        DamagedFile: the piece holds no such message; the error names the place.
    """
    if depth > DEEPEST:
        raise piece.damaged(f"at most {DEEPEST} messages in one another")
    made, known = of(), _BY_NUMBER[of]
    numbers: dict[str, list[Any]] = {}
    begin = piece.at
    for number, value in piece.fields():
        if number not in known:
            continue
        name, kind = known[number]
        if not isinstance(kind, Scalar):
            read = read_message(kind, piece.inside(value, f"a message in field {number} of {of.__name__}"), depth + 1)
            present = getattr(made, name)
            if isinstance(present, list):
                present.append(read)
            else:
                setattr(made, name, read)
            continue
        present = getattr(made, name)
        if isinstance(present, tuple):
            assert kind.unpack is not None
            numbers.setdefault(name, []).append(
                kind.unpack(value) if isinstance(value, Piece) else np.array([_one(kind, value, piece, number, begin)])
            )
        elif isinstance(present, list):
            present.append(_one(kind, value, piece, number, begin))
        else:
            setattr(made, name, _one(kind, value, piece, number, begin))
    for name, parts in numbers.items():
        setattr(made, name, parts[0] if len(parts) == 1 else np.concatenate(parts))
    return made


def _one(kind: Scalar, value: Any, piece: Piece, number: int, begin: int) -> Any:
    """A value of a kind, where it is one."""
    size = {FIXED32: 4, FIXED64: 8}.get(kind.wire)
    if isinstance(value, Piece) != (kind.wire != VARINT) or (size is not None and len(value.bytes) != size):
        raise piece.damaged(f"another kind of value in field {number}", begin)
    return kind.decode(value)
