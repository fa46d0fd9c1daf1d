"""Operations of tapes on elements: a line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.machine.language import carray, jittable
from . import opcodes as op
from .elementary import sigmoid, tanh
from .tile import pointer


def each(function: Callable[..., Any], by_number: bool = False) -> Callable[..., None]:
    """Applies a function one, z, x, y → z to the elements of rows, given 1 in their type; *by_number* with the first of y for all."""
    element = jittable(function)

    @jittable
    def apply(at: Any, like: Any) -> None:
        rows, size, z, z_stride, x, x_stride, y, y_stride = at
        one = like.dtype.type(1)
        for row in range(rows):
            a = carray(pointer(z + row * z_stride, like), size)
            b = carray(pointer(x + row * x_stride, like), size)
            c = carray(pointer(y + row * y_stride, like), size)
            if by_number:
                number = c[0]
                for i in range(size):
                    a[i] = element(one, a[i], b[i], number)
            else:
                for i in range(size):
                    a[i] = element(one, a[i], b[i], c[i])

    return apply


_copy = each(lambda one, z, x, y: x)
_add_to = each(lambda one, z, x, y: z + x)
_add = each(lambda one, z, x, y: x + y)
_subtract = each(lambda one, z, x, y: x - y)
_multiply = each(lambda one, z, x, y: x * y)
_negate = each(lambda one, z, x, y: -x)
_add_number = each(lambda one, z, x, y: x + y, by_number=True)
_subtract_number = each(lambda one, z, x, y: x - y, by_number=True)
_subtract_from_number = each(lambda one, z, x, y: y - x, by_number=True)
_multiply_number = each(lambda one, z, x, y: x * y, by_number=True)
_sigmoid = each(lambda one, z, x, y: sigmoid(x))
_sigmoid_gradient = each(lambda one, z, x, y: (one - y) * y * x)
_tanh = each(lambda one, z, x, y: tanh(x))
_tanh_gradient = each(lambda one, z, x, y: (one - y * y) * x)
_relu = each(lambda one, z, x, y: x if x > 0 or x != x else one - one)
_relu_gradient = each(lambda one, z, x, y: (one if y > 0 else one - one) * x)


@jittable
def compute(kind: int, at: Any, like: Any) -> None:
    """Do an operation.

    Args:
        kind: the operation.
        at: how many rows there are, and elements in each; addresses of result and operands, each with the bytes from one row to the next.
        like: an array of the common element type.
    """
    if kind == op.COPY:
        _copy(at, like)
    elif kind == op.ADD_TO:
        _add_to(at, like)
    elif kind == op.ADD:
        _add(at, like)
    elif kind == op.SUBTRACT:
        _subtract(at, like)
    elif kind == op.MULTIPLY:
        _multiply(at, like)
    elif kind == op.NEGATE:
        _negate(at, like)
    elif kind == op.ADD_NUMBER:
        _add_number(at, like)
    elif kind == op.SUBTRACT_NUMBER:
        _subtract_number(at, like)
    elif kind == op.SUBTRACT_FROM_NUMBER:
        _subtract_from_number(at, like)
    elif kind == op.MULTIPLY_NUMBER:
        _multiply_number(at, like)
    elif kind == op.SIGMOID:
        _sigmoid(at, like)
    elif kind == op.SIGMOID_GRADIENT:
        _sigmoid_gradient(at, like)
    elif kind == op.TANH:
        _tanh(at, like)
    elif kind == op.TANH_GRADIENT:
        _tanh_gradient(at, like)
    elif kind == op.RELU:
        _relu(at, like)
    elif kind == op.RELU_GRADIENT:
        _relu_gradient(at, like)
