"""Operations of tapes on elements: a line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import opcodes as op
from .elementary import sigmoid, tanh
from .language import carray, helper
from .tile import pointer


def _each(function: Callable[..., Any], by_number: bool = False) -> Callable[..., None]:
    """Applies a function one, z, x, y → z to the elements of rows, given 1 in their type; *by_number* with the first of y for all."""
    element = helper(function)

    @helper
    def apply(rows: int, size: int, z: int, z_stride: int, x: int, x_stride: int, y: int, y_stride: int, like: Any) -> None:
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


_copy = _each(lambda one, z, x, y: x)
_add_to = _each(lambda one, z, x, y: z + x)
_add = _each(lambda one, z, x, y: x + y)
_subtract = _each(lambda one, z, x, y: x - y)
_multiply = _each(lambda one, z, x, y: x * y)
_negate = _each(lambda one, z, x, y: -x)
_add_number = _each(lambda one, z, x, y: x + y, by_number=True)
_subtract_number = _each(lambda one, z, x, y: x - y, by_number=True)
_subtract_from_number = _each(lambda one, z, x, y: y - x, by_number=True)
_multiply_number = _each(lambda one, z, x, y: x * y, by_number=True)
_sigmoid = _each(lambda one, z, x, y: sigmoid(x))
_sigmoid_gradient = _each(lambda one, z, x, y: (one - y) * y * x)
_tanh = _each(lambda one, z, x, y: tanh(x))
_tanh_gradient = _each(lambda one, z, x, y: (one - y * y) * x)
_relu = _each(lambda one, z, x, y: x if x > 0 or x != x else one - one)
_relu_gradient = _each(lambda one, z, x, y: (one if y > 0 else one - one) * x)


@helper
def compute(
    kind: int, rows: int, size: int, z: int, z_stride: int, x: int, x_stride: int, y: int, y_stride: int, like: Any
) -> None:  # fmt: skip
    """Do an operation.

    Args:
        kind: the operation.
        rows, size: how many rows there are, and elements in each.
        z, x, y: addresses of result and operands, each with the bytes from one row to the next.
        like: an array of the type that all is in.
    """
    if kind == op.COPY:
        _copy(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.ADD_TO:
        _add_to(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.ADD:
        _add(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.SUBTRACT:
        _subtract(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.MULTIPLY:
        _multiply(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.NEGATE:
        _negate(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.ADD_NUMBER:
        _add_number(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.SUBTRACT_NUMBER:
        _subtract_number(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.SUBTRACT_FROM_NUMBER:
        _subtract_from_number(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.MULTIPLY_NUMBER:
        _multiply_number(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.SIGMOID:
        _sigmoid(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.SIGMOID_GRADIENT:
        _sigmoid_gradient(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.TANH:
        _tanh(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.TANH_GRADIENT:
        _tanh_gradient(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.RELU:
        _relu(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
    elif kind == op.RELU_GRADIENT:
        _relu_gradient(rows, size, z, z_stride, x, x_stride, y, y_stride, like)
