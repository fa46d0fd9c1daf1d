"""Messages of ONNX files as bytes: the same that ONNX's package reads and writes, and nothing that is damaged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntk.plugins.formats.onnx.messages import (
    DEEPEST,
    FIELDS,
    Attribute,
    Dimension,
    Entry,
    Graph,
    Model,
    Node,
    OperatorSet,
    Shape,
    Tensor,
    TensorType,
    Type,
    ValueInfo,
    read_message,
    write_message,
)
from cntk.plugins.protobuf import DamagedFile, Piece, varint


def read(data: Any, of: Any = Model) -> Any:
    view = memoryview(bytes(data))
    return read_message(of, Piece(view, 0, len(view)))


def written(message: Any) -> bytes:
    return b"".join(map(bytes, write_message(message)))


def model() -> Model:
    attributes = [
        Attribute(name="alpha", f=0.5, type=1),
        Attribute(name="axis", i=-1, type=2),
        Attribute(name="mode", s=b"linear", type=3),
        Attribute(name="pads", ints=np.array([1, 0, -(2**63), 2**63 - 1]), type=7),
        Attribute(name="scales", floats=np.array([1.0, 2.5], np.float32), type=6),
    ]
    dims = Shape([Dimension(dim_param="batch"), Dimension(dim_value=3), Dimension()])
    info = ValueInfo(name="x", type=Type(TensorType(elem_type=1, shape=dims)))
    node = Node(input=["x", ""], output=["y"], name="first", op_type="LeakyRelu", attribute=attributes)
    weights = Tensor(dims=np.array([2, 2]), data_type=1, name="W", float_data=np.array([1, 2, 3, 4], np.float32))
    graph = Graph(node=[node], name="graph", initializer=[weights], input=[info], output=[ValueInfo(name="y")])
    return Model(ir_version=8, producer_name="tests", graph=graph, opset_import=[OperatorSet(version=18)], metadata_props=[Entry("a", "ä")])


def test_a_model_comes_back() -> None:
    once = written(model())
    assert written(read(once)) == once
    found = read(once)
    assert found.graph.node[0].attribute[3].ints.tolist() == [1, 0, -(2**63), 2**63 - 1]
    assert found.graph.node[0].attribute[2].s == b"linear"
    assert [(dim.dim_value, dim.dim_param) for dim in found.graph.input[0].type.tensor_type.shape.dim] == [
        (None, "batch"),
        (3, None),
        (None, None),
    ]
    assert found.graph.initializer[0].float_data.tolist() == [1, 2, 3, 4]
    assert found.metadata_props == [Entry("a", "ä")]


def test_onnx_reads_what_is_written() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    theirs = onnx.ModelProto()
    theirs.ParseFromString(written(model()))
    (node,) = theirs.graph.node
    assert (node.op_type, list(node.input), node.attribute[1].i, list(node.attribute[4].floats)) == ("LeakyRelu", ["x", ""], -1, [1, 2.5])
    assert theirs.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert theirs.SerializeToString(deterministic=True) == read_again(theirs)


def read_again(theirs: Any) -> bytes:
    own = type(theirs)()
    own.ParseFromString(written(read(theirs.SerializeToString())))
    found: bytes = own.SerializeToString(deterministic=True)
    return found


def test_models_that_others_wrote_come_back() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    files = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "simple").rglob("model.onnx"))
    assert len(files) > 10
    for file in files:
        theirs = onnx.load(file)
        assert read_again(theirs) == theirs.SerializeToString(deterministic=True), file


def test_fields_have_the_numbers_that_onnx_gives_them() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    theirs = {
        Model: onnx.ModelProto,
        Graph: onnx.GraphProto,
        Node: onnx.NodeProto,
        Attribute: onnx.AttributeProto,
        Tensor: onnx.TensorProto,
    }
    for message, known in theirs.items():
        for name, (number, _) in FIELDS[message].items():
            assert known.DESCRIPTOR.fields_by_name[name].number == number, (message, name)


def test_unknown_fields_are_left_out() -> None:
    assert read(varint(999 << 3) + varint(5) + varint(1 << 3) + varint(9)).ir_version == 9


def test_numbers_may_be_packed_or_not() -> None:
    packed = read(varint(8 << 3 | 2) + varint(2) + b"\x01\x02", Attribute)
    one_by_one = read(varint(8 << 3) + b"\x01" + varint(8 << 3) + b"\x02", Attribute)
    assert packed.ints.tolist() == one_by_one.ints.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x08", "found the end of the message"),
        (varint(7 << 3) + b"\x01", "a message in field 7"),
        (varint(7 << 3 | 2) + varint(50) + b"abc", "50 bytes of field 7"),
        (varint(2 << 3) + b"\x01", "another kind of value in field 2"),
        (b"\x0f", "wire type 7"),
    ],
)
def test_damaged_messages_are_refused(data: bytes, text: str) -> None:
    with pytest.raises(DamagedFile, match=text):
        read(data)


def test_numbers_of_broken_lists_are_refused() -> None:
    for broken in (b"\x80", b"\xff" * 11 + b"\x01"):
        with pytest.raises(DamagedFile, match="at most 64 bits"):
            read(varint(8 << 3 | 2) + varint(len(broken)) + broken, Attribute)
    with pytest.raises(DamagedFile, match="4 bytes each"):
        read(varint(7 << 3 | 2) + varint(3) + b"abc", Attribute)


def test_nesting_has_a_limit() -> None:
    graph = Graph(name="innermost")
    for _ in range(DEEPEST):
        graph = Graph(node=[Node(op_type="If", attribute=[Attribute(name="then_branch", g=graph)])])
    with pytest.raises(DamagedFile, match=f"at most {DEEPEST} messages"):
        read(written(Model(graph=graph)))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    with suppress(DamagedFile):
        read(data)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_changed_bytes_are_a_message_or_refused(data: st.DataObject) -> None:
    changed = bytearray(written(model()))
    place = data.draw(st.integers(0, len(changed) - 1))
    changed[place] = data.draw(st.integers(0, 255))
    with suppress(DamagedFile):
        read(changed[: data.draw(st.integers(0, len(changed)))])
