"""Prints the structure of a function."""

from __future__ import annotations

from typing import Any

from cntk.core.graph import graph
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Variable


def dump_signature(root: Function, tag: str | None = None) -> None:
    """Print the signature of a function.

    Args:
        root: the function.
        tag: accepted for compatibility.

    >>> C.debugging.dump_signature(C.layers.Dense(2)(C.input_variable(3, name='x')))
    Dense(x: Tensor[3]) -> Tensor[2]
    """
    print(str(root))


def dump_function(root: Function, tag: str | None = None) -> None:
    """Print the signature of a function and a line for each node: operator, name, operands and results with their types.

    Names that nodes lack are made up: a, b, c, …; so are those of dynamic axes, but for ``b*``, the batch axis.

    Args:
        root: the function.
        tag: accepted for compatibility.

    >>> C.debugging.dump_function(C.relu(C.input_variable(3, name='x')))
    ReLU(x: Tensor[3]) -> Tensor[3]
      ReLU                 a                              (x:[b*](3,)) -> (b:[b*](3,))
      Input                x Input...                      [b*](3,)
    """
    dump_signature(root, tag)
    lines = _Lines()
    for node in graph.depth_first_search(root.root_function, lambda item: not isinstance(item, Variable) or not item.is_output, -1):
        print(lines.line(node))


class _Lines:
    """Lines of a listing, with the names it has made up."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._axes: dict[str, str] = {"UnknownAxes": "?", "defaultBatchAxis": "b*"}

    def line(self, node: Any) -> str:
        if isinstance(node, Variable):
            return f"  {node.kind:20} {f'{self._name(node)} {node.uid}':30}  {self._type(node)}"
        name = self._name(node)
        return f"  {node.op_name:20} {name:30} ({self._list(node.inputs)}) -> ({self._list(node.outputs)})"

    def _list(self, variables: tuple[Variable, ...]) -> str:
        return ", ".join(f"{self._name(variable)}:{self._type(variable)}" for variable in variables)

    def _name(self, item: Any) -> str:
        return item.name or self._names.setdefault(item, _letters(len(self._names)))

    def _type(self, variable: Variable) -> str:
        axes = ",".join(self._axis(axis.name) for axis in variable.dynamic_axes)
        return f"{f'[{axes}]' if axes else ''}{variable.shape}"

    def _axis(self, name: str) -> str:
        if name not in self._axes:
            self._axes[name] = f"{_letters(len(self._axes) + 10)}*"
            print(f"  Axis {name} == {self._axes[name]}")
        return self._axes[name]


def _letters(number: int) -> str:
    """a, b, …, z, ba, bb, …"""
    rest, last = divmod(number, 26)
    return (_letters(rest) if rest else "") + chr(ord("a") + last)


__all__ = ["dump_function", "dump_signature"]
