"""Functions as files: what the current format has of them, with blocks opened, as nodes and the relations between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ....core.graph.function import Function
from ....core.graph.nodes import Primitive
from ....core.graph.variable import new_uid
from .. import writer
from ..opcodes import BLOCK, COMBINE, TRANSPOSE
from ..operators import BY_NUMBER
from ..writer import INPUT, PLACEHOLDER
from . import stream
from .kinds import FLOAT, INT, SHAPE, SIZE
from .nodes import BY_NUMBER as ROWS
from .rows import NEWEST, Attributes, axis_name, static

PRECISIONS = {1: "float", 2: "double"}
"""Names of the element types in files, by their number in the current format."""
GRADIENT = 1e-5
"""Learning rate multiplier of an input that needs a gradient."""
_UID, _NAME = "__v2libuid__", "__v2libname__"
_BLOCK = "block_function_composite"
_WAY_OUT = "Function.save writes the current format"


class Node(NamedTuple):
    """A node to be written: its operation, its attributes in pieces, and the names of its operands."""

    operation: str
    pieces: list[Any]
    operands: list[str]


def write_legacy(function: Function) -> Iterator[Any]:
    """The bytes of a file, in pieces.

    Raises:
        ValueError: the format does not have something in the function.
    """
    return _Writer(function).file()


def mangled(uid: str, name: str) -> str:
    """The name of a node, which tells its uid as well."""
    return f"{_UID}{uid}{_NAME}{name}"


def unmangled(text: str) -> tuple[str, str]:
    """Uid and name of a node; no uid where a file of another program has the name alone."""
    uid, found, name = text.removeprefix(_UID).partition(_NAME)
    return (uid, name) if text.startswith(_UID) and found else ("", text)


class _Writer:
    """One file being written."""

    def __init__(self, function: Function) -> None:
        described = writer._Writer()
        whole = described.function(function)
        self.own = {uid: node for node, uid in described.uids.items() if isinstance(node, Primitive)}
        self.variables: dict[str, Attributes] = {variable["uid"]: variable for variable in whole["inputs"]}
        self.records: dict[str, Attributes] = {record["uid"]: record for record in whole["primitive_functions"]}
        self.aliases: dict[str, str] = {}
        self.nodes: dict[str, Node] = {}
        self.precisions: dict[int, str] = {}
        for record in reversed(list(self.records.values())):
            if record.get("op") == BLOCK:
                self.open(record)
        self.outputs: list[str] = []
        for uid in self.results(whole["root"]):
            self.output(self.resolved(uid))

    def file(self) -> Iterator[Any]:
        """The whole file."""
        if len(self.precisions) > 1:
            named = ", ".join(f"{PRECISIONS[code]} ({name})" for code, name in self.precisions.items())
            raise ValueError(f"a model in CNTK's first format has one element type throughout, found {named}; {_WAY_OUT}")
        precision = PRECISIONS[next(iter(self.precisions), 1)]
        nodes = sorted(self.nodes.items(), key=lambda pair: pair[0].lower())
        yield stream.text("BCN") + _section("Version", [SIZE.write(NEWEST)]) + SIZE.write(len(nodes)) + stream.text("BNodeList")
        for name, node in nodes:
            yield b"".join(map(stream.text, (precision, node.operation, name)))
            yield from node.pieces
        yield stream.text("ENodeList")
        yield _section("Relation", (stream.text(name) + _names(node.operands) for name, node in nodes))
        groups: dict[str, list[str]] = {"Feature": [], "Label": [], "Criterion": [], "Eval": [], "Output": self.outputs}
        yield _section("RootNodes", (_section(f"{group}Nodes", [_names(names)]) for group, names in groups.items()))
        yield stream.text("ECN")

    # ---- blocks ----

    def open(self, record: Attributes) -> None:
        """Let what is outside a block stand for its arguments, and what is inside for its results."""
        inner, outer = (record[f"{_BLOCK}_arguments_map_{part}"] for part in ("keys", "values"))
        root = self.records[record[_BLOCK]["root"]]
        results = {f"{record['uid']}_Output_{i}": uid for i, uid in enumerate(self.results(root["uid"]))}
        self.aliases |= {**dict(zip(inner, outer, strict=True)), **results}
        root.setdefault("name", record.get("name", ""))

    def results(self, uid: str) -> list[str]:
        """Uids of the results of a function."""
        record = self.records[uid]
        if record.get("op") == COMBINE:
            return list(record["inputs"])
        return [f"{uid}_Output_{i}" for i in range(len(self.own[uid].outputs) if uid in self.own else 1)]

    def resolved(self, uid: str) -> str:
        """The uid, outside all blocks, of a block's result or of an argument in it."""
        while uid in self.aliases:
            uid = self.aliases[uid]
        return uid

    def owner(self, uid: str) -> Attributes | None:
        """The function that has this result; None for a leaf."""
        return self.records.get(uid.rpartition("_Output_")[0])

    def name(self, uid: str) -> str:
        """The name of the node of a resolved uid."""
        described = self.owner(uid) or self.variables[uid]
        return mangled(described["uid"], described.get("name", ""))

    # ---- nodes ----

    def output(self, uid: str) -> None:
        """Write a result with all that it depends on; what is a leaf, or a result already, is passed on by a node of its own."""
        waiting = [uid]
        while waiting:
            found = self.resolved(waiting.pop())
            if self.name(found) not in self.nodes:
                record = self.owner(found)
                if record is None:
                    self.leaf(self.variables[found])
                else:
                    self.function(record)
                    waiting.extend(record["inputs"])
        name = self.name(uid)
        if self.owner(uid) is None or name in self.outputs:
            name, operand = mangled(new_uid("Pass"), ""), name
            self.nodes[name] = Node("Pass", [], [operand])
        self.outputs.append(name)

    def function(self, record: Attributes) -> None:
        """Write a function of the current format."""
        uid, number = record["uid"], record.get("op")
        row = ROWS.get(number)  # type: ignore[arg-type]
        if row is None or not row.written:
            called = BY_NUMBER[number][0].cls.op_name if number in BY_NUMBER else uid
            raise self.refused(uid, f"{called} has no counterpart there")
        operands = [self.name(self.resolved(operand)) for operand in record["inputs"]]
        name = self.name(f"{uid}_Output_0")
        try:
            steps = exchanges(record["attributes"]) if number == TRANSPOSE else [record["attributes"]]
            for i, attributes in enumerate(steps[:-1]):
                between = mangled(f"{uid}.{i}", "")
                self.nodes[between] = Node(row.name, [row.write(attributes, None)], operands)
                operands = [between]
            self.nodes[name] = Node(row.name, [row.write(steps[-1], self.own.get(uid))], row.reordered(operands))
        except ValueError as error:
            raise self.refused(uid, str(error)) from error

    def refused(self, uid: str, why: str) -> ValueError:
        """The error that the format does not have something."""
        node = self.own.get(uid)
        what, place = (f"{node.op_name} '{node.name or uid}'", f" [built at {node.line}]") if node is not None else (f"'{uid}'", "")
        return ValueError(f"{what} cannot be saved in CNTK's first format: {why}; {_WAY_OUT}{place}")

    # ---- leaves ----

    def leaf(self, variable: Attributes) -> None:
        """Write an input, a parameter or a constant."""
        uid, kind, code = variable["uid"], int(variable["kind"]), int(variable["data_type"])
        called = variable.get("name") or uid
        if kind == PLACEHOLDER:
            raise self.refused(uid, f"the placeholder '{called}' is not replaced")
        if code not in PRECISIONS:
            raise self.refused(uid, f"'{called}' is neither float32 nor float64")
        self.precisions.setdefault(code, called)
        name = mangled(uid, variable.get("name", ""))
        if kind == INPUT:
            self.input(name, called, variable)
        else:
            pieces = [FLOAT.write(float(variable["needs_gradient"])) + SHAPE.write(variable["shape"])]
            self.nodes[name] = Node("LearnableParameter", [*pieces, *stream.matrix(variable["value"])], [])

    def input(self, name: str, called: str, variable: Attributes) -> None:
        """Write an input, and its axis."""
        if any(dim < 0 for dim in variable["shape"]):
            raise self.refused(variable["uid"], f"the input '{called}' has free dimensions, {tuple(variable['shape'])}")
        try:
            axis = axis_name(variable["dynamic_axis"])
        except ValueError as error:
            raise self.refused(variable["uid"], f"the input '{called}': {error}") from error
        self.nodes.setdefault(axis, Node("DynamicAxis", [], []))
        size = SIZE.write(0) * 2 + SHAPE.write(variable["shape"])
        rate = FLOAT.write(GRADIENT if variable["needs_gradient"] else 0.0)
        operation = "SparseInputValue" if variable["is_sparse"] else "InputValue"
        self.nodes[name] = Node(operation, [size + INT.write(1) + stream.text(axis) + rate], [])


def exchanges(attributes: Attributes) -> list[Attributes]:
    """A permutation of axes as exchanges of two, which is all that CNTK reads."""
    if "axisVec" not in attributes:
        return [attributes]
    wanted = [axis.number for axis in attributes["axisVec"]]
    now, found = list(range(len(wanted))), []
    for place, axis in enumerate(wanted):
        other = now.index(axis)
        if other != place:
            now[place], now[other] = now[other], now[place]
            found.append({"axis1": static(place), "axis2": static(other)})
    return found or [{"axis1": static(0), "axis2": static(0)}]


def _section(name: str, pieces: Iterable[bytes]) -> bytes:
    return stream.text(f"B{name}") + b"".join(pieces) + stream.text(f"E{name}")


def _names(names: list[str]) -> bytes:
    return SIZE.write(len(names)) + b"".join(map(stream.text, names))
