"""Paths of nodes: names that no two nodes of a graph share; what is in a block is called *block*/*node*."""

from __future__ import annotations

from collections import Counter

from . import graph
from .block import Combine
from .function import Function
from .nodes import Primitive
from .variable import Variable


class NodePaths:
    """Names all nodes of a graph; a second node of a name gets a number: ``Dense``, ``Dense_1``.

    Args:
        function: what is named, with everything behind it.

    Attributes:
        names: paths by the primitive or the leaf variable, in the order in which they run.
        blocks: paths by the block.
    """

    def __init__(self, function: Function) -> None:
        self.names: dict[Primitive | Variable, str] = {}
        self.blocks: dict[Primitive, str] = {}
        self._taken: Counter[str] = Counter()
        self._stands_for: dict[Variable, Variable] = {}
        self._name_all(function.root_function, "")

    def label(self, node: Primitive | Variable) -> str:
        """What a node is called inside its block: its name, or else its operator or kind."""
        return node.name or (node.op_name if isinstance(node, Primitive) else node.kind)

    def _name_all(self, root: Primitive, scope: str) -> None:
        for node in graph.primitives_of([root]):
            if node.is_block:
                self._name_block(node, scope)
            elif node not in self.names:
                if not isinstance(node, Combine) or not scope:
                    self._name(node, scope)
                self._name_leaves(node, scope)

    def _name_block(self, block: Primitive, scope: str) -> None:
        if block.outputs[0] not in self._stands_for:
            self.blocks[block] = inside = self._free(scope + self.label(block))
            self._stands_for.update(block.block_arguments_mapping)
            self._stands_for.update(zip(block.outputs, block.block_root.outputs, strict=True))
            self._name_all(block.block_root.root_function, f"{inside}/")

    def _name_leaves(self, node: Primitive, scope: str) -> None:
        for variable in map(self.source_of, node.inputs):
            if not variable.is_output and variable not in self.names:
                owned = variable.is_parameter or variable.is_constant
                self._name(variable, scope if owned else "")

    def _name(self, node: Primitive | Variable, scope: str) -> None:
        self.names[node] = self._free(scope + self.label(node))

    def _free(self, name: str) -> str:
        made = name
        while made in self._taken:
            made = f"{name}_{self._taken[name]}"
            self._taken[name] += 1
        self._taken[made] = 1
        return made

    def source_of(self, variable: Variable) -> Variable:
        """The variable itself, for one that stands at the border of a block."""
        while variable in self._stands_for:
            variable = self._stands_for[variable]
        return variable
