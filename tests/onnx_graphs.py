"""Graphs of ONNX, written node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cntk.plugins.formats.onnx.messages import (
    Attribute,
    Dimension,
    Graph,
    LocalFunction,
    Model,
    Node,
    OperatorSet,
    Shape,
    TensorType,
    Type,
    ValueInfo,
    write_message,
)
from cntk.plugins.formats.onnx.tensors import code_of, write_tensor

RANDOM = np.random.default_rng(3)


def attribute(name: str, value: Any) -> Attribute:
    if isinstance(value, float):
        return Attribute(name=name, f=value, type=1)
    if isinstance(value, int):
        return Attribute(name=name, i=value, type=2)
    if isinstance(value, str):
        return Attribute(name=name, s=value.encode(), type=3)
    if isinstance(value, Graph):
        return Attribute(name=name, g=value, type=5)
    if isinstance(value, np.ndarray):
        return Attribute(name=name, t=write_tensor(value), type=4)
    return Attribute(name=name, ints=np.array(value, np.int64), type=7)


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> Node:
    return Node(
        input=["" if name == "-" else name for name in inputs.split()],
        output=outputs.split(),
        op_type=op_type,
        domain=attributes.pop("domain", None),
        name=attributes.pop("name", None),
        attribute=[attribute(name, value) for name, value in attributes.items()],
    )


def value(name: str, *dims: Any, dtype: Any = np.float32) -> ValueInfo:
    shape = Shape([Dimension(dim_param=dim) if isinstance(dim, str) else Dimension(dim_value=dim) for dim in dims])
    return ValueInfo(name=name, type=Type(TensorType(elem_type=code_of(dtype), shape=shape)))


def graph(nodes: Sequence[Node], inputs: Sequence[ValueInfo], outputs: str, **numbers: Any) -> Graph:
    tensors = [write_tensor(np.asarray(array), name) for name, array in numbers.items()]
    return Graph(node=[*nodes], input=[*inputs], output=[ValueInfo(name=name) for name in outputs.split()], initializer=tensors)


def file_of(content: Graph, version: int = 18, functions: Sequence[LocalFunction] = (), **domains: int) -> bytes:
    sets = [OperatorSet(version=version), *(OperatorSet(name, number) for name, number in domains.items())]
    return b"".join(map(bytes, write_message(Model(ir_version=8, graph=content, opset_import=sets, functions=[*functions]))))


def normal(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)
