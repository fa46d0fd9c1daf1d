"""Walks the graph of an ONNX file and makes ours of it.

Inputs whose first axis has a free size get a batch axis, see :func:`batch_symbol`; other free sizes become free dimensions.  Each node is
handed to the reader of its operator, with its operands as arrays (``arrays.py``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from .....core.common.dtypes import is_float
from .....core.common.shape import FreeDimension
from .....core.extension.plugins import onnx_readers
from .....core.graph.block import combine
from .....core.graph.function import Function
from .....core.graph.variable import Input, Output, Variable
from .....core.types.spec import BATCH, Spec
from ....ops.identity import alias
from ....protobuf import DamagedFile
from ..messages import Attribute, Graph, LocalFunction, Model, Node, SparseTensor, ValueInfo, names_read_inside, write_message
from ..tensors import folder_of, read_tensor, type_of
from .arrays import COMPUTED, MOST_AXES, SOURCES, Array, Unsupported, batched, check_room, fresh, known, materialised, note_sizes, static
from .sizes import Dim, Size

OLDEST, NEWEST = 6, 28
"""The versions of ONNX's own operators that are read."""
DEEPEST = 24
"""How many graphs, bodies of local functions and of control flow, may be in one another."""
MOST_REPEATED = 20_000
"""How many more nodes loops and local functions may make of those in a file."""
ROOM_FOR_EACH = 32
"""How many bytes of arrays may be computed for each byte of numbers that a file begins with, beyond those that any file may."""
OWN = ("", "ai.onnx")


class Operator:
    """A node that is being read: what a reader is called with, before the operands.

    Attributes:
        op_type: name of the operator.
        domain: its domain, empty for ONNX's own.
        version: version of the domain's operators that the file asks for.
        name: the node's name.
        outputs: how many results are wanted; a reader may return fewer than that only where ONNX says that the last ones are optional.
        wanted: for each result whether anything uses it.
    """

    def __init__(self, node: Node, graph: GraphReader, attributes: Mapping[str, Any]) -> None:
        self.op_type, self.domain, self.name = node.op_type or "", node.domain or "", node.name or ""
        self.domain = "" if self.domain in OWN else self.domain
        self.version = graph.versions.get(self.domain, 1)
        self.outputs = len(node.output)
        self.wanted = [name in graph.used for name in node.output]
        self.graph = graph
        self._attributes = attributes

    def has(self, name: str) -> bool:
        """Whether the node has an attribute."""
        return name in self._attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute; *default* where the node has none of this name."""
        return self._attributes.get(name, default)

    def required(self, name: str) -> Any:
        """The value of an attribute that the node must have.

        Raises:
            Unsupported: it has not.
        """
        if name not in self._attributes:
            raise Unsupported(f"the attribute {name!r} is missing")
        return self._attributes[name]


class GraphReader:
    """The values of a graph, by name, and those of the graphs around it.

    Attributes:
        has_batch_axis: whether a free size of inputs becomes the batch axis.
    """

    has_batch_axis = True

    def __init__(
        self, versions: Mapping[str, int], functions: Mapping[tuple[str, str, str], LocalFunction], folder: str | None, source: str
    ) -> None:
        self.versions, self.functions, self.folder, self.source = versions, functions, folder, source
        self.values: dict[str, Array] = {}
        self.around: GraphReader | None = None
        self.forms: Mapping[str, int] = {}
        self.bodies: dict[int, Mapping[str, Array]] = {}
        self.depth = 0
        self.used: Set[str] = frozenset()
        self.counter = [0]  # nodes that have been read, shared with the graphs within; negative while they are the file's own

    def inner(self, versions: Mapping[str, int] | None = None, *, sees: bool = True) -> GraphReader:
        """A graph within this one; it sees the values of this one if *sees*."""
        made = type(self)(versions or self.versions, self.functions, self.folder, self.source)
        made.around = self if sees else None
        made.depth, made.counter, made.forms, made.bodies = self.depth + 1, self.counter, self.forms, self.bodies
        made.used = self.used
        if made.depth > DEEPEST:
            raise DamagedFile(f"{self.source}: graphs are nested more than {DEEPEST} deep")
        return made

    def value(self, name: str) -> Array | None:
        """The value of a name; None for the empty name, which stands for an operand that is left out.

        Raises:
            DamagedFile: nothing has given it.
        """
        if not name:
            return None
        scope: GraphReader | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.around
        raise DamagedFile(f"{self.source}: the value {name!r:.80} is used before anything gives it")

    def note(self, name: str, value: Any) -> None:
        """Take a value under its name; a parameter that nodes use in several forms is one all the same."""
        self.values[name] = value
        if isinstance(value, Array) and value.trainable and self.forms.get(name, 0) > 1:
            value.shared = True

    def read_initializers(self, graph: Graph) -> None:
        """Take the numbers that a graph begins with."""
        for tensor in graph.initializer:
            array = read_tensor(tensor, self.folder)
            self.note(tensor.name or "", _initial(array, tensor.name or ""))
        for sparse in graph.sparse_initializer:
            self.values[(sparse.values.name if sparse.values else None) or ""] = known(self.dense(sparse))

    def initial(self, graph: Graph) -> Mapping[str, Array]:
        """The numbers that a graph within this one begins with, the same each time that it is read."""
        if id(graph) not in self.bodies:
            body = self.inner()
            body.read_initializers(graph)
            self.bodies[id(graph)] = body.values
        return self.bodies[id(graph)]

    def dense(self, sparse: SparseTensor) -> Any:
        """The array of a sparse tensor."""
        if sparse.values is None or sparse.indices is None:
            raise DamagedFile(f"{self.source}: a sparse tensor without values or indices")
        values, indices = read_tensor(sparse.values, self.folder), read_tensor(sparse.indices, self.folder)
        shape = tuple(int(dim) for dim in sparse.dims)
        found = np.zeros(_checked(shape), values.dtype)
        try:
            if indices.ndim == 1:
                found.reshape(-1)[indices] = values
            else:
                found[tuple(indices.T)] = values
        except (IndexError, ValueError) as error:
            raise DamagedFile(f"{self.source}: a sparse tensor's indices do not fit its shape: {error}") from None
        return found

    def read_nodes(
        self, nodes: Sequence[Node], given: Mapping[str, Any] | None = None, unread: Mapping[int, Sequence[str]] | None = None
    ) -> None:
        """Make what the nodes compute.

        Args:
            nodes: the nodes, in an order in which they can be computed.
            given: attributes of the local function that the nodes are in, by name.
            unread: by the number of a node the values that nothing reads after it; their arrays, which parameters have copied, are let go.
        """
        for number, node in enumerate(nodes):
            self.counter[0] += 1
            if self.counter[0] > MOST_REPEATED:
                raise DamagedFile(f"{self.source}: loops and functions repeat more than {MOST_REPEATED} nodes")
            try:
                self.read_node(node, given or {})
            except (DamagedFile, Unsupported) as error:
                if str(error).startswith(self.source):
                    raise  # a node within this one
                raise DamagedFile(f"{self.source}: {described(node)}: {error}") from None
            except MemoryError:
                raise DamagedFile(f"{self.source}: {described(node)}: its numbers take more memory than there is") from None
            except (ValueError, RuntimeError, TypeError, IndexError, KeyError, OverflowError, AttributeError, ZeroDivisionError) as error:
                raise DamagedFile(f"{self.source}: {described(node)}: {error}") from error
            for name in (unread or {}).get(number, ()):
                self.values.pop(name, None)

    def reader_of(self, operator: Operator) -> Any:
        """The function that reads an operator."""
        return onnx_readers.get((operator.op_type, operator.domain))

    def read_node(self, node: Node, given: Mapping[str, Any]) -> None:
        """Make what a node computes; arguments as of :meth:`read_nodes`."""
        attributes = {
            one.name or "": self.attribute(one, given) for one in node.attribute if not one.ref_attr_name or one.ref_attr_name in given
        }
        operator = Operator(node, self, attributes)
        operands = [self.value(name) for name in node.input]
        function = self.functions.get((node.domain or "", node.op_type or "", node.overload or ""))
        if function is not None:
            results = self._call(function, operands, attributes)
        else:
            found = self.reader_of(operator)(operator, *operands)
            results = list(found) if type(found) in (tuple, list) else [found]
        if any(operator.wanted[len(results) :]):
            raise Unsupported(f"{len(node.output)} results are wanted, and there are {len(results)}")
        for name, result in zip(node.output, results, strict=False):
            if name and result is not None:
                self.note(name, result)
                _name(result, node.name or name)

    def _call(self, function: LocalFunction, operands: Sequence[Array | None], attributes: Mapping[str, Any]) -> list[Array | None]:
        """The results of a function that the file defines."""
        versions = {one.domain or "": one.version or 1 for one in function.opset_import} or dict(self.versions)
        body = self.inner(_own(versions), sees=False)
        for name, operand in zip(function.input, operands, strict=False):
            if operand is not None:
                body.values[name] = operand
        for name in function.input:
            if name not in body.values:
                body.values[name] = _MISSING
        given = {one.name or "": self.attribute(one, {}) for one in function.attribute_proto} | dict(attributes)
        body.read_nodes(function.node, given)
        return [body.value(name) for name in function.output]

    def result(self, array: Array, info: ValueInfo, batch: Any) -> Variable:
        """The variable of an output: on the batch axis where it has that, else without dynamic axes.

        Args:
            array: the output.
            info: what the file says of it.
            batch: the size of the batch axis; None where nothing has one.
        """
        if array.is_known and array.known.shape != array.dims:
            array = materialised(array)
        if array.batch is not None and not isinstance(array.dims[array.batch], Size):
            array = static(array)
        if array.batch is None and not array.is_known and isinstance(batch, Size) and batch in array.dims:
            array = batched(array, array.dims.index(batch))
        return array.held()

    def attribute(self, attribute: Attribute, given: Mapping[str, Any]) -> Any:
        """The value of an attribute: a number, bytes, an array, a graph, or a list of such."""
        if attribute.ref_attr_name:
            return given[attribute.ref_attr_name]
        return ATTRIBUTES[attribute.type or _kind_of(attribute)](self, attribute)


_MISSING: Any = None
"""What a local function sees in the place of an operand that is left out."""


def _checked(shape: tuple[int, ...]) -> tuple[int, ...]:
    check_room(shape)
    return shape


def _text(value: Any) -> str:
    return bytes(value or b"").decode(errors="replace")


ATTRIBUTES: dict[int, Any] = {
    0: lambda graph, attribute: None,
    1: lambda graph, attribute: float(attribute.f or 0),
    2: lambda graph, attribute: int(attribute.i or 0),
    3: lambda graph, attribute: _text(attribute.s),
    4: lambda graph, attribute: read_tensor(attribute.t, graph.folder),
    5: lambda graph, attribute: attribute.g,
    6: lambda graph, attribute: [float(number) for number in attribute.floats],
    7: lambda graph, attribute: [int(number) for number in attribute.ints],
    8: lambda graph, attribute: [_text(text) for text in attribute.strings],
    9: lambda graph, attribute: [read_tensor(tensor, graph.folder) for tensor in attribute.tensors],
    10: lambda graph, attribute: list(attribute.graphs),
    11: lambda graph, attribute: graph.dense(attribute.sparse_tensor),
}
"""By the number of its type how the value of an attribute is read."""


def _kind_of(attribute: Attribute) -> int:
    """The number of an attribute's type, in files that do not say it."""
    for kind, field in ((1, "f"), (2, "i"), (3, "s"), (4, "t"), (5, "g")):
        if getattr(attribute, field) is not None:
            return kind
    for kind, field in ((6, "floats"), (7, "ints"), (8, "strings"), (9, "tensors"), (10, "graphs")):
        if len(getattr(attribute, field)):
            return kind
    return 0


def _initial(array: Any, name: str) -> Array:
    return Array(array.shape, array.dtype, array, trainable=is_float(array.dtype), name=name)


def _name(result: Array, name: str) -> None:
    """Give the function that computes a value the name of its node, if it has none."""
    variable = result.variable
    if isinstance(variable, Output) and not variable.owner.name:
        variable.owner.name = name


def described(node: Node) -> str:
    """What errors call a node."""
    label = f"{node.domain}.{node.op_type}" if node.domain and node.domain not in OWN else str(node.op_type)
    return f"node {node.name or (node.output[0] if node.output else '')!r:.80} ({label:.80})"


# ---- a file --------------------------------------------------------------------------------------


def read_model(model: Model, source: str, kind: type[GraphReader] = GraphReader) -> Function:
    """The function that a file describes.

    Args:
        model: the file's message.
        source: its path, or what errors call it.
        kind: what reads the graph.

    Raises:
        DamagedFile: the file is not what it should be, or has operators that are not read; the message names them, all of them.
    """
    graph = model.graph
    if graph is None:
        raise DamagedFile(f"{source}: there is no graph in it")
    versions = _own({one.domain or "": one.version or 1 for one in model.opset_import} or {"": 1})
    own = versions.get("", NEWEST)
    if not OLDEST <= own <= NEWEST:
        raise DamagedFile(f"{source} asks for version {own} of ONNX's operators; versions {OLDEST} to {NEWEST} are read")
    functions = {(one.domain or "", one.name or "", one.overload or ""): one for one in model.functions}
    _check_operators(model, versions, functions, source)
    folder = folder_of(source)
    sources, computed = SOURCES.set({}), COMPUTED.set([0])
    try:
        reader = kind(versions, functions, folder, source)
        reader.counter[0] = -len(graph.node)
        reader.forms = _forms(graph, functions, source)
        reader.used = _used(model, source)
        COMPUTED.get()[0] = -ROOM_FOR_EACH * sum(len(tensor.raw_data or b"") for tensor in graph.initializer)
        try:
            reader.read_initializers(graph)
            _read_inputs(reader, graph)
        except (ValueError, DamagedFile) as error:
            raise DamagedFile(f"{source}: {str(error).removeprefix(f'{source}: ')}") from None
        unread = _last_readers(graph)
        graph.initializer = []
        reader.read_nodes(graph.node, unread=unread)
        return _results(reader, graph, source)
    finally:
        SOURCES.reset(sources)
        COMPUTED.reset(computed)


def _own(versions: Mapping[str, int]) -> dict[str, int]:
    return {"" if domain in OWN else domain: version for domain, version in versions.items()}


def _check_operators(
    model: Model, versions: Mapping[str, int], functions: Mapping[tuple[str, str, str], LocalFunction], source: str
) -> None:
    """Refuse a file with operators that nothing reads, naming all of them."""
    assert model.graph is not None
    missing: dict[str, str] = {}
    bodies = [model.graph.node, *(function.node for function in model.functions)]
    for node in _all_nodes(bodies, source):
        domain = "" if (node.domain or "") in OWN else node.domain or ""
        if (node.op_type or "", domain) not in onnx_readers and (
            node.domain or "",
            node.op_type or "",
            node.overload or "",
        ) not in functions:
            label = f"{node.op_type or ''!s:.80} of the domain {domain or 'ai.onnx':.80}, version {versions.get(domain, 1)}"
            missing.setdefault(label, described(node))
    if missing:
        listed = "; ".join(f"{label} (first in {where})" for label, where in list(missing.items())[:40])
        raise DamagedFile(f"{source} has operators that are not read: {listed}. A plugin can read them, see cntk_register_onnx_readers")


def _forms(graph: Graph, functions: Mapping[tuple[str, str, str], LocalFunction], source: str) -> Counter[str]:
    """By value in how many ways nodes use it: as which operand of which operator with which attributes.

    What goes into a function that the file defines counts as used in several, as functions may do anything with it.
    """
    ways: set[tuple[Any, ...]] = set()
    for number, node in enumerate(_all_nodes([graph.node, *(function.node for function in functions.values())], source)):
        if (node.domain or "", node.op_type or "", node.overload or "") in functions:
            ways.update((name, number, again) for name in node.input for again in range(2))
        elif node.input:
            how = node.op_type, *(bytes(piece) for one in node.attribute if one.g is None for piece in write_message(one))
            ways.update((name, place, how) for place, name in enumerate(node.input))
    return Counter(way[0] for way in ways)


def _last_readers(graph: Graph) -> dict[int, list[str]]:
    """By the number of a node the initial values that neither later ones read nor the graph gives."""
    last: dict[str, int] = {}
    for number, node in enumerate(graph.node):
        last.update((name, number) for name in (*node.input, *names_read_inside(node)))
    found: dict[int, list[str]] = {}
    given = {info.name for info in graph.output}
    for tensor in graph.initializer:
        name = tensor.name or ""
        if name in last and name not in given:
            found.setdefault(last[name], []).append(name)
    return found


def _used(model: Model, source: str) -> set[str]:
    """The names of all values that anything in a file takes."""
    assert model.graph is not None
    found = {info.name or "" for info in model.graph.output}
    for function in model.functions:
        found.update(function.output)
    for node in _all_nodes([model.graph.node, *(function.node for function in model.functions)], source):
        found.update(node.input)
        for attribute in node.attribute:
            for body in ([attribute.g] if attribute.g else []) + attribute.graphs:
                found.update(info.name or "" for info in body.output)
    return found - {""}


def _all_nodes(bodies: Sequence[Sequence[Node]], source: str) -> Iterator[Node]:
    """The nodes of graphs, and of the graphs in their attributes."""
    left = [iter(body) for body in bodies]
    while left:
        node = next(left[-1], None)
        if node is None:
            left.pop()
            continue
        yield node
        for attribute in node.attribute:
            left.extend(iter(graph.node) for graph in ([attribute.g] if attribute.g else []) + attribute.graphs)


def _read_inputs(reader: GraphReader, graph: Graph) -> None:
    """Make an input of each that has no numbers to begin with."""
    infos = [info for info in graph.input if info.name not in reader.values]
    shapes = [_shape_of(info) for info in infos]
    symbol = batch_symbol(shapes, [info.name in _time_major(graph) for info in infos]) if reader.has_batch_axis else None
    for info, dims in zip(infos, shapes, strict=True):
        dtype = _type_of(info)
        name = info.name or ""
        at = dims.index(symbol) if symbol is not None and symbol in dims else None
        rest = [dim for axis, dim in enumerate(dims) if axis != at]
        shape = tuple(FreeDimension if isinstance(dim, Size) else dim for dim in rest)
        kind: Any = dtype if is_float(dtype) else np.dtype(np.float64 if dtype.itemsize > 2 else np.float32)
        variable = Input(Spec(shape, kind.type, () if at is None else BATCH), name)
        array = Array(dims, dtype, variable=variable, batch=at)
        reader.values[name] = array
        note_sizes(array)


def batch_symbol(shapes: Sequence[Sequence[Dim]], time_major: Sequence[bool]) -> Size | None:
    """The free size of inputs that becomes the batch axis.

    That is one called N, or something with batch in it, on whatever axis; else the second of an input that a recurrence reads, whose first
    axis is that of steps; else the first one that is the first axis of an input and is not called after sequences or time.  None where an
    input would have it twice.

    Args:
        shapes: the shapes of the inputs.
        time_major: for each input whether a recurrence reads it.
    """
    free = [dim for dims in shapes for dim in dims if isinstance(dim, Size)]
    called = [dim for dim in free if re.fullmatch(r"n|b|bs|bsz|.*batch.*", next(iter(dim.symbols)), re.IGNORECASE)]
    first = [dims[steps] for dims, steps in zip(shapes, time_major, strict=True) if len(dims) > steps and isinstance(dims[steps], Size)]
    first = [dim for dim in first if not re.fullmatch(r"t|.*(seq|time|steps|len).*", next(iter(dim.symbols)), re.IGNORECASE)]  # type: ignore[union-attr]
    for symbol in [*called, *first]:
        if isinstance(symbol, Size) and all(list(dims).count(symbol) < 2 for dims in shapes):
            return symbol
    return None


def _time_major(graph: Graph) -> set[str]:
    """The names of values that recurrences read, steps first."""
    found = (node for node in graph.node if node.op_type in ("LSTM", "GRU", "RNN") and node.input)
    return {node.input[0] for node in found if not any(one.name == "layout" and one.i for one in node.attribute)}


_ANONYMOUS = Size.symbol("batch")


def _shape_of(info: ValueInfo) -> list[Dim]:
    """The shape of an input; sizes without a name on first axes are the same, those on others are not."""
    kind = info.type.tensor_type if info.type else None
    if kind is None or kind.shape is None:
        raise Unsupported(f"the input {info.name!r:.80} is no array of a known number of axes")
    dims: list[Dim] = []
    for axis, dim in enumerate(kind.shape.dim):
        if dim.dim_value is not None and dim.dim_value > 0:
            dims.append(dim.dim_value)
        elif dim.dim_param:
            dims.append(Size.symbol(dim.dim_param))
        else:
            dims.append(_ANONYMOUS if axis == 0 else fresh())
    if len(dims) > MOST_AXES:
        raise Unsupported(f"the input {info.name!r:.80} has {len(dims)} axes; {MOST_AXES} are the most")
    return dims


def _type_of(info: ValueInfo) -> Any:
    assert info.type is not None and info.type.tensor_type is not None
    code = info.type.tensor_type.elem_type or 0
    try:
        return type_of(code)
    except ValueError as error:
        raise Unsupported(f"the input {info.name!r:.80} has {error}") from None


def _results(reader: GraphReader, graph: Graph, source: str) -> Function:
    """The function of a graph's outputs."""
    arrays = [value for value in reader.values.values() if isinstance(value, Array)]
    batch = next((array.dims[array.batch] for array in arrays if array.batch is not None), None)
    outputs = []
    for info in graph.output:
        array = reader.value(info.name or "")
        if not isinstance(array, Array):
            raise DamagedFile(f"{source}: the output {info.name!r:.80} is no array")
        try:
            variable = reader.result(array, info, batch)
        except (ValueError, RuntimeError) as error:
            raise DamagedFile(f"{source}: the output {info.name!r:.80}: {error}") from None
        outputs.append(alias(variable, name=info.name or ""))
    if not outputs:
        raise DamagedFile(f"{source}: the graph has no outputs")
    return outputs[0] if len(outputs) == 1 else combine(*outputs)
