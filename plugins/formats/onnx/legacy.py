"""ONNX files as CNTK 2.7 wrote and read them: what ``cntk.ModelFormat.ONNX`` stands for.

Graphs have no dynamic axes.  A file is made for one sample: the batch axis has the size 1, and sequences are ``[time, batch, ...]``.  A
text in the graph says what functions, variables and parameters are called in the file, by their uids.  What is read is static as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....core.extension.device import default_device
from ....core.graph.block import Block
from ....core.graph.function import Function
from ....core.graph.graph import primitives_of
from ....core.graph.nodes import Composite, Primitive
from ....core.graph.variable import Constant, Input, Output, Parameter, Variable
from ....core.program.ordering import Cycle
from ....core.types.axis import Axes, Axis
from ...ops import shaping, slicing
from ...ops.batch import unpack_batch
from ...ops.eye import eye_like
from ...ops.identity import alias
from ...ops.product import times
from .format import Onnx, message_of
from .messages import Graph, Model, Node, ValueInfo
from .reading import recurrences, shapes, table
from .reading.arrays import Array, batched, made, static
from .reading.importer import GraphReader, Operator, read_model
from .reading.recurrences import Cell
from .reading.sizes import Size
from .tensors import TYPES
from .writing.graph import value_info
from .writing.model import BATCH, ModelWriter
from .writing.values import Value

ON_BATCHES = frozenset(
    (
        "BatchNormalization",
        "Convolution",
        "Crop",
        "DepthToSpace",
        "ImageScaler",
        "LayerNormalization",
        "LocalResponseNormalization",
        "MeanVarianceNormalization",
        "Pooling",
        "SpaceToDepth",
    )
)
"""Functions, by CNTK's names, that are operators on batches in CNTK's files, also where they are several others here."""
PAIR = re.compile(r"<<<(\w+), (.*?)>>>")
"""The uid of a function, variable or parameter, and its name in the file, in the text of a graph."""
BATCH_OPERATORS = frozenset((*table.READERS["windows"], *table.READERS["normalizations"], "DepthToSpace", "SpaceToDepth"))
"""ONNX's operators on batches: the first axis of their results is one, which is free where these are outputs."""
SAMPLE_OPERATORS = frozenset((*table.READERS["elementary"], *table.READERS["activation"]))
"""ONNX's operators that leave a batch what it is; the results of others have the sizes that are known."""


class LegacyOnnx(Onnx):
    """What ``Function.save`` and ``Function.load`` use for ``ModelFormat.ONNX``."""

    only_by_name = True

    @classmethod
    def write(cls, function: Function, *, opset: int | None = None, outputs: Sequence[Any] | None = None) -> Iterable[Any]:  # type: ignore[override]
        """The bytes of the file, in pieces.

        Args:
            function: the function.
            opset: version of ONNX's operators.
            outputs: the results to write: names, functions or variables; None for all but losses and metrics.
        """
        return cls._pieces(cls._model(function, opset=opset, outputs=outputs))

    @staticmethod
    def _model(function: Function, **options: Any) -> Model:
        return LegacyWriter(function, **options).model()

    @classmethod
    def _read(cls, data: Any, device: Any, source: str) -> Function:
        model = message_of(data, source)
        with default_device(device):
            function = read_model(model, source, LegacyReader)
        places = {one.name or "": place for place, one in enumerate(model.graph.input)} if model.graph else {}
        order = sorted(function.arguments, key=lambda argument: places[argument.name])
        return Composite(function.root_function, order=order)


# ---- writing -------------------------------------------------------------------------------------


class LegacyWriter(ModelWriter):
    """A function being written for one sample.

    Args:
        function: the function.
        opset: version of ONNX's operators.
        outputs: the results to write; None for all but criteria.
    """

    def __init__(self, function: Function, opset: int | None = None, outputs: Sequence[Any] | None = None) -> None:
        super().__init__(function, opset=opset, outputs=outputs, lengths=False, record=False)
        self._names: dict[str, str] = {}
        self._samples: int | str = 1 if any(argument.spec.axes for argument in self._arguments) else BATCH
        self._block_names: dict[Variable, list[str]] = {}
        for block in _blocks(function):
            for output in block.outputs if block.name else ():
                self._block_names.setdefault(self.resolved(output), []).insert(0, block.name)

    def model(self) -> Model:
        """The model."""
        made = super().model()
        pairs = (f"<<<{uid}, {name}>>>" for uid, name in self._names.items())
        self.top.doc_string = " ".join(["<<<Uid, ONNXNodeName>>> pair:", *pairs])
        return made

    def _unused_axes(self) -> set[Axis]:
        return set()

    @staticmethod
    def axis_name(axis: Axis) -> str:
        """What a sequence axis is called in the file."""
        return "Sequence" if axis == Axis.default_dynamic_axis() else f"Sequence_{axis.name}"

    def dims(self, axes: Axes) -> list[int | str]:
        """The sizes of dynamic axes in the file: one sample, unless the function makes the batch axis itself."""
        return [self._samples if axis.is_batch_axis else self.axis_name(axis) for axis in axes]

    def _input(self, variable: Input) -> Value:
        like = self.value_like(variable)
        name = self.unique(variable.name or variable.uid)
        sizes = [*self.dims(_steps_first(like.axes)), *self._static(name, like.shape)]
        self.top.input.append(value_info(name, like.dtype, sizes, variable.uid))
        return like.called(self.transpose(name, np.argsort(_steps_first(range(like.leading))).tolist() + _static_axes(like)))

    def note(self, variable: Variable, value: Value) -> None:
        """Remember where a variable's value is."""
        super().note(variable, value)
        if isinstance(variable, (Parameter, Constant, Output)):
            self._names[variable.uid] = value.name

    def write(self, node: Primitive) -> None:
        """Write an operator, and note its results."""
        count = len(self.graph.node)
        super().write(node)
        makers = {name: made for made in self.graph.node[count:] for name in made.output}
        for output in node.outputs:
            self._name(output, makers)

    def _write_recurrence(self, cycle: Cycle) -> None:
        count = len(self.graph.node)
        super()._write_recurrence(cycle)
        if cycle in self._layers:
            self._name(self._layers[cycle].result, {name: made for made in self.graph.node[count:] for name in made.output})

    def _name(self, variable: Variable, makers: dict[str, Node]) -> None:
        """Call the node that gives a value as the function that makes it, and as the blocks around that.

        Args:
            variable: the value.
            makers: the nodes that have just been written, by what they make; those that have got a name are taken away.
        """
        assert isinstance(variable, Output)
        names = [variable.owner.name, *self._block_names.get(variable, ())]
        for wanted in dict.fromkeys(filter(None, names)) or [variable.owner.uid]:
            value = self.value(variable)
            maker = makers.pop(value.name, None)
            if maker is None:
                self.note(variable, value.called(self.node("Identity", value.name)))
                maker = self.graph.node[-1]
            maker.name = self.unique(wanted)
            self._names[variable.owner.uid] = maker.name

    def _write_outputs(self) -> None:
        taken: dict[str, str] = {}
        made = {name for node in self.top.node for name in node.output}
        for root in dict.fromkeys(self.roots):
            value = self.dense(self.value(root))
            self.label = root.uid
            name = self.unique(f"{root.name}_Output" if root.name else root.uid)
            last = self.transpose(value.name, [*_steps_first(range(value.leading)), *_static_axes(value)])
            sizes = [*self.dims(_steps_first(value.axes)), *self._static(name, value.shape)]
            if isinstance(root, Output) and root.owner.op_name in ON_BATCHES and value.leading < 2:
                last = last if value.leading else self.unsqueeze(last, [0])
                sizes = [BATCH, *sizes[value.leading :]]
            if last in taken or (last == value.name and last not in made):
                last = str(self.node("Identity", last))
            taken[last] = name
            self._names[root.uid] = self._names[self.resolved(root).uid] = name
            self.top.output.append(value_info(name, value.dtype, sizes, root.uid))
        _rename(self.top, taken)


def _blocks(function: Function) -> Iterator[Block]:
    """The blocks of a function, those within others behind these."""
    waiting = [function.root_function]
    while waiting:
        blocks = [node for node in primitives_of(waiting) if isinstance(node, Block)]
        yield from blocks
        waiting = [block.composite.root_function for block in blocks]


def _steps_first(axes: Sequence[Any]) -> tuple[Any, ...]:
    """Dynamic axes in the order that they have in the file."""
    return (*axes[1:], *axes[:1])


def _static_axes(value: Value) -> list[int]:
    return list(range(value.leading, value.rank))


def _rename(graph: Graph, names: Mapping[str, str]) -> None:
    """Give values other names, in a graph and in those within."""
    for node in graph.node:
        node.input = [names.get(name, name) for name in node.input]
        node.output = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            if attribute.g is not None:
                _rename(attribute.g, names)


# ---- reading -------------------------------------------------------------------------------------


class LegacyReader(GraphReader):
    """The values of a graph, without dynamic axes.

    What is computed from the numbers of a file alone is not computed once, but from parameters and constants under the names that they
    have in the file; the weights of recurrences are put together as those of CNTK's layers are.
    """

    has_batch_axis = False

    def read_initializers(self, graph: Graph) -> None:
        """Take the numbers that a graph begins with.  Parameters are those that were ones, as far as the file says so."""
        super().read_initializers(graph)
        kinds = {name: uid for uid, name in PAIR.findall(graph.doc_string or "")}
        weights = _weights_of(graph.node)
        for name in filter(None, (tensor.name for tensor in graph.initializer)):
            array = self.values[name]
            learned = array.trainable and (not kinds or kinds.get(name, "Parameter" * (name in weights)).startswith("Parameter"))
            self.values[name] = Initial(array.dims, array.dtype, array.known, trainable=learned, name=name)
            self.values[name].shared = learned and array.shared

    def read_nodes(
        self, nodes: Sequence[Node], given: Mapping[str, Any] | None = None, unread: Mapping[int, Sequence[str]] | None = None
    ) -> None:
        """Make what the nodes compute."""
        self._folded = _weights_of(nodes) | _states_of(nodes)
        super().read_nodes(nodes, given, unread)

    def read_node(self, node: Node, given: Mapping[str, Any]) -> None:
        """Make what a node computes."""
        operands = {name: one for name in node.input if isinstance(one := self.value(name), Array)}
        initial = {name: one for name, one in operands.items() if isinstance(one, Initial) and one.is_float}
        learned = [one for one in operands.values() if one.is_known and one.trainable]
        is_folded = not self._folded.isdisjoint(node.output)
        if initial and not is_folded and all(one.is_known for one in operands.values()):
            self.values.update({name: Held(one) for name, one in initial.items()})
        super().read_node(node, given)
        for name in node.output:
            found = self.values.get(name)
            if not isinstance(found, Array):
                continue
            if found.is_known and is_folded and learned:
                found.trainable, found.name = found.is_float, learned[0].name
            elif not found.is_known:
                is_operand = any(found.variable is one.variable for one in operands.values())
                self.values[name] = _finished(_renamed(found, node.name or name) if is_operand else found, node.op_type or "")

    def reader_of(self, operator: Operator) -> Any:
        """The function that reads an operator."""
        return READERS.get((operator.op_type, operator.domain)) or super().reader_of(operator)

    def result(self, array: Array, info: ValueInfo, batch: Any) -> Variable:
        """The variable of an output: its first axis is free where an operator has made it the batch axis, or the file says so."""
        if array.is_concrete and (array.batch == 0 or (_is_free(info) and array.rank)):
            return unpack_batch(batched(array).held()).output
        return settled(array).held() if array.batch is not None else super().result(array, info, None)


def _renamed(array: Array, name: str) -> Array:
    """The array under another name."""
    found = Array(array.dims, array.dtype, variable=alias(array.held(), name=name).output, batch=array.batch)
    found.apart = array.apart
    return found


def _finished(array: Array, op_type: str) -> Array:
    """The result of an operator, with its first axis as the batch axis if the operator is one on batches."""
    if not array.is_concrete or op_type in SAMPLE_OPERATORS:
        return array
    if op_type in BATCH_OPERATORS and array.rank:
        return batched(array)
    return settled(array)


def _is_free(info: ValueInfo) -> bool:
    """Whether the first axis of an output has no size in the file."""
    kind = info.type and info.type.tensor_type
    return bool(kind and kind.shape and kind.shape.dim and kind.shape.dim[0].dim_value is None)


class Initial(Array):
    """Numbers that a file begins with."""


class Held(Array):
    """Numbers that a file begins with, computed with as a parameter or constant.  Readers that must know them still do."""

    def __init__(self, array: Initial) -> None:
        super().__init__(array.dims, array.dtype, variable=array.held(), name=array.name)
        self._numbers = array.known

    @property
    def kept(self) -> Any:
        """The numbers."""
        return self._numbers


def settled(array: Array) -> Array:
    """The array without dynamic axes, with the sizes that are known."""
    found = static(array)
    sizes = [-1 if isinstance(dim, Size) else dim for dim in found.dims]
    if found.is_known or sizes.count(-1) > 1 or all(size == dim for size, dim in zip(found.held().shape, found.dims, strict=True)):
        return found
    return Array(found.dims, found.dtype, variable=shaping.reshape(found.held(), sizes).output)


def _weights_of(nodes: Sequence[Node]) -> set[str]:
    """The names of the weights of recurrences, and of what these are computed from."""
    return _behind(nodes, lambda node: [*node.input[1:4], *node.input[7:]])


def _states_of(nodes: Sequence[Node]) -> set[str]:
    """The names of the first states of recurrences, and of what these are computed from."""
    return _behind(nodes, lambda node: node.input[5:7])


def _behind(nodes: Sequence[Node], wanted: Callable[[Node], Sequence[str]]) -> set[str]:
    found: set[str] = set()
    for node in reversed(nodes):
        if node.op_type in ("LSTM", "GRU", "RNN"):
            found.update(wanted(node))
        elif not found.isdisjoint(node.output):
            found.update(node.input)
    return found - {""}


# ---- recurrences as CNTK's layers ----------------------------------------------------------------


def _lstm_step(cell: Cell, x: Any, states: Sequence[Any]) -> list[Any]:
    h, c = states
    f, g, last = cell.functions
    total = cell.wb + times(x, cell.w) + times(h, cell.r)
    i_in, c_in, f_in, o_in = (cell.part(total, number) for number in range(4))
    p = [None] * 3 if cell.p is None else [cell.part(cell.p, number) for number in range(3)]
    forget, take = f(_peeped(f_in, p[2], c)), f(_peeped(i_in, p[0], c))
    new = forget * c + take * g(c_in)
    return [f(_peeped(o_in, p[1], new)) * last(new), new]


def _gru_step(cell: Cell, x: Any, states: Sequence[Any]) -> list[Any]:
    (h,) = states
    f, g = cell.functions
    size = cell.hidden
    gates, candidate = slicing.slice(cell.r, -1, 0, 2 * size), slicing.slice(cell.r, -1, 2 * size, 3 * size)
    x_part, h_part = cell.wb + times(x, cell.w), times(h, gates)
    z = f(cell.part(x_part, 0) + cell.part(h_part, 0))
    r = f(cell.part(x_part, 1) + cell.part(h_part, 1))
    new = g(cell.part(x_part, 2) + times(h * r, candidate))
    return [(1 - z) * new + z * h]


def _rnn_step(cell: Cell, x: Any, states: Sequence[Any]) -> list[Any]:
    (h,) = states
    return [cell.functions[0](times(x, cell.w) + times(h, cell.r) + cell.wb)]


def _peeped(gate: Any, weights: Any, state: Any) -> Any:
    return gate if weights is None else gate + weights * state


def _read_lstm(node: Operator, x: Array, w: Array, r: Array, b: Array | None = None, *more: Array | None) -> tuple[Array, ...]:
    if node.attribute("input_forget", 0) or not _is_layer(node, w, r, b):
        return recurrences.read_lstm(node, x, w, r, b, *more)
    lengths, initial_h, initial_c, peepholes = (*more, None, None, None, None)[:4]
    return _layer(node, _lstm_step, (0, 3, 2, 1), x, w, r, b, lengths, [initial_h, initial_c], peepholes)


def _read_gru(node: Operator, x: Array, w: Array, r: Array, b: Array | None = None, *more: Array | None) -> tuple[Array, ...]:
    if node.attribute("linear_before_reset", 0) or not _is_layer(node, w, r, b):
        return recurrences.read_gru(node, x, w, r, b, *more)
    lengths, initial = (*more, None, None)[:2]
    return _layer(node, _gru_step, (0, 1, 2), x, w, r, b, lengths, [initial])


def _read_rnn(node: Operator, x: Array, w: Array, r: Array, b: Array | None = None, *more: Array | None) -> tuple[Array, ...]:
    if not _is_layer(node, w, r, b):
        return recurrences.read_rnn(node, x, w, r, b, *more)
    lengths, initial = (*more, None, None)[:2]
    return _layer(node, _rnn_step, (0,), x, w, r, b, lengths, [initial])


def _read_eye_like(node: Operator, x: Array) -> Array:
    if x.is_known or x.batch is not None or node.attribute("k", 0):
        return shapes.read_eye_like(node, x)
    return made(eye_like(x.held(), sparse_output=False), x.dims, TYPES[node.attribute("dtype")] if node.has("dtype") else x.dtype)


READERS = {("LSTM", ""): _read_lstm, ("GRU", ""): _read_gru, ("RNN", ""): _read_rnn, ("EyeLike", ""): _read_eye_like}
"""By operator and domain what is read otherwise than elsewhere."""


def _is_layer(node: Operator, *weights: Array | None) -> bool:
    """Whether a recurrence is one that CNTK's layers make."""
    return not node.has("clip") and all(one is None or one.is_known for one in weights)


def _layer(
    node: Operator,
    step: Any,
    order: Sequence[int],
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    lengths: Array | None,
    initial: Sequence[Array | None],
    peepholes: Array | None = None,
) -> tuple[Array, ...]:
    """All results of a recurrence whose gates are put into the order of CNTK's layers, with one bias of each gate."""

    def sorted_gates(numbers: Any) -> Any:
        gates = np.split(numbers, len(order), axis=1)
        return np.concatenate([gates[number] for number in order], axis=1)

    def like(array: Array, numbers: Any) -> Array:
        return Array(numbers.shape, array.dtype, numbers, trainable=array.trainable, name=array.name)

    bias = np.zeros((w.dims[0], 2 * w.dims[1]), w.dtype) if b is None else b.known
    of_operand, of_state = np.split(bias, 2, axis=1)
    gates = sorted_gates(of_operand + of_state)
    b = like(w if b is None else b, np.concatenate([gates, np.zeros_like(gates)], axis=1))
    w, r = like(w, sorted_gates(w.known)), like(r, sorted_gates(r.known))
    found = recurrences.read_recurrence(node, step, len(order), x, w, r, b, lengths, initial, peepholes)
    return tuple(settled(one) for one in found)
