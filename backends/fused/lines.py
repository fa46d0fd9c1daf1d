"""Translates the calls of a recurrence to lines of a tape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.extension.identity import ByClass, still_holds
from ...core.operators.op import Op
from ...core.operators.view import View
from ...core.run.binding import add
from ...core.run.recurrence import Call, DelayCopy
from ...core.types.context import Context
from . import opcodes as op
from .formulas import only_operation

IS_TRANSPOSED = ByClass({"cntk.plugins.ops.product:Times": False, "cntk.plugins.ops.product:TransposeTimes": True})
"""Products, and whether the rows of the right operand belong to columns of the result."""

JOINS = ByClass({"cntk.plugins.ops.slicing:Splice": True})
"""Operators that put operands side by side."""

WITH_NUMBER = {op.ADD: op.ADD_NUMBER, op.SUBTRACT: op.SUBTRACT_NUMBER, op.MULTIPLY: op.MULTIPLY_NUMBER}
OF_NUMBER = {op.ADD: op.ADD_NUMBER, op.SUBTRACT: op.SUBTRACT_FROM_NUMBER, op.MULTIPLY: op.MULTIPLY_NUMBER}
"""Operations in place of these where the second, or the first, operand has a single element."""


class Rows(NamedTuple):
    """An array as tapes see it: where its first row is, bytes from row to row (0 for one that is the same for all), elements of a row."""

    address: int
    stride: int
    size: int


NOTHING = Rows(0, 0, 0)


class Line(NamedTuple):
    """An operation z = f(x, y).

    Attributes:
        kind, z, x, y: the operation and its operands.
        rows: how many rows there are.
        dtype: element type of all operands.
        back: of a delay, how many steps earlier it looks.
        matrix: what a product multiplies by.
        source: the context of the operator whose operand the matrix is, and the operand's number; None for another matrix.
        term: what is added to a product.
    """

    kind: int
    z: Rows
    x: Rows
    y: Rows
    rows: int
    dtype: Any
    back: int = 0
    matrix: Any = None
    source: tuple[Context, int] | None = None
    term: Rows = NOTHING


class Unknown(Exception):
    """A call that tapes cannot do."""


def lines_of(call: Call | DelayCopy, is_fixed: Callable[[Any], bool]) -> list[Line]:
    """The lines of a call; none if tapes cannot do it.

    Args:
        call: the call.
        is_fixed: tells whether an array is the same at all steps, and has no rows.
    """
    writer = Writer(is_fixed)
    try:
        return list(writer.lines(call))
    except Unknown:
        return []


class Writer:
    """Writes lines; raises :class:`Unknown` for arrays that lines cannot refer to."""

    def __init__(self, is_fixed: Callable[[Any], bool]) -> None:
        self.is_fixed = is_fixed

    def lines(self, call: Call | DelayCopy) -> Iterator[Line]:
        """The lines of a call."""
        of = call.instruction.op
        if isinstance(call, DelayCopy):
            yield self.copy(call.z, call.x, op.ADD_TO if call.adds else op.COPY)._replace(back=call.back)
        elif call.method is np.copyto:
            z, x = call.arguments
            yield self.copy(z, x)
        elif call.method is add:
            _, z, x = call.arguments
            yield self.copy(z, x, op.ADD_TO)
        elif call.method is call.instruction.forward:
            context, out, *inputs = call.arguments
            yield from self.forward(of, context, out, inputs)
        elif call.method is call.instruction.backward:
            _, grad, grads, out, *kept = call.arguments
            yield from self.backward(of, grad, grads, out, kept)
        else:
            raise Unknown

    # ---- operators ----

    def forward(self, of: Op, context: Context, out: Any, inputs: Sequence[Any]) -> Iterator[Line]:
        """The lines of an operator's forward."""
        kind = type(of)
        operation = only_operation(of, len(inputs))
        if operation is not None:
            yield self.operation(operation, out, inputs)
        elif kind in IS_TRANSPOSED:
            yield self.product(out, inputs[0], self.matrix(of, out, inputs[0], inputs[1]))._replace(source=(context, 1))
        elif kind in JOINS:
            yield from (self.copy(part, x) for part, x in self.parts(out, inputs))
        elif isinstance(of, View) and of.is_slice and still_holds(kind, "view", "forward"):
            yield self.copy(out, of.view(inputs[0], out.shape))
        else:
            raise Unknown

    def backward(self, of: Op, grad: Any, grads: Sequence[Any], out: Any, kept: Sequence[Any]) -> Iterator[Line]:
        """The lines of an operator's backward."""
        wanted = [i for i, x in enumerate(grads) if x is not None]
        kind = type(of)
        operations = [(i, only_operation(of, len(kept), i)) for i in wanted]
        if operations and all(operation is not None for _, operation in operations):
            yield from (self.operation(operation, grads[i], (grad, out, *kept)) for i, operation in operations if operation is not None)
        elif kind in IS_TRANSPOSED and wanted == [0]:
            yield self.product(grads[0], grad, self.matrix(of, grad, grads[0], kept[1]).T)
        elif kind in JOINS:
            yield from (self.copy(grads[i], part) for i, (part, _) in enumerate(self.parts(grad, kept)) if i in wanted)
        else:
            raise Unknown

    # ---- lines ----

    def operation(self, operation: tuple[int, tuple[int, ...]], z: Any, arrays: Sequence[Any]) -> Line:
        """An operation on those of the arrays that lie at its places."""
        kind, places = operation
        x, *y = (arrays[place] for place in places)
        return self.arithmetic(kind, z, x, *y) if kind in WITH_NUMBER else self.line(kind, z, x, *y)

    def line(self, kind: int, z: Any, x: Any, y: Any = None) -> Line:
        """An operation on arrays whose rows have as many elements as the result's."""
        if self.is_fixed(z):
            raise Unknown
        to, first, second = (NOTHING if array is None else self.rows(array, z.dtype) for array in (z, x, y))
        if first.size != to.size or (second.size != to.size and y is not None):
            raise Unknown
        return Line(kind, to, first, second, len(z), z.dtype)

    def copy(self, z: Any, x: Any, kind: int = op.COPY) -> Line:
        """An operation on arrays of the same size."""
        return self.line(kind, z, x)

    def arithmetic(self, kind: int, z: Any, x: Any, y: Any) -> Line:
        """An operation in which one operand may have a single element."""
        sizes = [self.rows(array, z.dtype).size for array in (z, x, y)]
        if sizes[1] == 1 < sizes[0]:
            kind, x, y = OF_NUMBER[kind], y, x
        elif sizes[2] == 1 < sizes[0]:
            kind = WITH_NUMBER[kind]
        else:
            return self.line(kind, z, x, y)
        return self.line(kind, z, x)._replace(y=self.rows(y, z.dtype))

    def product(self, z: Any, x: Any, matrix: Any) -> Line:
        """A product of rows by a matrix."""
        if matrix.dtype != z.dtype or self.is_fixed(x) or self.is_fixed(z):
            raise Unknown
        return Line(op.PRODUCT, self.rows(z, z.dtype), self.rows(x, z.dtype), NOTHING, len(z), z.dtype, matrix=matrix)

    # ---- arrays ----

    def rows(self, array: Any, dtype: Any) -> Rows:
        """An array with the elements of each row side by side."""
        if type(array) is not np.ndarray or array.dtype != dtype or dtype not in (np.float32, np.float64):
            raise Unknown
        fixed = self.is_fixed(array)
        shape, strides = (array.shape, array.strides) if fixed else (array.shape[1:], array.strides[1:])
        size = 1
        for dim, stride in zip(reversed(shape), reversed(strides), strict=True):
            if dim != 1 and stride != size * array.itemsize:
                raise Unknown
            size *= dim
        return Rows(array.ctypes.data, 0 if fixed else array.strides[0], size)

    def matrix(self, of: Op, out: Any, left: Any, right: Any) -> Any:
        """The right operand of a product that sums over all of the left one's row."""
        summed, made = self.rows(left, out.dtype).size, self.rows(out, out.dtype).size
        if not self.is_fixed(right) or self.rows(right, out.dtype).size != summed * made:
            raise Unknown
        return right.reshape(made, summed).T if IS_TRANSPOSED[type(of)] else right.reshape(summed, made)

    def parts(self, joined: Any, arrays: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """The parts of vectors that were put side by side, with the arrays that are there."""
        if joined.ndim != 2 or any(array.ndim != 2 for array in arrays):
            raise Unknown
        start = 0
        for array in arrays:
            yield joined[:, start : start + array.shape[1]], array
            start += array.shape[1]
