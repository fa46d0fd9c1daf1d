"""Primitives that hold others: several results combined, and graphs that show as one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..common.user_frame import user_line
from ..operators.op import Op
from ..types.spec import Spec
from . import graph
from .function import Function
from .inference import Assuming, as_variable, infer_again
from .nodes import Composite, Primitive
from .variable import Output, Variable, new_uid


class Combine(Primitive):
    """Several results combined; its outputs are its inputs."""

    class _Op(Op):
        op_name = "Combine"

        def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
            return inputs

    def __init__(self, variables: Sequence[Variable], name: str = "", line: str | None = None) -> None:
        self.op = Combine._Op()
        self.uid = new_uid("Combine")
        self._name, self._inputs, self._custom = name, list(variables), {}
        self.line = line or user_line()

    @property
    def outputs(self) -> tuple[Variable, ...]:
        return tuple(self._inputs)

    def refresh(self, assuming: Assuming = Assuming.NOTHING) -> bool:
        return False

    def copy_on(self, inputs: Sequence[Variable], memo: dict[Variable, Variable]) -> Primitive:
        return Combine(inputs, self._name, self.line)


class Block(Primitive):
    """A graph that shows as one named node.

    Its inputs are the parameters and constants of the graph inside, then the outer variables its arguments stand for.
    """

    class _Op(Op):
        def __init__(self, op_name: str) -> None:
            super().__init__()
            self.op_name = op_name  # type: ignore[misc]

    def __init__(
        self, composite: Composite, mapping: Sequence[tuple[Variable, Variable]], op_name: str, name: str = "", line: str | None = None
    ) -> None:
        self.op = Block._Op(op_name)
        self.uid = new_uid("Block")
        self._name, self._custom = name, {}
        self.composite = composite
        self.inner = [inner for inner, _ in mapping]
        for inner in self.inner:
            inner.in_block = True
        leaves = graph.leaves_of(composite.root_function, engine_order=True)
        self._inputs = [v for v in leaves if v not in self.inner] + [outer for _, outer in mapping]
        self.line = line or user_line()
        self._is_assumed = False
        self._bind()
        self._outputs = tuple(Output(self, i, v.spec, name) for i, v in enumerate(composite.outputs))
        self._pass_on_need()

    @property
    def is_block(self) -> bool:
        return True

    @property
    def block_root(self) -> Function:
        return self.composite.root_function

    @property
    def block_arguments_mapping(self) -> tuple[tuple[Variable, Variable], ...]:
        return tuple(zip(self.inner, self.outer, strict=True))

    @property
    def outer(self) -> list[Variable]:
        """The outer variables that the inner arguments stand for."""
        return self._inputs[len(self._inputs) - len(self.inner) :]

    def refresh(self, assuming: Assuming = Assuming.NOTHING) -> bool:
        self._bind(assuming)
        return self._take([inside.spec for inside in self.composite.outputs])

    def replace_inputs(self, replacements: dict[Variable, Variable]) -> None:
        for primitive in graph.primitives_of([self.composite.root_function]):
            primitive.replace_inputs(replacements)
        super().replace_inputs(replacements)

    def copy_on(self, inputs: Sequence[Variable], memo: dict[Variable, Variable]) -> Primitive:
        from .clone import copy_graph

        count = len(self._inputs) - len(self.inner)
        renewed: dict[Variable, Variable] = dict(zip(self._inputs[:count], inputs[:count], strict=True))
        for inner, outer in zip(self.inner, inputs[count:], strict=True):
            renewed[inner] = type(inner)(outer.spec, outer.name, needs_gradient=outer.needs_gradient)
        composite = Composite(copy_graph(self.composite.root_function, renewed))
        mapping = list(zip([renewed[inner] for inner in self.inner], inputs[count:], strict=True))
        made = Block(composite, mapping, self.op.op_name, self._name, self.line)
        made._custom = dict(self._custom)
        return made

    def _bind(self, assuming: Assuming = Assuming.NOTHING) -> None:
        """Let the arguments inside have the names and types of the outer variables."""
        stale = assuming != Assuming.NOTHING or self._is_assumed
        for inner, outer in zip(self.inner, self.outer, strict=True):
            stale = stale or inner.spec != outer.spec or inner.needs_gradient != outer.needs_gradient
            inner._name, inner.spec, inner.needs_gradient = outer.name, outer.spec, outer.needs_gradient
        if stale:
            infer_again(graph.primitives_of([self.composite.root_function]), assuming)
        self._is_assumed = assuming != Assuming.NOTHING


def combine(*operands: Any, name: str = "") -> Composite:
    """Combine several results into one function; operands with several outputs are flattened; without operands it has no outputs.

    Args:
        operands: functions and variables, or one list or tuple of them.
        name: a name for the function.

    Raises:
        TypeError: an operand is not a function or variable.

    >>> x = C.input_variable(2)
    >>> print(C.combine(x + 1, x * 2))
    Composite(Tensor[2]) -> Tuple[Tensor[2], Tensor[2]]
    """
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return Composite(Combine(as_outputs(given, "combine: expected functions and variables"), name))


def as_outputs(items: Any, expected: str = "expected a Variable or Function") -> list[Variable]:
    """The variables behind functions and variables, one of them or several.

    Args:
        items: a function or a variable, or several.
        expected: how errors begin: what was expected.

    Raises:
        TypeError: one is something else.
    """
    found: list[Variable] = []
    for item in [items] if isinstance(items, (Variable, Function)) else items:
        if isinstance(item, Function):
            found.extend(item.outputs)
        elif isinstance(item, Variable):
            found.append(item)
        else:
            raise TypeError(f"{expected}, got {type(item).__name__} {item!r:.80}")
    return found


def as_composite(root_function: Function, name: str = "") -> Composite:
    """Wrap a primitive as a function of its own.

    >>> z = C.relu(C.input_variable(2), name='y')
    >>> z.is_composite, z.root_function.is_composite, C.as_composite(z.root_function).is_composite
    (True, False, True)
    """
    return Composite(root_function.root_function, name)


def as_block(
    composite: Function, block_arguments_map: Sequence[tuple[Any, Any]], block_op_name: str, block_instance_name: str = ""
) -> Composite:
    """Make a graph show as one node.

    Args:
        composite: the graph.
        block_arguments_map: pairs of an argument of the graph and the outer variable or function it stands for.
        block_op_name: name of the node's operator.
        block_instance_name: the node's own name.

    Raises:
        ValueError: a pair does not start with an argument of the graph, or the graph is in a block already.

    >>> x, u = C.input_variable(2, name='x'), C.placeholder(name='x')
    >>> print(C.as_block(C.plus(u, 2), [(u, x)], 'AddTwo', 'inst'))
    inst: AddTwo(x: Tensor[2]) -> Tensor[2]
    """
    leaves = composite.arguments
    for inner, _ in block_arguments_map:
        if inner not in leaves:
            raise ValueError(f"as_block: {inner!r} is not an argument of {composite}; its arguments are {list(leaves)}")
        if inner.in_block:
            raise ValueError(f"as_block: {inner!r} is bound by another block of this graph; make the second block of a clone")
    mapping = [(inner, as_variable(outer)) for inner, outer in block_arguments_map]
    inside = composite if isinstance(composite, Composite) else Composite(composite.root_function)
    return Composite(Block(inside, mapping, block_op_name, block_instance_name))
