"""The graph of a model as TensorBoard shows it.

Source: TensorFlow's ``graph.proto``, ``node_def.proto``, ``attr_value.proto`` and ``tensor_shape.proto``, of which these are the
fields in use.
"""

from __future__ import annotations

import re

from ...core.common.dtypes import dtype_name
from ...core.graph.node_paths import NodePaths
from ...core.graph.nodes import Primitive
from ...core.graph.variable import Variable
from ...core.types.spec import Spec
from ..protobuf import content, integer

TYPES = {"float32": 1, "float64": 2, "float16": 19, "bfloat16": 14}
"""TensorFlow's numbers."""


class ModelGraph(NodePaths):
    """The graph of a model, whose nodes have names as TensorBoard takes them."""

    def label(self, node: Primitive | Variable) -> str:
        """A name, or what tells the node from others; a slash is between a scope and what is in it."""
        unnamed = node.uid
        if isinstance(node, Primitive) and node.is_block:
            unnamed = node.op_name + node.uid.removeprefix("Block")
        return re.sub(r"[^\w./-]|^/|/(?=/|$)", "_", node.name or unnamed)

    def definition(self) -> bytes:
        """The message ``GraphDef``."""
        nodes = (self._function(node) if isinstance(node, Primitive) else self._leaf(node) for node in self.names)
        return b"".join(content(1, node) for node in nodes)

    def _function(self, node: Primitive) -> bytes:
        inputs = b"".join(content(3, self._reference(variable)) for variable in node.inputs)
        return self._node(node, node.op_name, inputs, [output.spec for output in node.outputs])

    def _leaf(self, variable: Variable) -> bytes:
        kind = "Const" if variable.is_constant else "Parameter" if variable.is_parameter else "Placeholder"
        return self._node(variable, "Input" if variable.is_input else kind, b"", [variable.spec])

    def _node(self, node: Primitive | Variable, op_name: str, inputs: bytes, specs: list[Spec]) -> bytes:
        made = content(1, self.names[node]) + content(2, op_name) + inputs
        made += _attribute("_output_shapes", content(1, b"".join(content(7, _shape(spec)) for spec in specs)))
        made += _attribute("shape", content(7, _shape(specs[0])))
        if specs[0].dtype is not None:
            made += _attribute("dtype", integer(6, TYPES[dtype_name(specs[0].dtype)]))
        if specs[0].axes:
            made += _attribute("dynamic_axes", content(1, b"".join(content(2, axis.name) for axis in specs[0].axes)))
        return made

    def _reference(self, variable: Variable) -> str:
        source = self.source_of(variable)
        if not source.is_output:
            return self.names[source]
        index = source.owner.outputs.index(source)
        return f"{self.names[source.owner]}:{index}" if index else self.names[source.owner]


def _attribute(key: str, value: bytes) -> bytes:
    return content(5, content(1, key) + content(2, value))


def _shape(spec: Spec) -> bytes:
    if spec.shape is None:
        return integer(3, True)
    return b"".join(content(2, integer(1, max(size, -1))) for size in spec.shape)
