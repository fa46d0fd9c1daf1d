"""Trials: a sample of an operator made concrete, with variables, data and a function to evaluate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import cntk as C
from cntk.core.common.dtypes import computing_type
from cntk.core.common.shape import as_shape
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.graph.graph import depth_first_search
from cntk.core.graph.nodes import Primitive
from cntk.core.operators.samples import Operand, Sample
from cntk.core.types.csr import csr_matrix_of

ROWS = 3
LENGTHS = (3, 1, 9, 2)
"""Steps of each sequence in a minibatch of sequences: out of order, very unequal, and one of a single step."""

Values = Any
"""An array with a row for each sample, a list of an array for each sequence, or one array without dynamic axes."""


@contextmanager
def repetition_is_meant() -> Iterator[None]:
    """Let losses compare a value with every step of a sequence without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).* is compared with every step of .*")
        yield


class Trial:
    """An operator applied to the operands of one sample, with values for them.

    Args:
        function: the public operator function.
        sample: how to call it.
        dtype: element type of all operands.
        device: where to compute; the default device where None.
        rows: number of samples in the minibatch; a sample with sequences has one for each of :data:`LENGTHS`.

    Attributes:
        result: the Function.
        variables: the variable of each operand.
        values: the array of each operand, dense; a batch operand's has *rows* rows, a sequence operand's has those of all steps, one
            sequence after another.
    """

    def __init__(
        self, function: Callable[..., Any], sample: Sample, dtype: Any, device: DeviceDescriptor | None = None, rows: int = ROWS
    ) -> None:
        has_sequences = any(operand.kind == "sequence" for operand in sample.operands)
        self.sample, self.device, self.rows = sample, device, len(LENGTHS) if has_sequences else rows
        generator = np.random.default_rng(1)
        self.values = [_draw(operand, generator, self.rows).astype(dtype) for operand in sample.operands]
        self.variables = [_variable(operand, value, dtype, device) for operand, value in zip(sample.operands, self.values, strict=True)]
        with repetition_is_meant():
            self.result = sample.build(function, self.variables)
        self.assign(self.values)

    def assign(self, values: list[Any]) -> None:
        """Give the operands other values of the same shapes."""
        self.values = [value.astype(variable.dtype) for value, variable in zip(values, self.variables, strict=True)]
        for operand, variable, value in self._operands():
            if operand.kind == "parameter":
                variable.value = value

    def feed(self, samples: Sequence[int] | None = None) -> dict[Any, Any]:
        """The arguments of ``eval`` for a minibatch of these samples, by default all: data by variable, sparse where the operand is."""
        chosen = range(self.rows) if samples is None else samples
        return {
            variable: _data(operand, variable, value if operand.kind == "static" else pick(by_sample(operand, value), chosen))
            for operand, variable, value in self._operands()
            if operand.kind != "parameter"
        }

    def evaluate(self, samples: Sequence[int] | None = None, training: bool = False) -> list[Values]:
        """Values of all results for a minibatch of these samples, by default all; as in training if that is wanted."""
        outputs = self.result.outputs
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s).* is given as .*")
            if training:
                found = self.result.forward(self.feed(samples), outputs, outputs, device=self.device)[1]
            else:
                found = self.result.eval(self.feed(samples), device=self.device)
        values = [found[output] for output in outputs] if isinstance(found, dict) else [found]
        return [_dense(value, output) for value, output in zip(values, outputs, strict=True)]

    def expected(self) -> list[Values] | None:
        """The expected results of the sample, or None if it has none.

        Results on dynamic axes are lists of the expected result of each sample.
        """
        if self.sample.expected is None:
            return None
        values = [value.astype(np.float64) for value in self.values]
        if not self.has_samples:
            return _as_list(self.sample.expected(*values))
        separate = [by_sample(operand, value) for operand, value in zip(self.sample.operands, values, strict=True)]
        by_row = [_as_list(self.sample.expected(*self._row(separate, row))) for row in range(self.rows)]
        return [list(parts) for parts in zip(*by_row, strict=True)]

    @property
    def has_samples(self) -> bool:
        """Whether an operand has a batch axis."""
        return any(operand.kind in ("batch", "sequence") for operand in self.sample.operands)

    @property
    def varies_in_training(self) -> bool:
        """Whether an operator says that results in training depend on the minibatch, or on chance."""
        nodes = depth_first_search(self.result, lambda node: isinstance(node, Primitive), depth=-1)
        return any(node.op.traits.varies_in_training for node in nodes)

    def _row(self, separate: list[Any], row: int) -> list[Any]:
        """The operands' values of one sample."""
        operands = self.sample.operands
        return [value[row] if operand.kind in ("batch", "sequence") else value for operand, value in zip(operands, separate, strict=True)]

    def _operands(self) -> zip[tuple[Operand, Any, Any]]:
        return zip(self.sample.operands, self.variables, self.values, strict=True)


def as_sequences(sample: Sample) -> Iterator[tuple[Sample, int | None]]:
    """The same call with sequences of what are samples there: all of them, then all but one in turn, which is told.

    There are none of a call that takes no samples, or sequences already.
    """
    batch = [i for i, operand in enumerate(sample.operands) if operand.kind == "batch"]
    if batch and not any(operand.kind == "sequence" for operand in sample.operands):
        yield _step_by_step(sample, batch), None
        for left in batch if len(batch) > 1 else ():
            yield _step_by_step(sample, [i for i in batch if i != left]), left


def _step_by_step(sample: Sample, which: Sequence[int]) -> Sample:
    """The same call with sequences for *which* operands; the others are the same at each step."""
    operands = [_as_sequence(operand) if i in which else operand for i, operand in enumerate(sample.operands)]
    expected = sample.expected
    if expected is None:
        return Sample(operands, sample.attributes, sample.call, None)

    def by_step(*values: Any) -> Any:
        each = [
            expected(*(value[step] if i in which else value for i, value in enumerate(values))) for step in range(len(values[which[0]]))
        ]
        return tuple(map(np.stack, zip(*each, strict=True))) if isinstance(each[0], tuple) else np.stack(each)

    return Sample(operands, sample.attributes, sample.call, by_step)


def _as_sequence(operand: Operand) -> Operand:
    return Operand(operand.shape, operand.low, operand.high, sparse=operand.sparse, kind="sequence", gradient=operand.gradient)


def by_sample(operand: Operand, value: Any) -> Values:
    """Cut the steps of a sequence operand into sequences."""
    return np.split(value, np.cumsum(LENGTHS)[:-1]) if operand.kind == "sequence" else value


def pick(values: Values, samples: Sequence[int]) -> Values:
    """Choose samples, in this order."""
    return [values[sample] for sample in samples] if isinstance(values, list) else values[list(samples)]


def _draw(operand: Operand, generator: np.random.Generator, rows: int) -> Any:
    """Values for an operand, in double precision."""
    leading = {"batch": (rows,), "sequence": (sum(LENGTHS),)}.get(operand.kind, ())
    if isinstance(operand.shape, np.ndarray):
        return np.broadcast_to(operand.shape, leading + operand.shape.shape)
    shape = leading + as_shape(operand.shape)
    if not operand.sparse:
        return generator.uniform(operand.low, operand.high, shape)
    return np.eye(shape[-1])[generator.integers(shape[-1], size=shape[:-1])]


def _variable(operand: Operand, value: Any, dtype: Any, device: DeviceDescriptor | None) -> Any:
    if operand.kind == "parameter":
        return C.parameter(init=value, dtype=dtype, device=device)
    if operand.kind == "static":
        return C.input_variable(value.shape, dtype, needs_gradient=operand.gradient, dynamic_axes=[])
    declare = C.sequence.input_variable if operand.kind == "sequence" else C.input_variable
    return declare(value.shape[1:], dtype, needs_gradient=operand.gradient and not operand.sparse, is_sparse=operand.sparse)


def _data(operand: Operand, variable: Any, value: Values) -> Any:
    if not operand.sparse:
        return value
    if isinstance(value, list):
        return C.Value.create(variable, [_csr(sequence) for sequence in value])
    return C.Value(_csr(value))


def _csr(value: Any) -> Any:
    known = value.astype(computing_type(value.dtype), copy=False)  # SciPy has no types of 16 bits
    dense = known.reshape(-1, value.shape[-1])
    row_numbers, columns = np.nonzero(dense)
    starts = np.searchsorted(row_numbers, np.arange(len(dense) + 1))
    rows = csr_matrix_of(dense[row_numbers, columns], columns, starts, dense.shape[1])
    return C.NDArrayView.from_csr(rows, borrow=True, shape=value.shape)


def _dense(values: Values, output: Any) -> Values:
    """Values of a result as arrays; sparse ones of one static axis come as CSR matrices, for which types of 16 bits are float32."""
    if isinstance(values, list):
        return [_dense(value, output) for value in values]
    return values if isinstance(values, np.ndarray) else values.toarray().astype(output.dtype)


def _as_list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, tuple) else [np.asarray(values)]


def describe(function: Callable[..., Any], sample: Sample) -> str:
    """The call that a sample stands for, in one line: ``clip((3, 2), min_value=0)``."""
    operands = [_describe_operand(operand) for operand in sample.operands]
    attributes = [f"{name}={value!r}" for name, value in sample.attributes.items()]
    return f"{getattr(function, '__name__', function)}({', '.join(operands + attributes)})"


def _describe_operand(operand: Operand) -> str:
    shape = operand.shape.shape if isinstance(operand.shape, np.ndarray) else operand.shape
    kind = "" if operand.kind == "batch" else f"{operand.kind} "
    return f"{kind}{'sparse ' if operand.sparse else ''}{shape}"
