"""The graph of a model as TensorBoard shows it.

Source: TensorFlow's ``graph.proto``, ``node_def.proto``, ``attr_value.proto`` and ``tensor_shape.proto``, of which these are the
fields in use.
"""

from __future__ import annotations

import re
from collections import Counter

from ...core.common.dtypes import dtype_name
from ...core.graph import graph
from ...core.graph.block import Combine
from ...core.graph.function import Function
from ...core.graph.nodes import Primitive
from ...core.graph.variable import Variable
from ...core.types.spec import Spec
from ..protobuf import content, integer

TYPES = {"float32": 1, "float64": 2, "float16": 19, "bfloat16": 14}
"""TensorFlow's numbers."""


class ModelGraph:
    """Names for all nodes of a model, no two alike; what lies in a block is called *block*/*node*.

    Args:
        model: any function.

    Attributes:
        names: names of nodes, by the primitive or the leaf variable.
    """

    def __init__(self, model: Function) -> None:
        self.names: dict[Primitive | Variable, str] = {}
        self._taken: Counter[str] = Counter()
        self._stands_for: dict[Variable, Variable] = {}
        self._name_all(model.root_function, "")

    def definition(self) -> bytes:
        """The message ``GraphDef``."""
        nodes = (self._function(node) if isinstance(node, Primitive) else self._leaf(node) for node in self.names)
        return b"".join(content(1, node) for node in nodes)

    def _name_all(self, root: Primitive, scope: str) -> None:
        for node in graph.primitives_of([root]):
            if node.is_block:
                self._name_block(node, scope)
            elif node not in self.names:
                if not isinstance(node, Combine) or not scope:
                    self._name(node, node.name or node.uid, scope)
                self._name_leaves(node, scope)

    def _name_block(self, block: Primitive, scope: str) -> None:
        if block.outputs[0] not in self._stands_for:
            inside = self._free(scope + _valid(block.name or block.op_name + block.uid.removeprefix("Block")))
            self._stands_for.update(block.block_arguments_mapping)
            self._stands_for.update(zip(block.outputs, block.block_root.outputs, strict=True))
            self._name_all(block.block_root.root_function, f"{inside}/")

    def _name_leaves(self, node: Primitive, scope: str) -> None:
        for variable in map(self._source, node.inputs):
            if not variable.is_output and variable not in self.names:
                owned = variable.is_parameter or variable.is_constant
                self._name(variable, variable.name or variable.uid, scope if owned else "")

    def _name(self, node: Primitive | Variable, name: str, scope: str) -> None:
        self.names[node] = self._free(scope + _valid(name))

    def _free(self, name: str) -> str:
        made = name
        while made in self._taken:
            made = f"{name}_{self._taken[name]}"
            self._taken[name] += 1
        self._taken[made] = 1
        return made

    def _source(self, variable: Variable) -> Variable:
        """The variable itself, for one that stands at the border of a block."""
        while variable in self._stands_for:
            variable = self._stands_for[variable]
        return variable

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
        source = self._source(variable)
        if not source.is_output:
            return self.names[source]
        index = source.owner.outputs.index(source)
        return f"{self.names[source.owner]}:{index}" if index else self.names[source.owner]


def _valid(name: str) -> str:
    """A name as TensorBoard takes it; a slash is between a scope and what is in it."""
    return re.sub(r"[^\w./-]|^/|/(?=/|$)", "_", name)


def _attribute(key: str, value: bytes) -> bytes:
    return content(5, content(1, key) + content(2, value))


def _shape(spec: Spec) -> bytes:
    if spec.shape is None:
        return integer(3, True)
    return b"".join(content(2, integer(1, max(size, -1))) for size in spec.shape)
