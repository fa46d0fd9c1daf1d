"""Trials: a sample of an operator made concrete, with variables, data and a function to evaluate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cntk as C
from cntk.core.device import DeviceDescriptor
from cntk.core.op import Operand, Sample
from cntk.core.shape import as_shape

ROWS = 3


class Trial:
    """An operator applied to the operands of one sample, with values for them.

    Args:
        function: the public operator function.
        sample: how to call it.
        dtype: element type of all operands.
        device: where to compute; the default device where None.
        rows: number of samples in the minibatch.

    Attributes:
        result: the Function.
        variables: the variable of each operand.
        values: the array of each operand, dense; a batch operand's has *rows* rows.
    """

    def __init__(
        self, function: Callable[..., Any], sample: Sample, dtype: Any, device: DeviceDescriptor | None = None, rows: int = ROWS
    ) -> None:
        self.sample, self.device, self.rows = sample, device, rows
        generator = np.random.default_rng(1)
        self.values = [_draw(operand, generator, rows).astype(dtype) for operand in sample.operands]
        self.variables = [_variable(operand, value, dtype, device) for operand, value in zip(sample.operands, self.values, strict=True)]
        self.result = sample.build(function, self.variables)
        self.assign(self.values)

    def assign(self, values: list[Any]) -> None:
        """Give the operands other values of the same shapes."""
        self.values = [value.astype(variable.dtype) for value, variable in zip(values, self.variables, strict=True)]
        for operand, variable, value in self._operands():
            if operand.kind == "parameter":
                variable.value = value

    def feed(self, rows: slice = slice(None)) -> dict[Any, Any]:
        """What ``eval`` wants for some rows of the minibatch: data by variable, sparse where the operand is."""
        return {
            variable: _data(operand, value[rows] if operand.kind == "batch" else value)
            for operand, variable, value in self._operands()
            if operand.kind != "parameter"
        }

    def evaluate(self, rows: slice = slice(None)) -> list[Any]:
        """Values of all results for some rows of the minibatch, not in training."""
        found = self.result.eval(self.feed(rows), device=self.device)
        return [found[output] for output in self.result.outputs] if isinstance(found, dict) else [found]

    def expected(self) -> list[Any] | None:
        """What the results should be according to the sample, or None where it does not say."""
        if self.sample.expected is None:
            return None
        values = [value.astype(np.float64) for value in self.values]
        if not any(operand.kind == "batch" for operand in self.sample.operands):
            return _as_list(self.sample.expected(*values))
        by_row = [_as_list(self.sample.expected(*self._row(values, row))) for row in range(self.rows)]
        return [np.stack(parts) for parts in zip(*by_row, strict=True)]

    def _row(self, values: list[Any], row: int) -> list[Any]:
        return [value[row] if operand.kind == "batch" else value for operand, value in zip(self.sample.operands, values, strict=True)]

    def _operands(self) -> zip[tuple[Operand, Any, Any]]:
        return zip(self.sample.operands, self.variables, self.values, strict=True)


def _draw(operand: Operand, generator: np.random.Generator, rows: int) -> Any:
    """Values for an operand, in double precision."""
    leading = (rows,) if operand.kind == "batch" else ()
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
    return C.input_variable(value.shape[1:], dtype, needs_gradient=operand.gradient and not operand.sparse, is_sparse=operand.sparse)


def _data(operand: Operand, value: Any) -> Any:
    if not operand.sparse:
        return value
    from scipy.sparse import csr_matrix

    rows = csr_matrix(value.reshape(-1, value.shape[-1]))
    return C.Value(C.NDArrayView.from_csr(rows, borrow=True, shape=value.shape))


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
