"""Converts graphs to the dictionaries of CNTK's model files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.common.shape import is_concrete
from ...core.graph import graph
from ...core.graph.block import Block, Combine
from ...core.graph.function import Function
from ...core.graph.nodes import Composite, Primitive
from ...core.graph.variable import Constant, Input, Output, Parameter, Placeholder, Variable, new_uid
from ...core.operators.native import NativeOp, provider_of
from ..ops import sequence_gathering
from ..user_functions import UserFunction
from . import classes
from .attributes import file_axes, file_type, operand_of, static
from .expansions import EXPANSIONS
from .opcodes import (
    BLOCK,
    COMBINE,
    FILTER,
    GATHER_PACKED,
    PACKED_INDEX,
    SCATTER_PACKED,
    SEQUENCE_SHAPE,
    STOP_GRADIENT,
    TO_SEQUENCE,
    TO_SEQUENCE_LIKE,
    TRANSPOSE,
    UNPACK,
)
from .operators import row_for
from .row import Row
from .sequential import convolution_ended_by, is_part, keeps_steps, with_channels
from .wire import NDShape

COMPOSITE_VERSION, FUNCTION_VERSION, VARIABLE_VERSION, USER_FUNCTION_VERSION = 3, 24, 1, 0
INPUT, PARAMETER, CONSTANT, PLACEHOLDER = 0, 2, 3, 4
KINDS: dict[type[Variable], int] = {Input: INPUT, Parameter: PARAMETER, Constant: CONSTANT, Placeholder: PLACEHOLDER}


def write_function(function: Function, names: Mapping[Any, str] | None = None) -> dict[str, Any]:
    """The dictionary of a function: its graph, and the values of its parameters and constants.

    Args:
        function: the function.
        names: what the values of parameters and constants are called that are kept beside the dictionary, which has their names then.

    Raises:
        ValueError: a parameter has dimensions that are not known yet.
        TypeError: something the user attached to it, or an argument of an operator's constructor, cannot be saved.
    """
    return _Writer(names).function(function)


def write_structure(root: Primitive) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """The dictionary of a graph without its leaves; by uid the primitives and leaves that belong to it; and the uids of those primitives
    of which the dictionary has only the operands: user functions, those without counterpart in the format, and those whose types are not
    known well enough for it."""
    writer = _StructureWriter(_nodes_of(root))
    found = writer.function(Composite(root))
    return found, {uid: node for node, uid in writer.uids.items() if node in writer.own}, writer.apart


def written_by_class(node: Primitive) -> bool:
    """Whether a file has only a node's class and the arguments of its constructor."""
    others = isinstance(node, (Combine, Block, UserFunction)) or isinstance(node.op, NativeOp) or is_part(node.outputs[0])
    return not others and type(node.op) not in _PACKED and type(node.op) not in EXPANSIONS and row_for(node) is None


def _nodes_of(root: Primitive) -> set[Any]:
    """All primitives and leaves of a graph, those inside blocks as well."""
    found: set[Any] = set()
    waiting = [root]
    while waiting:
        for node in graph.primitives_of([waiting.pop()]):
            if node in found:
                continue
            found.add(node)
            found.update(v for v in node.inputs if not isinstance(v, Output))
            if isinstance(node, Block):
                found.update(node.inner)
                waiting.append(node.composite.root_function)
    return found


class _Writer:
    """One file being written.

    Args:
        names: see :func:`write_function`.
    """

    def __init__(self, names: Mapping[Any, str] | None = None) -> None:
        self.names = names or {}
        self.variables: dict[str, dict[str, Any]] = {}
        self.records: list[dict[str, Any]] = []
        self.written: set[Any] = set()
        self.uids: dict[Any, str] = {}
        self.taken: set[str] = set()

    def function(self, function: Function) -> dict[str, Any]:
        """The dictionary of the whole."""
        root = function.root_function
        for output in root.outputs:
            self.refuse_part(output)
        self.graph(root)
        for leaf in root.inputs:
            if not isinstance(leaf, Output):
                self.operand(leaf)
        kept = function if function.is_composite else Composite(root)
        described = self.composite(kept, root)
        return {**described, "inputs": list(self.variables.values()), "primitive_functions": self.records}

    def composite(self, function: Function, root: Primitive) -> dict[str, Any]:
        """The properties of a composite beside its graph."""
        named = {"name": function._name} if function._name and function._name != root._name else {}
        return {
            "version": np.uint64(COMPOSITE_VERSION),
            "type": "CompositeFunction",
            "uid": self.uid(function),
            "root": self.uid(root),
            **named,
        }

    def uid(self, node: Any) -> str:
        """The node's uid, or another where a different node of the file has it."""
        if isinstance(node, Output):
            return f"{self.uid(node.owner)}_Output_{node.index}"
        if node not in self.uids:
            uid = node.uid
            while uid in self.taken:
                uid = new_uid(node.op.op_name if isinstance(node, Primitive) else "Node")
            self.taken.add(uid)
            self.uids[node] = uid
        return self.uids[node]

    # ---- nodes ----

    def graph(self, root: Primitive) -> None:
        """Write all that *root* depends on."""
        for node in graph.primitives_of([root]):
            if node not in self.written:
                self.node(node)
                self.written.add(node)

    def node(self, node: Primitive) -> None:
        """Write one primitive."""
        row = row_for(node)
        if isinstance(node, Combine):
            self.record(node, COMBINE, node.inputs, {})
        elif isinstance(node, Block):
            self.block(node, node.composite, node.block_arguments_mapping, {})
        elif isinstance(node, UserFunction):
            self.user_function(node)
        elif isinstance(node.op, NativeOp):
            self.native_function(node)
        elif type(node.op) in _PACKED:
            self.picked(node)
        elif is_part(node.outputs[0]):
            return  # written with what ends it
        elif (product := convolution_ended_by(node)) is not None:
            self.sequential(node, product)
        elif row is not None:
            self.operator(node, row)
        elif type(node.op) in EXPANSIONS:
            self.expanded(node)
        else:
            self.by_class(node)

    def operator(self, node: Primitive, row: Row) -> None:
        """Write an operator that the file has as well."""
        operands = [v if isinstance(v, Variable) else Constant(v, dtype=operand_of(node).dtype) for v in row.operands(node)]
        self.record(node, row.number, operands, self.explained(node, row.write))

    def by_class(self, node: Primitive) -> None:
        """Write an operator that CNTK does not have, by its class and the arguments of its constructor."""
        described = {
            "version": np.uint64(classes.VERSION),
            "type": classes.KIND,
            "uid": self.uid(node),
            "inputs": [self.operand(v) for v in node.inputs],
            "operator": self.explained(node, lambda node: classes.describe(node.op)),
            **({"name": node._name} if node._name else {}),
            **({"customAttributes": node._custom} if node._custom else {}),
        }
        self.records.append(described)

    def expanded(self, node: Primitive) -> None:
        """Write a block of other operators in place of one."""
        expansion = EXPANSIONS[type(node.op)]
        inner = [v if isinstance(v, Constant) else Placeholder(v.spec, v.name) for v in node.inputs]
        made = self.explained(node, lambda node: Composite(expansion.graph(node.op, *inner).root_function))
        leaves = set(graph.leaves_of(made.root_function))
        mapping = [(own, outer) for own, outer in zip(inner, node.inputs, strict=True) if own is not outer and own in leaves]
        names = Row(BLOCK, type(node.op), expansion.kinds, names=expansion.names)
        self.block(node, made, mapping, self.explained(node, names.write))

    def explained(self, node: Primitive, write: Any) -> Any:
        """The result of *write* for a node, which its errors name."""
        try:
            return write(node)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{node.op_name} '{node.name or node.uid}' cannot be saved: {error} [built at {node.line}]") from error

    def picked(self, node: Primitive) -> None:
        """Write the steps of a sequence that a condition picks, or puts back: by way of their numbers in the minibatch."""
        x, condition, positions = node.inputs
        gathers = type(node.op) is sequence_gathering.Gather
        index = [x if gathers else condition, positions]
        operands = [self.operand(x), self.step("PackedIndex", PACKED_INDEX, [self.operand(v) for v in index], {})]
        if not gathers:
            operands.append(self.operand(condition))
        self.record(node, GATHER_PACKED if gathers else SCATTER_PACKED, operands, {})

    def sequential(self, node: Primitive, product: Primitive) -> None:
        """Write a convolution along sequences: they are unpacked, convolved along the axis of steps, and made sequences again."""
        filters, x = product.inputs[0], product.inputs[1].owner.inputs[1]
        op: Any = product.op
        if not op.reduction_rank:
            inner = [Placeholder(v.spec, v.name) for v in (filters, x)]
            made = Composite(with_channels(op, *inner).root_function)
            self.block(node, made, list(zip(inner, (filters, x), strict=True)), {})
            return
        slides = row_for(product).write(product)  # type: ignore[union-attr]
        names = self.operand(filters), self.operand(x)
        swap = {"axis1": static(x.spec.rank), "axis2": static(x.spec.rank - 1)}
        unpack = {"sequenceUnpackPaddingValue": 0.0, "sequenceUnpackSuppressMaskOutput": True}
        steps = self.step("TransposeAxes", TRANSPOSE, [self.step("UnpackSequenceOp", UNPACK, [names[1]], unpack)], swap)
        moved = self.step("Convolution", FILTER, [names[0], steps], {**slides, "sequential": False})
        values = self.step("TransposeAxes", TRANSPOSE, [moved], swap)
        if keeps_steps(product.inputs[1].owner.op, filters, x):
            self.record(node, TO_SEQUENCE_LIKE, [values, names[1]], {})
            return
        shape = self.step("ConvolutionSequenceShape", SEQUENCE_SHAPE, names, slides)
        lengths = self.step("StopGradient", STOP_GRADIENT, [shape], {})
        axes = {"sequenceAxis": "ConvOverSequenceAxisPrefix", "newDynamicAxes": file_axes(node.outputs[0].spec.axes)}
        self.record(node, TO_SEQUENCE, [values, lengths], axes)

    def step(self, op_name: str, number: int, inputs: Sequence[str], attributes: dict[str, Any]) -> str:
        """Write an operator that is not a node of the graph; returns the uid of its result."""
        uid = new_uid(op_name)
        self.records.append(self.described(uid, "", number, list(inputs), attributes))
        return f"{uid}_Output_0"

    def block(self, node: Primitive, inside: Composite, mapping: Sequence[tuple[Variable, Variable]], attributes: dict[str, Any]) -> None:
        """Write a graph that shows as one node."""
        self.graph(inside.root_function)
        inner, outer = [own for own, _ in mapping], [of for _, of in mapping]
        free = [v for v in graph.leaves_of(inside.root_function, engine_order=True) if v not in inner]
        self.record(node, BLOCK, [*free, *outer], attributes)
        self.records[-1] |= {
            "block_function_op_name": node.op_name,
            "block_function_composite": self.composite(inside, inside.root_function),
            "block_function_composite_arguments_map_keys": [self.operand(v) for v in inner],
            "block_function_composite_arguments_map_values": [self.operand(v) for v in outer],
        }

    def user_function(self, node: UserFunction) -> None:
        """Write the record from which a user function is recreated."""
        state = {
            "version": np.int32(1),
            "class": type(node).__name__,
            "module": type(node).__module__,
            "op_name": node.op_name,
            "state": node.serialize(),
        }
        self.of_user(node, state, native=False)

    def native_function(self, node: Primitive) -> None:
        """Write the names that a native user function is made by."""
        op = node.op
        module, factory = provider_of(op.op_id)
        state = {
            "version": np.uint64(1),
            "type": "NativeUserDefinedFunction",
            "op": op.op_id,
            "module": module,
            "deserialize_method": factory,
            "user_defined_state": op.attributes,
        }
        self.of_user(node, state, native=True)

    def of_user(self, node: Primitive, state: dict[str, Any], native: bool) -> None:
        described = {
            "version": np.uint64(USER_FUNCTION_VERSION),
            "type": "UserDefinedFunction",
            "uid": self.uid(node),
            "inputs": [self.operand(v) for v in node.inputs],
            "native": native,
            "user_defined_state": state,
        }
        self.records.append({**described, **({"name": node._name} if node._name else {})})

    def record(self, node: Primitive, number: int, operands: Sequence[Any], attributes: dict[str, Any]) -> None:
        custom = {"customAttributes": node._custom} if node._custom else {}
        inputs = [v if isinstance(v, str) else self.operand(v) for v in operands]
        self.records.append(self.described(self.uid(node), node._name, number, inputs, {**attributes, **custom}))

    def described(self, uid: str, name: str, number: int, inputs: list[str], attributes: dict[str, Any]) -> dict[str, Any]:
        return {
            "version": np.uint64(FUNCTION_VERSION),
            "type": "PrimitiveFunction",
            "uid": uid,
            "op": np.uint64(number),
            "inputs": inputs,
            "attributes": attributes,
            **({"name": name} if name else {}),
        }

    # ---- variables ----

    def operand(self, variable: Variable) -> str:
        """Uid of an operand; what comes later in the file is announced as a placeholder of that uid."""
        self.refuse_part(variable)
        uid = self.uid(variable)
        announced = isinstance(variable, Output) and variable.owner not in self.written
        if (announced or not isinstance(variable, Output)) and uid not in self.variables:
            self.variables[uid] = self.variable(variable)
        return uid

    def refuse_part(self, variable: Variable) -> None:
        """Refuse a variable that the file has no operator for."""
        if is_part(variable):
            raise ValueError(f"{variable!r} lies within a convolution along sequences, and can be saved as a part of that only")

    def variable(self, variable: Variable) -> dict[str, Any]:
        """What is known of a variable, and its value."""
        spec, kind = variable.spec, PLACEHOLDER
        for cls, number in KINDS.items():
            if isinstance(variable, cls):
                kind = number
        holds = kind in (PARAMETER, CONSTANT)
        if holds and not is_concrete(spec.shape):
            raise ValueError(
                f"{variable!r} has dimensions that are not known yet, so it has no value to save; apply the function to an input of "
                "known shape first"
            )
        value: Any = self.value(variable) if holds else None
        dtype = value.dtype.type if isinstance(value, np.ndarray) else spec.dtype
        described = {
            "version": np.uint64(VARIABLE_VERSION),
            "type": "Variable",
            "uid": self.uid(variable),
            "kind": np.uint64(kind),
            "data_type": np.uint64(file_type(dtype)),
            "dynamic_axis": file_axes(spec.axes),
            "is_sparse": spec.sparse and not holds,
            "needs_gradient": bool(variable.needs_gradient),
            "shape": NDShape(variable.shape),
        }
        named = {"name": variable.name} if (variable.name and kind != PLACEHOLDER) or isinstance(variable, Placeholder) else {}
        return {**described, **({k: v for k, v in named.items() if v}), **({"value": value} if holds else {})}

    def value(self, variable: Any) -> Any:
        """The value of a parameter or constant, or the name that it has beside the dictionary."""
        if variable in self.names:
            return self.names[variable]
        value = variable.value
        return np.asarray(value.toarray().reshape(variable.spec.shape) if hasattr(value, "indptr") else value)


class _StructureWriter(_Writer):
    """A graph being written without its leaves, and with each operator as it is.

    Args:
        own: the primitives and leaves of the graph.
    """

    def __init__(self, own: set[Any]) -> None:
        super().__init__()
        self.own = own
        self.apart: list[str] = []

    def node(self, node: Primitive) -> None:
        row = row_for(node)
        if isinstance(node, (Combine, Block)) or isinstance(node.op, NativeOp):
            super().node(node)
        elif row is None or isinstance(node, UserFunction) or is_part(node.outputs[0]) or any(v.spec.shape is None for v in node.inputs):
            self.apart.append(self.uid(node))
            self.record(node, APART, node.inputs, {})
        else:
            self.operator(node, row)

    def operand(self, variable: Variable) -> str:
        return self.uid(variable) if variable in self.own or is_part(variable) else super().operand(variable)

    def refuse_part(self, variable: Variable) -> None:
        """A graph may end anywhere."""


APART = 2**31 - 1
"""Number of an operator that is kept beside the bytes."""

_PACKED = (sequence_gathering.Gather, sequence_gathering.Scatter)
