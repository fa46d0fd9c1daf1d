"""Dictionaries of CNTK's model files as graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from ...core.common.shape import UnknownDimension, is_concrete
from ...core.graph import graph
from ...core.graph.block import Block, Combine
from ...core.graph.clone import replace_placeholders
from ...core.graph.function import Function
from ...core.graph.nodes import Composite, Primitive
from ...core.graph.variable import Constant, Input, Output, Parameter, Placeholder, Variable
from ...core.operators.native import native_user_function
from ...core.operators.op import Op
from ...core.types.axis import Axis
from ...core.types.spec import Spec
from ..models.files import make_user_function
from ..ops import sequence_gathering
from ..protobuf import DamagedFile
from . import classes
from .attributes import BOOL, SHAPE, SIZE, STREAM, TEXT, WORDS, list_of, python_axes, python_type
from .expansions import EXPANSIONS
from .opcodes import (
    BLOCK,
    COMBINE,
    GATHER_PACKED,
    PACKED_INDEX,
    SCATTER_PACKED,
    SEQUENCE_SHAPE,
    STOP_GRADIENT,
    TO_SEQUENCE,
    TO_SEQUENCE_LIKE,
)
from .operators import row_for, row_of
from .row import RECORD, Given, Row
from .sequential import recognised as recognised_convolution
from .wire import plain
from .writer import (
    COMPOSITE_VERSION,
    CONSTANT,
    FUNCTION_VERSION,
    INPUT,
    PARAMETER,
    PLACEHOLDER,
    USER_FUNCTION_VERSION,
    VARIABLE_VERSION,
    written_by_class,
)

DEEPEST = 50
"""How many blocks may be nested."""

_TEXTS = list_of(TEXT)
_RECORDS = list_of(RECORD)
_MISTAKES = (ValueError, TypeError, RuntimeError, LookupError, ArithmeticError, AttributeError, AssertionError)


def read_function(found: dict[str, Any], device: Any, source: str, value: Callable[[str], Any] | None = None) -> Function:
    """The function that a dictionary describes.

    Args:
        found: the dictionary.
        device: the device of parameters and constants; the default device if None.
        source: the file's name in errors.
        value: the array of a name, where values are kept beside the dictionary; it is called once for each.

    Raises:
        RuntimeError: it does not describe one.
    """
    return _Reader(Given(found), device, source, value).function()


def read_structure(
    found: dict[str, Any], known: Mapping[str, Any], apart: Mapping[str, Callable[..., Primitive]], source: str
) -> dict[str, Primitive]:
    """The primitives, by uid, of a graph whose leaves are kept beside the dictionary.

    Args:
        found: the dictionary that ``write_structure`` made.
        known: by uid the leaves, and the primitives that are there already.
        apart: by uid the function that makes, from operands and name, a primitive of which the dictionary has only the operands.
        source: the dictionary's name in errors.

    Raises:
        RuntimeError: it describes no such graph.
    """
    reader = _Reader(Given(found), None, source)
    reader.apart = apart
    for uid, node in known.items():
        if isinstance(node, Variable):
            reader.variables[uid] = node
        else:
            reader.know(uid, node)
    reader.function()
    return reader.made


class _Reader:
    """One file being read."""

    def __init__(self, found: Given, device: Any, source: str, value: Callable[[str], Any] | None = None) -> None:
        self.found, self.device, self.source, self.value = found, device, source, value
        self.variables: dict[str, Variable] = {}
        self.records: dict[str, Given] = {}
        self.made: dict[str, Primitive] = {}
        self.outputs: dict[str, Variable] = {}
        self.packed: dict[str, tuple[str, Variable]] = {}
        self.shapes: set[str] = set()
        self.open: dict[str, Variable] = {}
        self.begun: set[str] = set()
        self.apart: Mapping[str, Callable[..., Primitive]] | None = None

    def function(self) -> Function:
        """The function of the whole file."""
        found = self.found
        if "type" not in found:
            keys = ", ".join(map(repr, sorted(found)[:8])) or "nothing"
            raise DamagedFile(
                f"{self.source} holds no function, but a dictionary with {keys}; the file of a checkpoint that ends in '.ckp' belongs to "
                "the model beside it, and is read by Trainer.restore_from_checkpoint"
            )
        self.guarded("the model", lambda: self.check(found, "CompositeFunction", COMPOSITE_VERSION))
        for record in self.guarded("the model", lambda: found.read("inputs", _RECORDS)):
            uid = self.guarded("a variable", partial(record.read, "uid", TEXT))
            self.variables[uid] = self.guarded(f"variable '{uid}'", partial(self.variable, record))
            self.variables[uid].uid = uid
        for record in self.guarded("the model", lambda: found.read("primitive_functions", _RECORDS)):
            self.records[self.guarded("a function", partial(record.read, "uid", TEXT))] = record
        root = self.guarded("the model", lambda: self.graph(found.read("root", TEXT), 0))
        return self.guarded("the model", lambda: self.composite(found, root))

    def guarded(self, what: str, make: Callable[[], Any]) -> Any:
        """The result of *make*; its errors become one that names the file and the part that cannot be read."""
        try:
            return make()
        except DamagedFile:
            raise
        except _MISTAKES as error:
            raise DamagedFile(f"{self.source}: {what} cannot be read: {error}") from error

    def check(self, record: Given, kind: str, version: int) -> None:
        """Check type and version of a record."""
        found = record.read("version", SIZE)
        if record.read("type", TEXT) != kind:
            raise ValueError(f"expected a {kind}, found a {record['type']}")
        if found > version:
            raise ValueError(f"it was saved by a later version of CNTK: expected version {version} of a {kind} at most, found {found}")

    def composite(self, record: Given, root: Primitive) -> Composite:
        made = Composite(root, record.read("name", TEXT, ""))
        made.uid = record.read("uid", TEXT)
        return made

    # ---- variables ----

    def variable(self, record: Given) -> Variable:
        """An input, parameter, constant or placeholder."""
        self.check(record, "Variable", VARIABLE_VERSION)
        kind, name = record.read("kind", SIZE), record.read("name", TEXT, "")
        shape: Any = record.read("shape", SHAPE)
        if any(dim < -3 or dim > 2**31 for dim in shape):
            raise ValueError(f"expected dimensions of at most 2**31, found {shape}")
        known = None if shape == (UnknownDimension,) else shape
        spec = Spec(known, python_type(record["data_type"]), python_axes(record.get("dynamic_axis")), record.read("is_sparse", BOOL))
        need = record.read("needs_gradient", BOOL)
        if kind in (PARAMETER, CONSTANT):
            return self.holder(record, kind, name, need)
        if kind == INPUT:
            if spec.dtype is None or spec.axes is None:
                raise ValueError("expected an input with element type and dynamic axes")
            return Input(spec, name, needs_gradient=need)
        if kind > PLACEHOLDER:
            raise ValueError(f"expected a kind of variable from 0 to {PLACEHOLDER}, found {kind}")
        return Placeholder(spec, name, needs_gradient=need)

    def holder(self, record: Given, kind: int, name: str, need: bool) -> Variable:
        """A parameter or constant with its value."""
        value = record.get("value")
        if isinstance(value, str) and self.value is not None:
            value = self.value(value)
        if not isinstance(value, np.ndarray):
            raise ValueError(f"expected a value, found {value!r:.60}")
        made: Any = (
            Parameter(None, value, value.dtype.type, self.device, name)
            if kind == PARAMETER
            else Constant(value, None, value.dtype.type, self.device, name)
        )
        made.needs_gradient = need
        return made

    # ---- graphs ----

    def graph(self, root: str, depth: int) -> Primitive:
        """The primitive of this uid, with all that it depends on."""
        if root in self.made:
            return self.made[root]
        if depth > DEEPEST:
            raise ValueError(f"expected at most {DEEPEST} blocks in one another")
        waiting: dict[str, Variable] = {}
        outside, self.open = self.open, waiting
        stack = [(root, iter(self.needs(root)))]
        self.begun.add(root)
        while stack:
            uid, needed = stack[-1]
            for other in needed:
                if other not in self.begun:
                    self.begun.add(other)
                    stack.append((other, iter(self.needs(other))))
                    break
            else:
                stack.pop()
                self.guarded(f"function '{uid}'", partial(self.make, uid, self.records[uid], depth))
        self.open = outside
        if root not in self.made:
            raise ValueError(f"'{root}' contains itself")
        made = self.made[root]
        replacements = {end: self.outputs[uid] for uid, end in waiting.items() if uid in self.outputs}
        composite = Composite(made)
        reached = set(composite.placeholders)
        replacements = {end: output for end, output in replacements.items() if end in reached}
        if replacements:
            replace_placeholders(composite, replacements)
        return made

    def needs(self, uid: str) -> Iterable[str]:
        """Functions that the one of this uid has operands from."""
        if uid not in self.records:
            raise ValueError(f"expected a function '{uid}', which is not in the file")
        operands = self.records[uid].read("inputs", _TEXTS)
        owners = (operand.rpartition("_Output_")[0] for operand in operands)
        return [owner for owner in owners if owner in self.records]

    def operand(self, uid: str) -> Variable:
        """The variable of this uid; a placeholder for what is made later."""
        if uid in self.outputs:
            return self.outputs[uid]
        variable = self.variables.get(uid)
        if uid.rpartition("_Output_")[0] in self.records:
            if uid not in self.open:
                self.open[uid] = variable if isinstance(variable, Placeholder) else Placeholder(Spec())
            return self.open[uid]
        if variable is None:
            raise ValueError(f"expected a variable '{uid}', which is not in the file")
        return variable

    def make(self, uid: str, record: Given, depth: int) -> None:
        """Make one function of the file."""
        kind = record.read("type", TEXT)
        operands = record.read("inputs", _TEXTS)
        if kind == "UserDefinedFunction":
            self.check(record, kind, USER_FUNCTION_VERSION)
            self.register(uid, self.user_function(record, [self.operand(operand) for operand in operands]))
            return
        if kind == classes.KIND:
            self.check(record, kind, classes.VERSION)
            self.register(uid, self.by_class(record, [self.operand(operand) for operand in operands]))
            return
        self.check(record, "PrimitiveFunction", FUNCTION_VERSION)
        number, name = record.read("op", SIZE), record.read("name", TEXT, "")
        if self.apart and uid in self.apart:
            self.register(uid, self.apart[uid]([self.operand(operand) for operand in operands], name))
            return
        given = record.read("attributes", RECORD)
        if number == PACKED_INDEX:
            if len(operands) != 2:
                raise ValueError(f"expected two operands, found {len(operands)}")
            self.packed[f"{uid}_Output_0"] = operands[0], self.operand(operands[1])
            return
        if number == SEQUENCE_SHAPE or (number == STOP_GRADIENT and operands[0] in self.shapes):
            self.shapes.add(f"{uid}_Output_0")  # steps of the result of a convolution, which knows them itself
            return
        if number in (GATHER_PACKED, SCATTER_PACKED):
            node: Primitive = self.picked(number, operands, name)
        elif number == BLOCK:
            node = self.block(record, given, name, depth)
        elif number == COMBINE:
            node = Combine([self.operand(operand) for operand in operands], name, self.source)
        elif number in (TO_SEQUENCE, TO_SEQUENCE_LIKE) and len(operands) == 2:
            node = self.to_sequence(number, given, operands, name)
        else:
            node = self.operator(number, given, [self.operand(operand) for operand in operands], name)
        node._custom = plain(given.read("customAttributes", RECORD, {}))
        self.register(uid, node)

    def register(self, uid: str, node: Primitive) -> None:
        """Remember a function that has been made, and its results."""
        node.uid = uid
        if not isinstance(node, Combine):
            for number, output in enumerate(node.outputs):
                output.uid = f"{uid}_Output_{number}"
        self.know(uid, node)

    def know(self, uid: str, node: Primitive) -> None:
        """Have the function of this uid, and its results, for others to refer to."""
        self.begun.add(uid)
        self.made[uid] = node
        if not isinstance(node, Combine):
            self.outputs.update((f"{uid}_Output_{number}", output) for number, output in enumerate(node.outputs))

    def operator(self, number: int, given: Given, operands: list[Variable], name: str) -> Primitive:
        """An operator that is one here as well."""
        row = row_of(number, given, operands)
        op = row.make(given, operands)
        return self.primitive(op, row.inputs(given, operands), name)

    def by_class(self, record: Given, operands: list[Variable]) -> Primitive:
        """An operator that CNTK does not have."""
        op = classes.make(record.read("operator", RECORD))
        signature(op.forward).bind(None, None, *operands)  # otherwise the error would come when it computes
        node = self.primitive(op, operands, record.read("name", TEXT, ""))
        node._custom = plain(record.read("customAttributes", RECORD, {}))
        return node

    def primitive(self, op: Op, inputs: list[Variable], name: str) -> Primitive:
        return Primitive(op, inputs, name, self.source)

    def picked(self, number: int, operands: list[str], name: str) -> Primitive:
        """Steps of a sequence that a condition picks, or puts back."""
        if len(operands) < 2 or operands[1] not in self.packed:
            raise ValueError(f"expected the numbers of steps as second operand, found {operands[1:2]}")
        _, positions = self.packed[operands[1]]
        condition = positions
        if isinstance(positions, Output) and type(positions.owner.op) is sequence_gathering.Where:
            condition = positions.owner.inputs[0]
        kind = sequence_gathering.Gather if number == GATHER_PACKED else sequence_gathering.Scatter
        return self.primitive(kind(), [self.operand(operands[0]), condition, positions], name)

    def to_sequence(self, number: int, given: Given, operands: list[str], name: str) -> Primitive:
        """A sequence axis from a static one; what a convolution along sequences ends with in files."""
        values = self.operand(operands[0])
        of_convolution = operands[1] in self.shapes
        if of_convolution or number == TO_SEQUENCE_LIKE:
            like = None if of_convolution else self.operand(operands[1])
            axes = python_axes(given["newDynamicAxes"]) if "newDynamicAxes" in given else None
            node = recognised_convolution(values, like, axes[1] if axes else None, lambda op, inputs: self.primitive(op, inputs, name))
            if node is not None:
                return node
            if of_convolution:
                raise ValueError("expected a convolution of unpacked sequences, whose number of steps is asked for")
        return self.operator(number, given, [values, self.operand(operands[1])], name)

    # ---- blocks ----

    def block(self, record: Given, given: Given, name: str, depth: int) -> Primitive:
        """A graph that shows as one node, or the operator of ours that is the same."""
        described = record.read("block_function_composite", RECORD)
        op_name = record.read("block_function_op_name", TEXT)
        inner, outer = (record.read(f"block_function_composite_arguments_map_{part}", _TEXTS) for part in ("keys", "values"))
        root = self.graph(described.read("root", TEXT), depth + 1)
        inside = self.composite(described, root)
        leaves = graph.leaves_of(root)
        mapping = [(self.operand(own), self.operand(of)) for own, of in zip(inner, outer, strict=True)]
        for own, _ in mapping:
            if not isinstance(own, (Placeholder, Input)) or own not in leaves:
                raise ValueError(f"expected an argument of the graph inside, found {own!r}")
        if self.apart is not None:
            return Block(inside, mapping, op_name, name, self.source)
        known = recognised(op_name, given, inside, mapping, name, self.source)
        return Block(inside, mapping, op_name, name, self.source) if known is None else known

    # ---- user functions ----

    def user_function(self, record: Given, inputs: list[Variable]) -> Primitive:
        """A function that users define, in Python or as a native one."""
        state, name = record.read("user_defined_state", RECORD), record.read("name", TEXT, "")
        if record.read("native", BOOL):
            made = native_user_function(
                state.read("op", TEXT), inputs, plain(state.read("user_defined_state", RECORD)), user_function_instance_name=name
            )
        else:
            names = (state.read("module", TEXT), state.read("class", TEXT), state.read("op_name", TEXT))
            made = make_user_function(*names, inputs, name, plain(state.get("state")))
        return made.root_function


def recognised(
    op_name: str, given: Given, inside: Composite, mapping: list[tuple[Variable, Variable]], name: str, source: str
) -> Primitive | None:
    """The operator of ours that a block with this content stands for; None where it is none."""
    held = sum(leaf.array.size for leaf in graph.leaves_of(inside.root_function) if isinstance(leaf, Constant))
    for cls, expansion in EXPANSIONS.items():
        if cls.op_name != op_name or not expansion.recognised:
            continue
        names = Row(BLOCK, cls, expansion.kinds, names=expansion.names)
        try:
            op = names.make(given, [])
            inner = [Placeholder(outer.spec) for _, outer in mapping]
            if expansion.constants(op, *inner) > held:
                continue
            copy = Composite(expansion.graph(op, *inner).root_function)
            if alike(copy.root_function, inside.root_function, dict(zip(inner, (own for own, _ in mapping), strict=True))):
                return Primitive(op, [outer for _, outer in mapping], name, source)
        except _MISTAKES:
            continue  # what the file has under this name is not made of these operands
    return None


def alike(one: Primitive, other: Primitive, pairs: dict[Any, Any], values: bool = True) -> bool:
    """Whether two graphs are the same, where *pairs* says which of their leaves belong together, and is added to.

    Args:
        values: whether constants must have equal values; else shapes and types are enough, and parameters are compared likewise.
    """
    waiting = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if left in pairs:
            if pairs[left] is not right:
                return False
            continue
        pairs[left] = right
        if not same_operator(left, right) or len(left.inputs) != len(right.inputs):
            return False
        if isinstance(left, Block) and isinstance(right, Block):
            pairs |= dict(zip(left.inner, right.inner, strict=True))
            waiting.append((left.composite.root_function, right.composite.root_function))
        for a, b in zip(left.inputs, right.inputs, strict=True):
            if isinstance(a, Output) and isinstance(b, Output):
                if a.index != b.index:
                    return False
                waiting.append((a.owner, b.owner))
            elif pairs.setdefault(a, b) is not b or not _same_leaf(a, b, values):
                return False
    return True


def same_operator(left: Primitive, right: Primitive) -> bool:
    """Whether two nodes are of one operator with the same attributes."""
    if type(left) is not type(right) or left.op_name != right.op_name or type(left.op) is not type(right.op):
        return False
    if isinstance(left, Block) and isinstance(right, Block):
        return len(left.inner) == len(right.inner)
    if type(left.op) is sequence_gathering.Where:
        return bool(left.op._typeinfo == right.op._typeinfo)
    row = row_for(left)
    if row is not None:
        return _lasting(row.write(left)) == _lasting(row.write(right))
    if _lasting(left.attributes) != _lasting(right.attributes):
        return False
    return not written_by_class(left) or classes.are_alike(left.op, right.op)


def _lasting(attributes: dict[str, Any]) -> str:
    """Attributes without those that may change; static axes by their number, in whatever form they are."""
    found = {name: value for name, value in attributes.items() if name not in ("dropoutRate", "rngSeed", STREAM, WORDS)}
    return str({name: _number_of(value) for name, value in found.items()})


def _number_of(value: Any) -> Any:
    return value.static_axis_index() if isinstance(value, Axis) and value.is_static_axis else value


def _same_leaf(a: Variable, b: Variable, values: bool) -> bool:
    if isinstance(a, Placeholder) and isinstance(b, Placeholder):
        return True
    kinds = [Constant if isinstance(v, Constant) else type(v) for v in (a, b)]
    if kinds[0] is not kinds[1] or a.spec.shape != b.spec.shape:
        return False
    if isinstance(a, Constant) and isinstance(b, Constant) and values:
        return a.array.dtype == b.array.dtype and bool(np.array_equal(a.value, b.value))
    return a.spec.dtype == b.spec.dtype and (not is_concrete(a.spec.shape) or a.spec.axes == b.spec.axes)
