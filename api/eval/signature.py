"""Signatures: what a function takes and gives, by name, for programs that bring data from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cntk.core.common.dtypes import dtype_name
from cntk.core.common.shape import FreeDimension, InferredDimension
from cntk.core.graph.block import combine
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Output, Variable
from cntk.core.types.axis import Axis
from cntk.eval.rows import joined_result, result_of, rows_of, static_array, value_of
from cntk.plugins.criteria import is_criterion
from cntk.readers.rows import StreamData


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a function.

    Attributes:
        name: its name; its uid where it has none.
        dtype: type of the elements.
        shape: its static shape, with None for free dimensions.
        sequence_axis: name of the sequence axis, ``'sequence'`` for the default one; None without.
        is_sparse: whether it is sparse.
        has_batch_axis: whether it has a value for each row of the data, rather than one for all.

    >>> from cntk.eval import TensorInfo
    >>> info = TensorInfo.of(C.sequence.input_variable(3, name='words'))
    >>> print(info)
    words [batch, sequence, 3] float32
    >>> [sequence.shape for sequence in info.example(rows=2)]
    [(1, 3), (2, 3)]
    """

    name: str
    dtype: Any
    shape: tuple[int | None, ...] = ()
    sequence_axis: str | None = None
    is_sparse: bool = False
    has_batch_axis: bool = True

    @classmethod
    def of(cls, variable: Variable) -> TensorInfo:
        """What is known of a variable.

        Raises:
            ValueError: its type is not known yet.
        """
        spec = variable.spec
        if spec.shape is None or spec.dtype is None or spec.axes is None or InferredDimension in spec.shape:
            raise ValueError(f"{variable!r} has no known type yet; replace the placeholders first, and give inputs shapes")
        axis = next((axis for axis in spec.axes if axis.is_sequence_axis), None)
        return cls(
            name_of(variable),
            np.dtype(spec.dtype),
            tuple(None if size == FreeDimension else size for size in spec.shape),
            None if axis is None else axis_name(axis),
            spec.sparse,
            any(axis.is_batch_axis for axis in spec.axes),
        )

    @property
    def dims(self) -> tuple[str | int | None, ...]:
        """All axes: ``('batch', 'sequence', 3)``, None for free ones."""
        batch = ("batch",) if self.has_batch_axis else ()
        return (*batch, *(() if self.sequence_axis is None else (self.sequence_axis,)), *self.shape)

    def example(self, rows: int = 2) -> Any:
        """Zeros that fit: an array, or a list of sequences of unequal lengths; free dimensions have one element."""
        shape = tuple(size or 1 for size in self.shape)
        if self.sequence_axis is not None:
            return [np.zeros((1 + i % 2, *shape), self.dtype) for i in range(rows)]
        return np.zeros((rows, *shape) if self.has_batch_axis else shape, self.dtype)

    def example_text(self) -> str:
        """An example as Python source: ``{'x': np.zeros((2, 3), np.float32)}``."""
        if self.is_sparse and len(self.shape) == 1:
            return f"{{{self.name!r}: {'[[0, 0], [0]]' if self.sequence_axis else '[0, 0]'}}}, the numbers of the elements that are 1"
        found = self.example()
        arrays = [f"np.zeros({array.shape}, np.{dtype_name(self.dtype)})" for array in (found if isinstance(found, list) else [found])]
        return f"{{{self.name!r}: {'[' + ', '.join(arrays) + ']' if isinstance(found, list) else arrays[0]}}}"

    def __str__(self) -> str:
        dims = ", ".join("free" if size is None else str(size) for size in self.dims)
        return f"{self.name} [{dims}] {'sparse ' if self.is_sparse else ''}{dtype_name(self.dtype)}"


class Signature:
    """What a function takes and gives, by name, and data on its way in and out.

    Data is a dictionary by the inputs' names.  The first axis counts rows: samples, or sequences.

    Args:
        function: the function.
        outputs: what to compute: names, functions or variables of the graph; None for the results that have a value for each row, without
            losses and metrics where there are others.

    Attributes:
        function: computes the outputs.
        inputs, outputs: what they are.

    Raises:
        ValueError: an output is unknown, two have the same name, or types are not known yet.

    >>> from cntk.eval.signature import Signature
    >>> x, y = C.input_variable(2, name='x'), C.input_variable(3, name='y')
    >>> z = C.layers.Dense(3, init=1, name='z')(x)
    >>> signature = Signature(C.combine([z, C.cross_entropy_with_softmax(z, y)]))
    >>> print(signature)
    x [batch, 2] float32 -> z [batch, 3] float32
    >>> signature.eval({'x': [[1, 2], [3, 4]]})
    {'z': array([[3., 3., 3.],
           [7., 7., 7.]], dtype=float32)}
    """

    def __init__(self, function: Function, outputs: Any = None) -> None:
        roots = _chosen(function, outputs)
        self.function: Function = combine(roots)
        if any(variable.in_block for variable in self.function.arguments):
            self.function = function  # whose blocks say what their arguments are
        self._arguments = list(self.function.arguments)
        self._roots = roots
        self.inputs = tuple(TensorInfo.of(variable) for variable in self._arguments)
        self.outputs = tuple(TensorInfo.of(variable) for variable in roots)
        for what, infos in (("inputs", self.inputs), ("outputs", self.outputs)):
            names = [info.name for info in infos]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{len(names)} {what} are given by name, and several are called {twice[0]!r}; give each a name of its own")

    def input(self, name: str) -> TensorInfo:
        """The input of a name.

        Raises:
            ValueError: there is none.
        """
        return _named(self.inputs, name, "input")

    def output(self, name: str) -> TensorInfo:
        """The output of a name.

        Raises:
            ValueError: there is none.
        """
        return _named(self.outputs, name, "output")

    def lengths_name(self, info: TensorInfo) -> str:
        """Name of the vector of lengths that goes with padded sequences, as ONNX models have it: ``'sequence_lengths'``."""
        return f"{info.sequence_axis}_lengths"

    def rows(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Data of the inputs as rows: :class:`StreamData` by input, arrays for inputs without batch axis.

        Dense rows are an array ``(rows, *shape)`` or ``(rows, elements)``, or nested lists.  Sequences are a list of arrays
        ``(steps, *shape)``; or an array ``(rows, steps, *shape)``, with the lengths of all sequences under the name of
        :meth:`lengths_name` where some end earlier; or with these lengths all steps one after another, ``(all steps, *shape)``.
        Sparse rows may be CSR matrices, vectors, or integers, the numbers of the elements that are 1.

        Args:
            data: by name; others than those of the inputs are not looked at.

        Raises:
            ValueError: an input is missing, or its data does not fit; the message says what was expected, with an example.

        >>> from cntk.eval.signature import Signature
        >>> signature = Signature(C.sequence.last(C.sequence.input_variable(1, name='x')))
        >>> rows = signature.rows({'x': np.float32([[[1], [2]], [[3], [0]]]), 'sequence_lengths': [2, 1]})
        >>> rows['x'].sequence(1).tolist()
        [[3.0]]
        """
        missing = [info for info in self.inputs if info.name not in data]
        if missing:
            raise ValueError(
                f"no data for the input {missing[0]}; there is {_listed(data)}. The model takes {', '.join(map(str, self.inputs))}; "
                f"for example {missing[0].example_text()}"
            )
        found: dict[str, Any] = {}
        for info in self.inputs:
            lengths = data.get(self.lengths_name(info)) if info.sequence_axis else None
            found[info.name] = rows_of(info, data[info.name], lengths) if info.has_batch_axis else static_array(info, data[info.name])
        self._require_equal_lengths(found)
        return found

    def feed(self, data: Mapping[str, Any]) -> dict[Variable, Any]:
        """Data by name as :meth:`Function.eval` takes it; see :meth:`rows`."""
        return self.feed_of_rows(self.rows(data))

    def compute(self, rows: Mapping[str, Any], device: Any = None) -> dict[TensorInfo, StreamData]:
        """Results by output, as rows, of what :meth:`rows` gives."""
        values = self.results(self.function.eval(self.feed_of_rows(rows), self._roots, device))
        return {info: joined_result(info, values[info.name]) for info in self.outputs}

    def feed_of_rows(self, rows: Mapping[str, Any]) -> dict[Variable, Any]:
        """Rows as :meth:`Function.eval` takes them."""
        return {
            variable: value_of(info, rows[info.name]) if info.has_batch_axis else rows[info.name]
            for variable, info in zip(self._arguments, self.inputs, strict=True)
        }

    def results(self, values: Any) -> dict[str, Any]:
        """Results by name of what :meth:`Function.eval` gave: arrays, and lists of arrays for sequences; dense."""
        found = [values] if len(self._roots) == 1 else [values[root] for root in self._roots]
        return {info.name: result_of(info, value) for info, value in zip(self.outputs, found, strict=True)}

    def padded(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Results with sequences padded by zeros to arrays ``(rows, steps, *shape)``, and their lengths under :meth:`lengths_name`.

        >>> from cntk.eval.signature import Signature
        >>> signature = Signature(C.alias(C.sequence.input_variable(1, name='x'), name='y'))
        >>> signature.padded(signature.eval({'x': [[[1], [2]], [[3]]]}))
        {'y': array([[[1.],
                [2.]],
        <BLANKLINE>
               [[3.],
                [0.]]], dtype=float32), 'sequence_lengths': array([2, 1])}
        """
        found: dict[str, Any] = {}
        lengths: dict[str, Any] = {}
        for info in self.outputs:
            value = results[info.name]
            if info.sequence_axis is None:
                found[info.name] = value
                continue
            counts = np.array([len(part) for part in value], np.int64)
            array = np.zeros((len(value), counts.max(initial=0), *value[0].shape[1:]), info.dtype)
            for own, part in zip(array, value, strict=True):
                own[: len(part)] = part
            found[info.name] = array
            lengths[self.lengths_name(info)] = counts
        return {**found, **lengths}

    def eval(self, data: Mapping[str, Any], device: Any = None) -> dict[str, Any]:
        """Compute the outputs of data by name; see :meth:`rows` and :meth:`results`."""
        return self.results(self.function.eval(self.feed(data), self._roots, device))

    def _require_equal_lengths(self, found: Mapping[str, Any]) -> None:
        """See that all inputs have the same number of rows, and those on one sequence axis the same steps."""
        batched = [info for info in self.inputs if info.has_batch_axis]
        for first, other in ((one, two) for i, one in enumerate(batched) for two in batched[:i]):
            one, two = found[first.name], found[other.name]
            if len(one) != len(two):
                raise ValueError(
                    f"the inputs {other.name!r} and {first.name!r} have {len(two)} and {len(one)} rows; they need the same number"
                )
            if first.sequence_axis and first.sequence_axis == other.sequence_axis and not np.array_equal(one.lengths, two.lengths):
                row = int((one.lengths != two.lengths).argmax())
                raise ValueError(
                    f"the inputs {other.name!r} and {first.name!r} have the same sequence axis, but row {row} has {two.lengths[row]} steps "
                    f"of the one and {one.lengths[row]} of the other"
                )

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}"

    def __repr__(self) -> str:
        return f"Signature({self})"


def axis_name(axis: Axis) -> str:
    """What a sequence axis is called outside: that of ONNX files.

    >>> from cntk.eval.signature import axis_name
    >>> axis_name(C.Axis.default_dynamic_axis()), axis_name(C.Axis('source'))
    ('sequence', 'source')
    """
    return "sequence" if axis == Axis.default_dynamic_axis() else axis.name


def name_of(variable: Variable) -> str:
    """The name of a variable, that of the function it is a result of, or its uid.

    >>> from cntk.eval.signature import name_of
    >>> x = C.input_variable(2, name='x')
    >>> name_of(x), name_of(C.relu(x, name='y').output)
    ('x', 'y')
    """
    owner = variable.owner.name if isinstance(variable, Output) and len(variable.owner.outputs) == 1 else ""
    return variable.name or owner or variable.uid


def _chosen(function: Function, outputs: Any) -> list[Variable]:
    """The results to compute."""
    if outputs is not None:
        given = [outputs] if isinstance(outputs, (str, Function, Variable)) else list(outputs)
        if not given:
            raise ValueError("outputs: expected one at least; None stands for all results but losses and metrics")
        return [_output(function, wanted) for wanted in given]
    found = list(function.outputs)
    rows = [v for v in found if v.has_batch_axis()] or found
    return [v for v in rows if not is_criterion(v)] or rows


def _output(function: Function, wanted: Any) -> Variable:
    if isinstance(wanted, str):
        named: list[Any] = [v for v in function.outputs if name_of(v) == wanted] or function.find_all_with_name(wanted, -1)
        if len(named) != 1:
            there = ", ".join(repr(name_of(v)) for v in function.outputs)
            many = f"{len(named)} nodes are" if named else "no result or node is"
            raise ValueError(f"outputs: {many} called {wanted!r}; the results of the model are {there}")
        wanted = named[0]
    if isinstance(wanted, Function):
        return wanted.output
    if isinstance(wanted, Variable):
        return wanted
    raise TypeError(f"outputs must be names, functions or variables, got {type(wanted).__name__} {wanted!r:.80}")


def _named(infos: Sequence[TensorInfo], name: str, what: str) -> TensorInfo:
    for info in infos:
        if info.name == name:
            return info
    raise ValueError(f"the model has no {what} {name!r}; it has {', '.join(map(str, infos))}")


def _listed(data: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, data)) or "none"


__all__ = ["Signature", "StreamData", "TensorInfo", "axis_name", "name_of"]
