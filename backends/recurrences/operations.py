"""Translation of a recurrence's calls to operations on rows: formulas, and products with matrices."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.common.shape import size_of
from ...core.extension.identity import still_holds
from ...core.formulas.derivatives import gradient_of
from ...core.formulas.formula import Symbol, Term, operands, states_formula, symbols_in, value_of
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import Op
from ...core.operators.view import View
from ...core.program.slots import Instruction
from ...core.run.binding import add
from ...core.run.recurrence import Call, DelayCopy, LoopSchedule
from ..fused.lines import IS_TRANSPOSED, JOINS


class Operand(NamedTuple):
    """An array, or some of its columns, as the operand of an operation.

    Attributes:
        array: the array.
        address: address of the first row.
        stride: elements between rows; 0 for an array without rows.
        width: elements of a row.
        shift: how many steps ahead its rows are, in the order in which steps run; negative for rows of earlier steps.
    """

    array: Any
    address: int
    stride: int
    width: int
    shift: int = 0

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return int(self.array.dtype.itemsize)


class Formula(NamedTuple):
    """An element-wise operation.

    Attributes:
        target: the operand that is written.
        term: the formula.
        reads: operands by symbol.
        exists: only rows of sequences that also have the step this many steps ahead are written; 0 for all rows of the step.
    """

    target: Operand
    term: Term
    reads: Mapping[Symbol, Operand]
    exists: int = 0


class Product(NamedTuple):
    """A product of rows and a matrix; each element of the result is the sum of *depth* terms.

    Attributes:
        target, left: the result and the rows.
        matrix: the matrix.
        depth: number of terms.
        by_term, by_column: strides of the matrix between terms and between columns, in elements.
    """

    target: Operand
    left: Operand
    matrix: Operand
    depth: int
    by_term: int
    by_column: int


Operation = Formula | Product


class Unknown(Exception):
    """Raised for a call that is not an operation on rows."""


class Reader:
    """Translates the calls of a schedule.

    Args:
        schedule: the schedule.
        dtypes: names of the element types that there are operations on.
        times: the kernel of products with matrices, which operations may do instead; other kernels are not passed over.
    """

    def __init__(self, schedule: LoopSchedule, dtypes: Container[Any], times: type) -> None:
        self._dtypes, self._passed_over = dtypes, (None, times)
        self._is_fixed, self._rising = schedule.is_fixed, schedule.rising
        self._xp = schedule.bound_loop.binding.backend.xp

    def operations(self, call: Call | DelayCopy) -> list[Operation]:
        """Return the operations of a call; an empty list if it cannot be translated."""
        try:
            return list(self._operations(call))
        except Unknown:
            return []

    def _operations(self, call: Call | DelayCopy) -> Iterator[Operation]:
        if isinstance(call, DelayCopy):
            yield self._delay(call)
        elif call.method is self._xp.copyto:
            z, x = call.arguments
            yield self._copy(z, x)
        elif call.method is add:
            _, z, x = call.arguments
            yield self._formula(z, lambda total, term: total + term, z, x)
        elif call.method is call.instruction.forward:
            _, out, *inputs = call.arguments
            yield from self._forward(call.instruction, out, inputs)
        elif call.method is call.instruction.backward:
            _, grad, grads, out, *kept = call.arguments
            yield from self._backward(call.instruction, grad, grads, out, kept)
        else:
            raise Unknown

    # ---- operators ----

    def _forward(self, instruction: Instruction, out: Any, inputs: Sequence[Any]) -> Iterator[Operation]:
        of: Any = instruction.op
        kind = type(of)
        if instruction.kernel not in self._passed_over:
            raise Unknown
        if has_formula(of):
            yield self._formula(out, lambda *symbols: value_of(of, symbols), *inputs)
        elif kind in IS_TRANSPOSED:
            yield self._product(out, inputs[0], self._matrix(of, out, *inputs))
        elif kind in JOINS:
            yield from (self._copy(part, x) for part, x in self._parts(out, inputs))
        elif isinstance(of, View) and of.is_slice and still_holds(kind, "view", "forward"):
            yield self._copy(out, of.view(inputs[0], out.shape))
        else:
            raise Unknown

    def _backward(self, instruction: Instruction, grad: Any, grads: Sequence[Any], out: Any, kept: Sequence[Any]) -> Iterator[Operation]:
        of: Any = instruction.op
        kind, wanted = type(of), [i for i, x in enumerate(grads) if x is not None]
        if instruction.kernel not in self._passed_over:
            raise Unknown
        if has_formula(of):
            for i in wanted:

                def gradient(dy: Symbol, y: Symbol, *inputs: Symbol, i: int = i) -> Term:
                    return gradient_of(of, i, dy, y, inputs)

                yield self._formula(grads[i], gradient, grad, out, *kept)
        elif kind in IS_TRANSPOSED and wanted == [0]:
            yield self._product(grads[0], grad, self._matrix(of, grad, grads[0], kept[1]).T)
        elif kind in JOINS:
            yield from (self._copy(grads[i], part) for i, (part, _) in enumerate(self._parts(grad, kept)) if i in wanted)
        else:
            raise Unknown

    # ---- operations ----

    def _delay(self, call: DelayCopy) -> Formula:
        later = -call.back if self._rising else call.back
        x, z = self._rows(call.x), self._rows(call.z)
        symbol, total = operands(2)
        if not call.adds:
            made = Formula(z, symbol, {symbol: x._replace(shift=later)}, later)
        else:
            there = z._replace(shift=later)
            made = Formula(there, total + symbol, {total: there, symbol: x}, later)
        return self._checked(made)

    def _copy(self, z: Any, x: Any) -> Formula:
        return self._formula(z, lambda symbol: symbol, x)

    def _formula(self, z: Any, formula: Callable[..., Term], *arrays: Any) -> Formula:
        symbols = operands(len(arrays))
        term = formula(*symbols)
        used = {id(symbol) for symbol in symbols_in(term)}
        given = [(symbol, array) for symbol, array in zip(symbols, arrays, strict=True) if id(symbol) in used]
        if any(array is None for _, array in given):
            raise Unknown
        return self._checked(Formula(self._rows(z), term, {symbol: self._operand(array, z.dtype) for symbol, array in given}))

    def _checked(self, formula: Formula) -> Formula:
        """Return the formula; each operand must have one element or as many as the result."""
        wide = [read for read in formula.reads.values() if read.width != 1]
        if any(read.width != formula.target.width for read in wide):
            raise Unknown
        return formula

    def _product(self, z: Any, x: Any, matrix: Any) -> Product:
        left, target = self._rows(x), self._rows(z)
        if not matrix.dtype == x.dtype == z.dtype:
            raise Unknown
        by_term, by_column = (stride // matrix.dtype.itemsize for stride in matrix.strides)
        flat = Operand(matrix, address_of(matrix), 0, matrix.size)
        return Product(target, left, flat, len(matrix), by_term, by_column)

    # ---- arrays ----

    def _rows(self, array: Any) -> Operand:
        """Return the operand for an array with rows."""
        found = self._operand(array, getattr(array, "dtype", None))
        if not found.stride:
            raise Unknown
        return found

    def _operand(self, array: Any, dtype: Any) -> Operand:
        """An array with the elements of each row side by side."""
        if not isinstance(array, self._xp.ndarray) or array.dtype != dtype or dtype.name not in self._dtypes:
            raise Unknown
        fixed = self._is_fixed(array)
        shape, strides = (array.shape, array.strides) if fixed else (array.shape[1:], array.strides[1:])
        size = 1
        for dim, stride in zip(reversed(shape), reversed(strides), strict=True):
            if dim != 1 and stride != size * array.itemsize:
                raise Unknown
            size *= dim
        if not size or (not fixed and (array.strides[0] < size * array.itemsize or array.strides[0] % array.itemsize)):
            raise Unknown
        return Operand(array, address_of(array), 0 if fixed else array.strides[0] // array.itemsize, size)

    def _matrix(self, of: Op, out: Any, left: Any, right: Any) -> Any:
        """Return the right operand of a product that sums over whole rows of the left one."""
        summed, made = self._rows(left).width, self._rows(out).width
        if not self._is_fixed(right) or self._operand(right, out.dtype).width != summed * made:
            raise Unknown
        return right.reshape(made, summed).T if IS_TRANSPOSED[type(of)] else right.reshape(summed, made)

    def _parts(self, joined: Any, arrays: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Return the parts of concatenated vectors that have an array, each with it."""
        if joined.ndim != 2 or any(array is None or array.ndim != 2 for array in arrays):
            raise Unknown
        start = 0
        for array in arrays:
            yield joined[:, start : start + array.shape[1]], array
            start += array.shape[1]


def address_of(array: Any) -> int:
    """Where an array begins, in the memory of a GPU or of the host."""
    data = array.data
    return int(data.ptr if hasattr(data, "ptr") else array.ctypes.data)


def has_formula(of: Op) -> bool:
    """Whether an operator is described by a formula, and changes of its attributes can be detected by comparison."""
    return (
        isinstance(of, Elementwise)
        and states_formula(type(of))
        and all(isinstance(getattr(of, name), Hashable) for name in of._attribute_names)
    )


def multiplications(operations: Sequence[Operation]) -> int:
    """Return the number of multiplications per row."""
    return sum(size_of(one.matrix.array.shape) for one in operations if isinstance(one, Product))


def dtype_of(operations: Sequence[Operation]) -> str:
    """Return the element type of operations; empty if there are none."""
    return np.dtype(operations[0].target.array.dtype).name if operations else ""
