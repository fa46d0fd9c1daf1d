"""Writes functions as ONNX models.

Values keep their static axes; dynamic axes come before them, ``[batch, time, ...]``.  Sequences of a minibatch are padded to the longest
one, and a vector of lengths says where each ends; operators that look at other steps leave out what lies behind, others need not care.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from itertools import chain
from typing import Any

import numpy as np

from .....core.common.dtypes import is_bfloat16, is_half
from .....core.common.shape import FreeDimension, Shape, is_concrete
from .....core.common.user_frame import warn_user
from .....core.extension import plugins
from .....core.extension.plugins import DISTRIBUTION
from .....core.formulas.formula import states_formula
from .....core.graph.block import Block, Combine
from .....core.graph.function import Function
from .....core.graph.inference import named
from .....core.graph.nodes import Primitive
from .....core.graph.variable import Constant, Input, Output, Parameter, Placeholder, Variable
from .....core.operators.delay import Delay
from .....core.operators.elementwise import Elementwise
from .....core.operators.sequence_op import SequenceOp
from .....core.program.ordering import Cycle, in_order
from .....core.types.axis import Axes, Axis
from .....core.types.spec import Spec
from ....criteria import is_criterion
from ....ops.sequence_ends import IsFirst, IsLast
from ....ops.sequence_product import TimesOverSteps
from ....ops.sequence_reduction import SequenceReduction
from ..format import NEWEST, OLDEST, USUAL, WITH_BFLOAT16
from ..messages import Model, OperatorSet, ValueInfo
from ..record import write_record
from .formulas import write_formula
from .graph import Builder, value_info
from .loops import write_loop
from .recurrent_layers import find_layers, write_layer
from .values import Value

_IR = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}
"""Versions of the file format that came with versions of the operators."""

_WATCHES_STEPS = (SequenceOp, Delay, SequenceReduction, IsFirst, IsLast, TimesOverSteps)
"""Operators of which a result depends on other steps, or on where a sequence ends."""

BATCH = "batch"
"""What the size of the batch axis is called in files."""


class UnsupportedOperators(ValueError):
    """Operators of a function that ONNX files cannot have."""


class ModelWriter(Builder):
    """A function being written.  It is what writers of operators are given, beside the operator and its operands.

    Args:
        function: the function.
        opset: version of ONNX's operators; None for 18, or that from which on they take bfloat16 where the function has it.
        lengths: whether the model has an input with the lengths of sequences; without one they all are as long as the longest.
        sparse: ``'indices'`` if sparse inputs are to be the numbers of the elements that are 1, ``'dense'`` if they are to be vectors.
        outputs: the results to write; None for all but criteria.
        match: whether recurrences that are ONNX's LSTM, GRU or RNN are written as these, rather than step by step.
        record: whether the file remembers the function.

    Attributes:
        roots: the results of the function that the file has.
        results: the results of the operator that is being written, without names.
        lengths_outputs: names of results that say how long sequences are which the model makes itself.
        stepping: sequence axes of which the body of a recurrence sees one step.
    """

    def __init__(
        self,
        function: Function,
        opset: int | None = None,
        lengths: bool = True,
        sparse: str = "dense",
        outputs: Sequence[Any] | None = None,
        match: bool = True,
        record: bool = True,
    ) -> None:
        super().__init__(function.name or function.uid)
        if opset is not None and not OLDEST <= opset <= NEWEST:
            raise ValueError(f"save: opset must be from {OLDEST} to {NEWEST}, got {opset}")
        if sparse not in ("dense", "indices"):
            raise ValueError(f"save: sparse must be 'dense' or 'indices', got {sparse!r}")
        self.function, self.with_lengths, self.sparse, self.record = function, lengths, sparse, record
        self.results: tuple[Value, ...] = ()
        self._bound: dict[Variable, Variable] = {}
        self._values: dict[Variable, Value] = {}
        self._lengths: dict[Axis, str] = {}
        self._holders: dict[Axis, Value] = {}
        self._own_axes: set[Axis] = set()
        self.stepping: set[Axis] = set()
        self.lengths_outputs: list[str] = []
        self.roots = self._chosen(function, outputs)
        self._parts = in_order(self.roots, self._owner_of)
        self.opset = self._version(opset)
        self._results = {self.resolved(root) for root in self.roots}
        self._readers = self._reading_nodes()
        self._dropped = self._unused_axes()
        self._layers = find_layers(self, [part for part in self._parts if isinstance(part, Cycle)]) if match else {}
        leaves = self._leaves()
        self._arguments: list[Any] = [v for v in function.arguments if v in leaves]

    # ---- the graph, seen through blocks ----

    def resolved(self, variable: Variable) -> Variable:
        """The variable that a variable stands for, inside and outside of blocks."""
        while True:
            if variable in self._bound:
                variable = self._bound[variable]
            elif isinstance(variable, Output) and isinstance(variable.owner, Block):
                self._bound.update(variable.owner.block_arguments_mapping)
                variable = variable.owner.composite.outputs[variable.index]
            else:
                return variable

    def _owner_of(self, variable: Variable) -> Primitive | None:
        found = self.resolved(variable)
        return found.owner if isinstance(found, Output) else None

    def _nodes(self) -> list[Primitive]:
        parts = (part.nodes if isinstance(part, Cycle) else (part,) for part in self._parts)
        return [node for nodes in parts for node in nodes if not isinstance(node, Combine)]

    def _leaves(self) -> set[Variable]:
        roots = map(self.resolved, self.roots)
        return {self.resolved(v) for node in self._nodes() for v in node.inputs} | set(roots)

    def _version(self, asked: int | None) -> int:
        """The version of the operators that the file has."""
        values = chain((v for node in self._nodes() for v in node.inputs), self.roots)
        found = next((v for v in map(self.resolved, values) if v.spec.dtype is not None and is_bfloat16(v.spec.dtype)), None)
        if asked is not None and asked < WITH_BFLOAT16 and found is not None:
            raise ValueError(
                f"save: {found!r} is of type bfloat16, which ONNX's operators take from version {WITH_BFLOAT16} on, got opset={asked}; "
                "leave it out, or build the function in float32"
            )
        return asked or (USUAL if found is None else WITH_BFLOAT16)

    def _reading_nodes(self) -> dict[Variable, set[Primitive]]:
        """By variable the nodes that read its value."""
        found: dict[Variable, set[Primitive]] = {}
        for node in self._nodes():
            for i, variable in enumerate(node.inputs):
                if i not in node.op.traits.layout_inputs:
                    found.setdefault(self.resolved(variable), set()).add(node)
        return found

    def _unused_axes(self) -> set[Axis]:
        """Sequence axes whose steps no operator tells apart: each step is a row of the batch then."""
        axes: set[Axis] = set()
        used: set[Axis] = set()
        for node in self._nodes():
            specs = [self.resolved(v).spec for v in (*node.inputs, *node.outputs)]
            own = {axis for spec in specs for axis in (spec.axes or ())[1:]}
            axes |= own
            if isinstance(node.op, _WATCHES_STEPS) or len({spec.axes for spec in specs if spec.axes}) > 1:
                used |= own
        axes |= {axis for root in self.roots for axis in (root.spec.axes or ())[1:]}
        return axes - used

    def _chosen(self, function: Function, outputs: Sequence[Any] | None) -> list[Variable]:
        """The results to write."""
        if outputs is not None:
            return [self._output(function, wanted) for wanted in ([outputs] if isinstance(outputs, (str, Function)) else outputs)]
        found = list(function.outputs)
        criteria = [v for v in found if is_criterion(v, self._owner_of)]
        if not criteria or len(criteria) == len(found):
            return found
        left = ", ".join(repr(v.name or v.uid) for v in criteria)
        warn_user(f"save: losses and metrics are left out of the ONNX file: {left}; outputs=[...] names what to write", UserWarning)
        return [v for v in found if v not in criteria]

    @staticmethod
    def _output(function: Function, wanted: Any) -> Variable:
        """A result that was asked for: a variable, a function with one result, or a name of a node."""
        if isinstance(wanted, str):
            found = function.find_by_name(wanted, -1) if wanted not in [v.name for v in function.outputs] else None
            if found is None:
                outputs = [v for v in function.outputs if v.name == wanted]
                if len(outputs) != 1:
                    raise ValueError(f"save: outputs: no result or node is called {wanted!r} in {function}")
                return outputs[0]
            wanted = found
        if isinstance(wanted, Function):
            return wanted.output
        if isinstance(wanted, Variable):
            return wanted
        raise TypeError(f"save: outputs must be names, functions or variables, got {type(wanted).__name__} {wanted!r:.80}")

    # ---- writing ----

    def model(self) -> Model:
        """The model.

        Raises:
            UnsupportedOperators: operators of the function have no counterpart; the message names all.
        """
        self._refuse_unsupported()
        self.inputs()
        in_layers = {node for layer in self._layers.values() for node in layer.nodes}
        for part in self._parts:
            if isinstance(part, Cycle):
                self._write_recurrence(part)
            elif not isinstance(part, Combine) and part not in in_layers:
                self.write(part)
        self._write_outputs()
        self.drop_unread()
        arrays = {tensor.name for tensor in self.top.initializer}
        names = {
            leaf: value.name for leaf, value in self._values.items() if isinstance(leaf, (Parameter, Constant)) and value.name in arrays
        }
        return Model(
            ir_version=_IR[self.opset],
            producer_name=DISTRIBUTION,
            producer_version=version(DISTRIBUTION),
            graph=self.top,
            opset_import=[OperatorSet("", self.opset)],
            metadata_props=write_record(self.function, self.roots, names, self.top) if self.record else [],
        )

    def inputs(self) -> dict[Any, Value]:
        """The arguments of the function that the model has as inputs, and what they are there."""
        return {argument: self.value(argument) for argument in self._arguments}

    def _write_recurrence(self, cycle: Cycle) -> None:
        if cycle in self._layers:
            write_layer(self, self._layers[cycle])
        else:
            write_loop(self, cycle)

    def _refuse_unsupported(self) -> None:
        closing = {node for part in self._parts if isinstance(part, Cycle) for node in part.nodes if isinstance(node.op, Delay)}
        missing = [node for node in self._nodes() if node not in closing and writer_of(node) is None]
        if missing:
            lines = "".join(f"\n  {named(node)} [built at {node.line}]" for node in missing)
            raise UnsupportedOperators(
                "save: ONNX has no counterpart of these operators, and no plugin writes them; name with outputs= results that do not need "
                f"them:{lines}"
            )

    def write(self, node: Primitive) -> None:
        """Write an operator, and note its results."""
        results = [self.value_like(output) for output in node.outputs]
        self.results = tuple(results)
        self.label = f"{node.name} ({node.uid})" if node.name else node.uid
        write: Any = writer_of(node)
        made = write(node.op, self, *(self.operand(node, i) for i in range(len(node.inputs))))
        names = (made,) if isinstance(made, (str, Value)) else tuple(made)
        for output, like, name in zip(node.outputs, results, names, strict=True):
            self.note(output, name if isinstance(name, Value) else like.called(name))

    def is_read_outside(self, variable: Variable, nodes: Iterable[Primitive]) -> bool:
        """Whether other nodes than these read a value, or it is a result of the model."""
        return variable in self._results or not self._readers.get(variable, set()) <= set(nodes)

    def forget(self, variable: Variable) -> None:
        """A variable has no value where the model goes on, or one that is noted next."""
        del self._values[variable]

    @contextmanager
    def step_by_step(self, axes: set[Axis]) -> Iterator[None]:
        """Values have but one step on these sequence axes for the time being."""
        before, self.stepping = self.stepping, self.stepping | axes
        try:
            yield
        finally:
            self.stepping = before

    def note(self, variable: Variable, value: Value) -> None:
        """Remember where a variable's value is."""
        self._values[variable] = value
        for axis in () if self.stepping else value.axes:
            self._holders.setdefault(axis, value)

    @property
    def result(self) -> Value:
        """The one result of the operator that is being written."""
        return self.results[0]

    def operand(self, node: Primitive, number: int) -> Value:
        """An operand of a node, as a vector if the operator does not take the number of its one element that is 1.

        One that is asked for nothing but its shape may have no name yet.
        """
        variable = self.resolved(node.inputs[number])
        if number in node.op.traits.layout_inputs and variable not in self._values and isinstance(variable, Output):
            return self.value_like(variable)  # a later operator of the recurrence, of which nothing but the shape is asked
        found = self.value(variable)
        return self.dense(found) if found.indices and number not in node.op.sparse_inputs else found

    def value(self, variable: Variable) -> Value:
        """The value of a variable; leaves are written when they are first asked for."""
        variable = self.resolved(variable)
        if variable not in self._values:
            with self.outside():
                self.note(variable, self._leaf(variable))
        return self._values[variable]

    def value_like(self, variable: Variable) -> Value:
        """The type of a variable, as a value without name."""
        spec: Spec = self.resolved(variable).spec
        if spec.axes is None or spec.shape is None or spec.dtype is None:
            raise ValueError(f"save: {variable!r} has no known type yet; replace the placeholders first")
        return Value("", spec.shape, np.dtype(spec.dtype), self.kept(spec.axes))

    def kept(self, axes: Axes) -> Axes:
        """Those of dynamic axes that values have here: not those that the file has not, nor that whose steps are written one by one."""
        return tuple(axis for axis in axes if axis not in self._dropped and axis not in self.stepping)

    def _leaf(self, variable: Variable) -> Value:
        if isinstance(variable, (Parameter, Constant)):
            like = self.value_like(variable)
            if not is_concrete(like.shape):
                raise ValueError(f"save: {variable!r} has dimensions that are not known yet")
            return like.called(self.initializer(variable.value, variable.name or variable.uid))
        if isinstance(variable, Placeholder):
            raise ValueError(f"save: {variable!r} is an unbound placeholder; call the function on an input or use replace_placeholders")
        assert isinstance(variable, Input)
        return self._input(variable)

    def _input(self, variable: Input) -> Value:
        like = self.value_like(variable)
        name = self.unique(variable.name or variable.uid)
        if variable.spec.sparse and self.sparse == "indices":
            sizes = [*self.dims(like.axes), *self._static(name, like.shape[:-1])]
            self.top.input.append(value_info(name, np.int64, sizes, variable.uid))
            return Value(name, like.shape, like.dtype, like.axes, indices=True)
        self.top.input.append(value_info(name, like.dtype, [*self.dims(like.axes), *self._static(name, like.shape)], variable.uid))
        return like.called(name)

    def declared(self, value: Value) -> ValueInfo:
        """Name and type of a value."""
        shape, dtype = (value.shape[:-1], np.dtype(np.int64)) if value.indices else (value.shape, value.dtype)
        return value_info(value.name, dtype, [*self.dims(value.axes), *self._static(value.name, shape)])

    @staticmethod
    def _static(name: str, shape: Sequence[int]) -> list[int | str]:
        return [f"{name}_dim{i}" if size == FreeDimension else size for i, size in enumerate(shape)]

    def dims(self, axes: Axes) -> list[int | str]:
        """What the sizes of dynamic axes are called in the file."""
        return [BATCH if axis.is_batch_axis else self.axis_name(axis) for axis in axes]

    @staticmethod
    def axis_name(axis: Axis) -> str:
        """What a sequence axis is called in the file."""
        return "sequence" if axis == Axis.default_dynamic_axis() else axis.name

    def _write_outputs(self) -> None:
        """The results, and behind them the lengths of sequences that the model made itself."""
        made: list[tuple[Axis, str]] = []
        for root in dict.fromkeys(self.roots):
            value = self.value(root)
            value = self.dense(value) if value.indices else value
            self.label = root.uid
            for axis in value.axes[1:]:
                value = self.masked(value, axis, 0) if self.has_lengths(axis) else value
            name = self.unique(root.name or self.resolved(root).name or root.uid)
            self.graph.node.append(self._named("Identity", value.name, name))
            sizes = [*self.dims(value.axes), *self._static(name, value.shape)]
            self.top.output.append(value_info(name, value.dtype, sizes, root.uid))
            made.extend((axis, name) for axis in value.axes[1:] if axis in self._own_axes)
        for axis, name in made:
            self._write_lengths(axis, name)

    def _write_lengths(self, axis: Axis, output: str) -> None:
        name = self.unique(f"{output}_lengths")
        self.lengths_outputs.append(name)
        self.graph.node.append(self._named("Identity", self.lengths(axis), name))
        self.top.output.append(value_info(name, np.int64, [BATCH]))

    def _named(self, op_type: str, operand: str, name: str) -> Any:
        self.node(op_type, operand)
        made = self.graph.node.pop()
        made.output = [name]
        return made

    # ---- sequences ----

    def has_lengths(self, axis: Axis) -> bool:
        """Whether sequences on an axis may be shorter than the longest one."""
        return self.with_lengths or axis in self._own_axes

    def new_axis(self, axis: Axis, lengths: str) -> None:
        """Say that the model makes sequences itself.  Those on one axis have the same lengths, wherever they are made.

        Args:
            axis: their axis.
            lengths: name of their lengths, integers ``[batch]``.
        """
        self._lengths.setdefault(axis, lengths)
        self._own_axes.add(axis)

    def lengths(self, axis: Axis) -> str:
        """The name of the lengths of sequences: integers ``[batch]``."""
        if axis not in self._lengths:
            with self.outside():
                self._lengths[axis] = self._given_lengths(axis) if self.with_lengths else self._full_lengths(axis)
        return self._lengths[axis]

    def _given_lengths(self, axis: Axis) -> str:
        name = self.unique(f"{self.axis_name(axis)}_lengths")
        self.top.input.append(value_info(name, np.int64, [BATCH], "Steps of each sequence; what lies behind them is not used."))
        return name

    def _full_lengths(self, axis: Axis) -> str:
        holder = self.holder(axis)
        return str(self.node("Expand", self.size(holder.name, 1), self.size(holder.name, 0)))

    def holder(self, axis: Axis) -> Value:
        """A value of the outermost graph that has a dynamic axis."""
        return self._holders[axis]

    def steps(self, axis: Axis) -> str:
        """The number of steps of the longest sequence, padding included, as a vector of one integer."""
        if axis in self._own_axes:
            return self.longest(axis)
        with self.outside():
            return self.once(("steps", axis), lambda: self.size(self.holder(axis).name, 1))

    def longest(self, axis: Axis) -> str:
        """The number of steps of the longest sequence, as a vector of one integer."""
        with self.outside():
            return self.once(("longest", axis), lambda: str(self.node("ReduceMax", self.lengths(axis))))

    def batch(self) -> str:
        """The number of samples, as a vector of one integer."""
        with self.outside():
            return self.once("batch", self._batch)

    def _batch(self) -> str:
        held = self._holders.get(Axis.default_batch_axis())
        if held is None:
            raise ValueError("save: no input of the function has a batch axis, so that the number of samples is not known")
        return self.size(held.name, 0)

    def positions(self, axis: Axis) -> str:
        """The numbers of the steps: integers ``[1, time]``."""
        with self.outside():
            return self.once(("positions", axis), lambda: self._positions(axis))

    def _positions(self, axis: Axis) -> str:
        return self.unsqueeze(self.numbers(self.steps(axis)), [0])

    def mask(self, axis: Axis) -> str:
        """Which steps belong to a sequence: bool ``[batch, time]``."""
        with self.outside():
            return self.once(("mask", axis), lambda: self._mask(axis))

    def _mask(self, axis: Axis) -> str:
        return str(self.node("Less", self.positions(axis), self.unsqueeze(self.lengths(axis), [1])))

    def masked(self, x: Value, axis: Axis, fill: float) -> Value:
        """A value with a number in the steps that belong to no sequence."""
        mask = self.unsqueeze(self.mask(axis), [i for i in range(x.rank) if x.axes[i : i + 1] not in ((x.axes[0],), (axis,))])
        return x.called(str(self.node("Where", mask, x.name, self.constant(fill, x.dtype))))

    # ---- operands ----

    def lined_up(self, *operands: Value) -> list[str]:
        """Operands with axes of size 1 put in, so that they broadcast to the result, whose rank is known from them all."""
        axes: Axes = max((x.axes for x in operands), key=len)
        rank = max(len(x.shape) for x in operands)
        return [self.lined_up_with(x, axes, rank) for x in operands]

    def lined_up_with(self, x: Value, axes: Axes, rank: int) -> str:
        """An operand with axes of size 1 for those of *axes*, and of *rank* static ones, that it has not."""
        if not x.axes:
            return x.name
        missing = [i for i, axis in enumerate(axes) if axis not in x.axes]
        return self.unsqueeze(x.name, [*missing, *range(len(axes), len(axes) + rank - len(x.shape))])

    def expanded(self, name: str, like: Value, at: int, size: int) -> str:
        """A value repeated to the dynamic axes of *like*, and to its static ones but for one, which has another size."""
        wanted = Value(name, (*like.shape[:at], size, *like.shape[at + 1 :]), like.dtype, like.axes)
        dynamic = self.dynamic_sizes(wanted.axes)
        static: list[int | str] = list(wanted.shape)
        for i, size in enumerate(wanted.shape):
            if size == FreeDimension:
                static[i] = self.node("Gather", self.node("Shape", name), self.integers(i - len(wanted.shape)))
        return str(self.node("Expand", name, self.shape([*dynamic, *static])))

    def repeated(self, x: Value, like: Value) -> str:
        """A value repeated to the dynamic axes of *like*, and to its static ones."""
        x = replace(x, shape=x.shape[:-1]) if x.indices else x
        static = like.shape[:-1] if like.indices else like.shape
        if (x.axes, x.shape) == (like.axes, static):
            return x.name
        sizes = self.shape([*self.dynamic_sizes(like.axes), *(1 if size == FreeDimension else size for size in static)])
        return str(self.node("Expand", self.lined_up_with(x, like.axes, len(static)), sizes))

    def widened(self, x: Value) -> Value:
        """A value of 16 bits as float32, for sums and for operators that programs compute badly; any other as it is."""
        return x if not is_half(x.dtype) else Value(self.cast(x.name, np.float32), x.shape, np.dtype(np.float32), x.axes)

    def narrowed(self, x: Value, dtype: Any) -> str:
        """What was made of :meth:`widened`, of the element type that was there before."""
        return x.name if x.dtype == dtype else self.cast(x.name, dtype)

    def dense(self, x: Value) -> Value:
        """Vectors in place of the numbers of their one element that is 1."""
        if not x.indices:
            return x
        places = self.constant(np.arange(x.shape[-1]), np.int64)
        numbers = self.once(("numbers", x.name), lambda: self.unsqueeze(x.name, [-1]))
        made = self.once(("dense", x.name, x.dtype), lambda: self.cast(str(self.node("Equal", numbers, places)), x.dtype))
        return Value(made, x.shape, x.dtype, x.axes)

    def with_static(self, x: Value, sizes: Sequence[int] | None) -> str:
        """A value with other static axes; -1 stands for the rest of its elements.  None leaves them as they are."""
        if sizes is None or (tuple(sizes) == x.shape and -1 not in sizes):
            return x.name
        free = [size for size in sizes if size < 0]
        if len(free) > 1:
            raise ValueError("save: ONNX files cannot have an operator that reshapes several free dimensions at once")
        return self.reshape(x.name, [0] * x.leading + [size if size >= 0 else -1 for size in sizes])

    def shaped_like(self, name: str, like: Value) -> str:
        """A value with dynamic axes as *like*, and its static ones."""
        if like.shape.count(FreeDimension) > 1:
            raise ValueError("save: ONNX files cannot have an operator that reshapes several free dimensions at once")
        return self.reshape(name, [0] * like.leading + [size if size >= 0 else -1 for size in like.shape])

    def merged(self, x: Value, shape: Sequence[int] | None = None) -> str:
        """A value whose dynamic axes are one, which has the size 1 where it has none.

        Args:
            x: the value.
            shape: sizes of its static axes then; None leaves them as they are.
        """
        if x.leading == 1:
            return self.with_static(x, shape)
        return self.reshape(x.name, [-1 if x.leading else 1, *(self.static_sizes(x) if shape is None else shape)])

    def split(self, name: str, x: Value, shape: Shape, at: int = 1) -> str:
        """What was made of :meth:`merged`, with the dynamic axes of *x* again.

        Args:
            name: its name.
            x: the value that was merged.
            shape: sizes of its static axes now.
            at: which axis in the file is the first static one, where there are free ones.
        """
        dynamic: list[int | str] = [0] if x.leading == 1 else [self.size(x.name, i) for i in range(x.leading)]
        return self.reshape(name, [*dynamic, *(size if size >= 0 else self.size(name, at + i) for i, size in enumerate(shape))])

    def spread(self, x: Value, axes: Axes) -> Value:
        """A value repeated to further dynamic axes."""
        if x.axes == axes:
            return x
        lined_up = self.lined_up_with(x, axes, len(x.shape))
        made = str(self.node("Expand", lined_up, self.shape([*self.dynamic_sizes(axes), *([1] * len(x.shape))])))
        return Value(made, x.shape, x.dtype, axes)

    def dynamic_sizes(self, axes: Axes) -> list[int | str]:
        """The sizes of dynamic axes: names of vectors of one integer."""
        return [self.batch() if axis.is_batch_axis else self.steps(axis) for axis in axes]

    def sizes(self, x: Value) -> list[int | str]:
        """The sizes of all axes: numbers where they are known, else names of vectors of one integer."""
        return [*(self.size(x.name, i) for i in range(x.leading)), *self.static_sizes(x)]

    def static_sizes(self, x: Value) -> list[int | str]:
        """The sizes of the static axes."""
        return [self.size(x.name, i - len(x.shape)) if size == FreeDimension else size for i, size in enumerate(x.shape)]


def writer_of(node: Primitive) -> Any:
    """What writes a node: what is registered for its operator's class, else its formula; None where there is neither."""
    found = plugins.onnx_writer_of(type(node.op))
    if found is None and isinstance(node.op, Elementwise) and states_formula(type(node.op)):
        return write_formula
    return found


def write_model(function: Function, **options: Any) -> Model:
    """The model of a function; options are those of :class:`ModelWriter`."""
    return ModelWriter(function, **options).model()
