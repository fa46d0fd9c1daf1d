"""Graphs of ONNX being written: nodes, constants and names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..messages import Attribute, Dimension, Graph, Node, Shape, Tensor, TensorType, Type, ValueInfo, names_read
from ..tensors import code_of, write_tensor

_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 5, 6, 7, 8


class Builder:
    """A graph and the graphs inside its nodes, which read the values of those around them.

    Attributes:
        graph: the innermost graph that is open; nodes go there.
        label: name and place of the operator that is being written, for the documentation of its nodes.
    """

    def __init__(self, name: str) -> None:
        self.top = self.graph = Graph(name=name)
        self.label = ""
        self._open: list[Graph] = [self.top]
        self._taken: set[str] = set()
        self._constants: dict[tuple[Any, ...], str] = {}
        self._made: list[dict[Any, str]] = [{}]

    def unique(self, wanted: str) -> str:
        """A name that nothing else in the file has: the wanted one, with a number where it is taken."""
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    # ---- nodes ----

    def node(self, op_type: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node.

        Args:
            op_type: the operator.
            inputs: names of its operands; empty for those that are left out.
            outputs: number of results.
            domain: the operator's domain, empty for ONNX's own.
            attributes: its attributes; those that are None are left out.

        Returns:
            The name of the result, or a tuple of names for several.
        """
        operands = list(inputs)
        while operands and not operands[-1]:
            operands.pop()
        name = self.unique(f"{op_type}")
        results = [self.unique(name if i == 0 else f"{name}.{i}") if i else self.unique(f"{name}.out") for i in range(outputs)]
        made = Node(
            input=operands,
            output=results,
            name=name,
            op_type=op_type,
            attribute=[attribute(key, value) for key, value in attributes.items() if value is not None],
            doc_string=self.label or None,
            domain=domain or None,
        )
        self.graph.node.append(made)
        return results[0] if outputs == 1 else tuple(results)

    def single(self, op_type: str, dtype: Any, *inputs: str, integers: Sequence[str] = (), **attributes: Any) -> str:
        """Add a node that programs have for float32 alone: numbers of float64 are cast before and behind it.

        Args:
            op_type: the operator.
            dtype: element type of its operands and of its one result.
            inputs: names of its operands.
            integers: names of further operands, which are integers.
            attributes: its attributes.
        """
        if dtype != np.float64:
            return str(self.node(op_type, *inputs, *integers, **attributes))
        made = self.node(op_type, *(self.cast(x, np.float32) for x in inputs), *integers, **attributes)
        return self.cast(made, dtype)

    def once(self, key: Any, make: Any) -> str:
        """What *make* gives, made when it is first asked for in this graph, or in one around it."""
        for made in self._made:
            if key in made:
                return made[key]
        found: str = make()
        self._made[-1][key] = found
        return found

    # ---- constants ----

    def constant(self, values: Any, dtype: Any) -> str:
        """The name of a constant; equal ones are one."""
        array = np.asarray(values, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.initializer(array, "constant")
        return self._constants[key]

    def integers(self, *values: int) -> str:
        """The name of a vector of constant integers."""
        return self.constant(values, np.int64)

    def initializer(self, array: Any, name: str) -> str:
        """Add an array of the file; its name may get a number to be unique."""
        name = self.unique(name)
        self.top.initializer.append(write_tensor(array, name))
        return name

    def drop_unread(self) -> None:
        """Take arrays away that no node reads."""
        read = set(names_read(self.top))
        self.top.initializer = [tensor for tensor in self.top.initializer if tensor.name in read]

    # ---- graphs inside nodes ----

    @contextmanager
    def inside(self, name: str) -> Iterator[Graph]:
        """A graph that nodes go to for the time being, for an attribute of a node."""
        outer, self.graph = self.graph, Graph(name=self.unique(name))
        self._open.append(self.graph)
        self._made.append({})
        try:
            yield self.graph
        finally:
            self._open.pop()
            self._made.pop()
            self.graph = outer

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Nodes go to the outermost graph for the time being."""
        inner, made, self.graph, self._made = self.graph, self._made, self.top, self._made[:1]
        try:
            yield
        finally:
            self.graph, self._made = inner, made

    # ---- small steps that many operators need ----

    def cast(self, x: str, dtype: Any) -> str:
        """The same numbers as another type."""
        return str(self.node("Cast", x, to=code_of(dtype)))

    def unsqueeze(self, x: str, axes: Sequence[int]) -> str:
        """Further axes of size 1, at these places of the result."""
        return str(self.node("Unsqueeze", x, self.integers(*axes))) if axes else x

    def squeeze(self, x: str, axes: Sequence[int]) -> str:
        """Axes of size 1 taken away."""
        return str(self.node("Squeeze", x, self.integers(*axes))) if axes else x

    def transpose(self, x: str, order: Sequence[int]) -> str:
        """The axes in another order."""
        return x if list(order) == sorted(order) else str(self.node("Transpose", x, perm=list(order)))

    def reshape(self, x: str, sizes: Sequence[int | str]) -> str:
        """Another shape: of numbers, of 0 for a size that stays, -1 for the rest, or of names of sizes as vectors of one integer."""
        if all(isinstance(size, int) for size in sizes):
            return str(self.node("Reshape", x, self.integers(*(int(size) for size in sizes))))
        return str(self.node("Reshape", x, self.shape(sizes)))

    def shape(self, sizes: Sequence[int | str]) -> str:
        """A vector of sizes: numbers, and names of vectors of one integer."""
        if all(isinstance(size, int) for size in sizes):
            return self.integers(*(int(size) for size in sizes))
        return str(self.node("Concat", *(size if isinstance(size, str) else self.integers(size) for size in sizes), axis=0))

    def numbers(self, count: str) -> str:
        """The integers from 0 on, as many as a vector of one integer says."""
        zero, one = self.constant(0, np.int64), self.constant(1, np.int64)
        return str(self.node("Range", zero, self.squeeze(count, [0]), one))

    def size(self, x: str, axis: int) -> str:
        """The size of an axis, which may be counted from the end, as a vector of one integer."""
        return str(self.node("Shape", x, start=axis, end=axis + 1 if axis != -1 else None))


def attribute(name: str, value: Any) -> Attribute:
    """An attribute of a node: a number, a text, an array, a graph, or a list of numbers or texts."""
    if isinstance(value, Graph):
        return Attribute(name=name, g=value, type=_GRAPH)
    if isinstance(value, Tensor):
        return Attribute(name=name, t=value, type=_TENSOR)
    if isinstance(value, np.ndarray):
        return Attribute(name=name, t=write_tensor(value), type=_TENSOR)
    if isinstance(value, str):
        return Attribute(name=name, s=value.encode(), type=_STRING)
    if isinstance(value, (bool, int, np.integer)):
        return Attribute(name=name, i=int(value), type=_INT)
    if isinstance(value, (float, np.floating)):
        return Attribute(name=name, f=float(value), type=_FLOAT)
    values = list(value)
    if all(isinstance(one, str) for one in values) and values:
        return Attribute(name=name, strings=[one.encode() for one in values], type=_STRINGS)
    if all(isinstance(one, (int, np.integer)) for one in values):
        return Attribute(name=name, ints=np.array(values, np.int64), type=_INTS)
    return Attribute(name=name, floats=np.array(values, np.float32), type=_FLOATS)


def value_info(name: str, dtype: Any, sizes: Sequence[int | str], doc: str = "") -> ValueInfo:
    """Name and type of a value whose sizes are numbers or names."""
    dims = [Dimension(dim_param=size) if isinstance(size, str) else Dimension(dim_value=size) for size in sizes]
    return ValueInfo(name=name, type=Type(tensor_type=TensorType(elem_type=code_of(dtype), shape=Shape(dims))), doc_string=doc or None)
