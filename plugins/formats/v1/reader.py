"""Files as functions: nodes and relations as a dictionary of the current format, which its reader makes a function of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.graph.function import Function
from ....core.graph.variable import new_uid
from ...protobuf import DamagedFile
from ..opcodes import COMBINE
from ..reader import read_function
from ..wire import NDShape
from ..writer import COMPOSITE_VERSION, CONSTANT, FUNCTION_VERSION, INPUT, PARAMETER, VARIABLE_VERSION
from .compositions import COMPOSITIONS
from .kinds import FLOAT, INT, SHAPE, SIZE, TEXT
from .nodes import BY_NAME
from .rows import NEWEST, OLDEST, Attributes, Row, dynamic_axes
from .stream import Source
from .writer import PRECISIONS, unmangled

_CODES = {name: code for code, name in PRECISIONS.items()}
_DELAYS = ("PastValue", "FutureValue")
_PASS = 62
_SMALLEST = 8
"""Bytes that a node takes at least."""


class Node(NamedTuple):
    """A node of a file: where it is, its operation, element type and attributes."""

    at: int
    operation: str
    code: int
    attributes: Attributes


def read_legacy(data: Any, device: Any, name: str) -> Function:
    """The function that a file describes.

    Raises:
        DamagedFile: it does not describe one, or has unknown nodes.
    """
    reader = _Reader(Source(data, name))
    described = reader.dictionary()
    try:
        return read_function(described, device, name)
    except DamagedFile as error:
        raise reader.placed(str(error).removeprefix(f"{name}: ")) from error


class _Reader:
    """One file being read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.nodes: dict[str, Node] = {}
        self.operands: dict[str, list[str]] = {}
        self.listed: dict[str, list[str]] = {}
        self.variables: list[Attributes] = []
        self.records: list[Attributes] = []
        self.uids: dict[str, str] = {}
        self.places: dict[str, int] = {}
        self.current: tuple[str, str, Node] = ("", "", Node(0, "", 0, {}))

    def dictionary(self) -> Attributes:
        """The whole file as the current format has it."""
        self.sections()
        for name, node in self.nodes.items():
            self.announce(name, node)
        for name, node in self.nodes.items():
            try:
                self.convert(name, node)
            except ValueError as error:
                raise self.source.damaged(f"{node.operation} '{name}' cannot be read: {error}", node.at) from None
        root = self.root()
        described = {
            "version": np.uint64(COMPOSITE_VERSION),
            "type": "CompositeFunction",
            "uid": new_uid("CompositeFunction"),
            "root": root,
        }
        return {**described, "inputs": self.variables, "primitive_functions": self.records}

    def placed(self, what: str) -> DamagedFile:
        """The error that something in the dictionary is wrong, with the place of the node that it came from."""
        at = next((at for uid, at in self.places.items() if what.partition(" cannot ")[0].endswith(f"'{uid}'")), 0)
        return self.source.damaged(what, at)

    # ---- sections ----

    def sections(self) -> None:
        """Read the file from front to back."""
        source = self.source
        source.marker("BCN")
        begin = source.at
        source.version = self.version()
        if not OLDEST <= source.version <= NEWEST:
            raise source.damaged(
                f"it has version {source.version} of CNTK's first format; versions {OLDEST} to {NEWEST} can be read. "
                "CNTK 2.7 loads older ones, and saves them in the current format",
                begin,
            )
        count = source.count("Q", "a number of nodes", _SMALLEST)
        source.marker("BNodeList")
        for _ in range(count):
            self.node()
        source.marker("ENodeList")
        source.marker("BRelation")
        for _ in range(count):
            self.relation()
        source.marker("ERelation")
        source.marker("BRootNodes")
        while not source.skips("ERootNodes"):
            self.group()
        source.marker("ECN")
        if source.left:
            raise source.damaged(f"expected the end of the file, found {source.left} more bytes")

    def version(self) -> int:
        """The version in a file; 0 if it has none."""
        if not self.source.skips("BVersion"):
            return 0
        found = SIZE.read(self.source, "the version")
        self.source.marker("EVersion")
        return int(found)

    def node(self) -> None:
        """Read one node."""
        source, begin = self.source, self.source.at
        precision, operation, name = (TEXT.read(source, f"the {what} of a node") for what in ("element type", "operation", "name"))
        if precision not in _CODES:
            raise source.damaged(f"expected the element type float or double, found '{precision:.60}'", begin)
        if name in self.nodes:
            raise source.damaged(f"expected a node with another name than '{name:.60}', which there is already", begin)
        self.nodes[name] = Node(begin, operation, _CODES[precision], self.attributes(operation, name, begin))

    def attributes(self, operation: str, name: str, begin: int) -> Attributes:
        """Read the rest of a node after its name."""
        if operation in _LEAVES:
            return _LEAVES[operation](self.source)
        row = BY_NAME.get(operation)
        if row is None and operation not in COMPOSITIONS:
            raise self.source.damaged(
                f"the operation '{operation:.60}' of node '{name:.60}' is not known; save the model again with Function.save, which writes "
                "the current format",
                begin,
            )
        if row is None:
            return {}
        if self.source.version < row.since:
            version = self.source.version
            raise self.source.damaged(f"{operation} of version {version} is not known; that of version {row.since} and later is", begin)
        try:
            return row.read(self.source)
        except ValueError as error:
            raise self.source.damaged(f"{operation} '{name:.60}' cannot be read: {error}", begin) from None

    def relation(self) -> None:
        """Read the operands of one node."""
        begin, name = self.source.at, TEXT.read(self.source, "the name of a node")
        if name not in self.nodes or name in self.operands:
            raise self.source.damaged(f"expected the name of a node whose operands are not known yet, found '{name:.60}'", begin)
        self.operands[name] = self.names()

    def group(self) -> None:
        """Read one list of nodes of a kind."""
        begin, name = self.source.at, TEXT.read(self.source, "the name of a list of nodes")
        if not name.startswith("B"):
            raise self.source.damaged(f"expected the beginning of a list of nodes, found '{name:.60}'", begin)
        self.listed[name[1:]] = self.names()
        self.source.marker(f"E{name[1:]}")

    def names(self) -> list[str]:
        """Read the names of nodes."""
        found = []
        for _ in range(self.source.count("Q", "a number of names", 2)):
            begin, name = self.source.at, TEXT.read(self.source, "the name of a node")
            if name not in self.nodes:
                raise self.source.damaged(f"expected the name of a node, found '{name:.60}'", begin)
            found.append(name)
        return found

    # ---- nodes ----

    def announce(self, name: str, node: Node) -> None:
        """Give a node a uid, and its result one."""
        uid, _ = unmangled(name)
        if not uid or uid in self.places or "_Output_" in uid:
            uid = new_uid(node.operation)
        self.places[uid] = node.at
        self.uids[name] = uid if node.operation in _LEAVES else f"{uid}_Output_0"

    def convert(self, name: str, node: Node) -> None:
        """Turn a node into a variable or into functions of the current format."""
        operands = [self.uids[operand] for operand in self.operands[name]]
        self.current = self.uids[name], unmangled(name)[1], node
        if node.operation == "DynamicAxis":
            return
        if node.operation in _LEAVES:
            self.variables.append({**_variable(node), "uid": self.current[0], "name": self.current[1]})
            return
        count, compose = COMPOSITIONS.get(node.operation, (-1, None))
        if compose is not None and len(operands) == count:
            self.composed(compose(self, *operands))
        elif node.operation in BY_NAME:
            self.function(BY_NAME[node.operation], node, operands)
        else:
            raise ValueError(f"expected {count} operands, found {len(operands)}")

    def function(self, row: Row, node: Node, operands: list[str]) -> None:
        """Turn a node into one function."""
        attributes = node.attributes
        if node.operation in _DELAYS and len(operands) == 1:
            operands = [*operands, self.number(attributes["initial"])]
        self.composed(self.add(row.number, row.reordered(operands, back=True), attributes))

    def add(self, number: int, operands: Sequence[str], attributes: Attributes | None = None) -> str:
        """Add a function of the current format."""
        uid = new_uid("Legacy")
        self.places[uid] = self.current[2].at
        record = {"version": np.uint64(FUNCTION_VERSION), "type": "PrimitiveFunction", "uid": uid, "op": np.uint64(number)}
        self.records.append({**record, "inputs": list(operands), "attributes": attributes or {}})
        return f"{uid}_Output_0"

    def composed(self, result: str) -> None:
        """Let the function that was added last be the one that the node's name and uid are for."""
        uid, name, _ = self.current
        self.records[-1] |= {"uid": uid.removesuffix("_Output_0"), "name": name}

    def number(self, value: float) -> str:
        """Add a constant number of the node's element type."""
        uid, code = new_uid("Constant"), self.current[2].code
        node = Node(0, "LearnableParameter", code, {"value": np.asarray(value, _DTYPES[code]), "shape": (), "learns": False})
        self.variables.append({**_variable(node), "uid": uid})
        return uid

    # ---- results ----

    def root(self) -> str:
        """Uid of the function of all results: nodes that the file lists, and those that no other reads.

        They are in the order of the list of outputs, if that has all of them, else in that of their names.
        """
        used = {operand for operands in self.operands.values() for operand in operands}
        listed = {name for names in self.listed.values() for name in names}
        outputs = dict.fromkeys(name for name in self.listed.get("OutputNodes", []) if self.nodes[name].operation != "DynamicAxis")
        found = {n for n, node in self.nodes.items() if node.operation not in _LEAVES and (n in listed or n not in used)} | set(outputs)
        names = list(outputs) if set(outputs) == found else sorted(found, key=str.lower)
        if not names:
            raise self.source.damaged("expected a node with a result")
        results = [self.add(_PASS, [self.uids[n]]) if self.nodes[n].operation in _LEAVES else self.uids[n] for n in names]
        if len(results) == 1:
            return results[0].removesuffix("_Output_0")
        return self.add(COMBINE, results).removesuffix("_Output_0")


# ---- leaves --------------------------------------------------------------------------------------

_DTYPES = {1: np.float32, 2: np.float64}


def _axis(source: Source) -> Attributes:
    return {}


def _input(source: Source) -> Attributes:
    """Sizes that are not used, the shape, and the name of the axis."""
    for what in ("rows", "columns"):
        SIZE.read(source, f"the number of {what}")
    shape = SHAPE.read(source, "an input")
    begin, count = source.at, INT.read(source, "the number of axes")
    if count not in (0, 1):
        raise source.damaged(f"expected an input on one axis, found {count}", begin)
    axis = TEXT.read(source, "the name of an axis") if count else ""
    rate = FLOAT.read(source, "the learning rate multiplier") if source.version >= 10 else 0.0
    return {"shape": shape, "axis": axis, "learns": rate != 0}


def _parameter(source: Source) -> Attributes:
    """Learning rate multiplier, shape and values."""
    rate, begin = FLOAT.read(source, "the learning rate multiplier"), source.at
    shape = SHAPE.read(source, "a parameter")
    values = source.matrix("the values of a parameter")
    if len(values) != math.prod(shape):
        raise source.damaged(f"expected {math.prod(shape)} values of a parameter of shape {tuple(shape)}, found {len(values)}", begin)
    return {"shape": shape, "value": values.reshape(shape), "learns": rate != 0}


def _statistic(source: Source) -> Attributes:
    """Whether it was computed, and the values."""
    source.flag("whether a statistic was computed")
    values = source.matrix("the values of a statistic")
    return {"shape": NDShape(values.shape), "value": values, "learns": False}


_LEAVES = {
    "DynamicAxis": _axis,
    "InputValue": _input,
    "SparseInputValue": _input,
    "LearnableParameter": _parameter,
    "Mean": _statistic,
    "InvStdDev": _statistic,
}


def _variable(node: Node) -> Attributes:
    """The record of a leaf in the current format."""
    found = node.attributes
    kind = INPUT if "axis" in found else PARAMETER if found["learns"] else CONSTANT
    return {
        "version": np.uint64(VARIABLE_VERSION),
        "type": "Variable",
        "kind": np.uint64(kind),
        "data_type": np.uint64(node.code),
        "dynamic_axis": dynamic_axes(found["axis"]) if "axis" in found else [],
        "is_sparse": node.operation == "SparseInputValue",
        "needs_gradient": found["learns"],
        "shape": NDShape(found["shape"]),
        **({"value": found["value"]} if "value" in found else {}),
    }
