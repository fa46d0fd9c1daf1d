"""Readers of operators of quantised numbers: whole numbers q that stand for ``(q - zero point) * scale``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ops import maximum
from .arrays import Array, Unsupported, cast, elementwise, known, matmul, normal, reshape
from .elementary import read_round
from .importer import Operator
from .reductions import max_over, min_over


def read_quantize_linear(node: Operator, x: Array, scale: Array, zero: Array | None = None) -> Array:
    kind = np.dtype(np.uint8) if zero is None else zero.dtype
    if node.attribute("output_dtype", 0):
        kind = _type(node.attribute("output_dtype"))
    axis = _axis(node, x)
    return _quantised(node, cast(x, scale.dtype) / _along(scale, axis, x), _along(zero, axis, x), kind)


def read_dequantize_linear(node: Operator, x: Array, scale: Array, zero: Array | None = None) -> Array:
    axis = _axis(node, x)
    return _shifted(x, _along(zero, axis, x), scale.dtype) * _along(scale, axis, x)


def read_dynamic_quantize_linear(node: Operator, x: Array) -> list[Array]:
    """Numbers from 0 to 255, for the range of the elements and 0."""
    axes, nothing = list(range(x.rank)), known(np.zeros((), x.dtype))
    low = reshape(elementwise(np.minimum, maximum.element_min, min_over(x, axes), nothing), [])
    high = reshape(elementwise(np.maximum, maximum.element_max, max_over(x, axes), nothing), [])
    scale = (high - low) / 255.0
    zero = _quantised(node, -low / scale, None, np.dtype(np.uint8))
    return [_quantised(node, x / scale, zero, np.dtype(np.uint8)), scale, zero]


def read_mat_mul_integer(node: Operator, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
    return _whole(matmul(_shifted(a, _rows(a_zero)), _shifted(b, b_zero)), np.int32)


def read_q_linear_mat_mul(
    node: Operator, a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array, scale: Array, zero: Array
) -> Array:
    total = matmul(_shifted(a, _rows(a_zero)), _shifted(b, b_zero))
    factor = cast(_rows(a_scale), np.float64) * cast(b_scale, np.float64) / cast(_rows(scale), np.float64)
    return _quantised(node, total * factor, _rows(zero), zero.dtype)


def read_conv_integer(node: Operator, x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None) -> Array:
    return _whole(_convolved(node, x, w, x_zero, w_zero), np.int32)


def read_q_linear_conv(
    node: Operator,
    x: Array,
    x_scale: Array,
    x_zero: Array,
    w: Array,
    w_scale: Array,
    w_zero: Array,
    scale: Array,
    zero: Array,
    bias: Array | None = None,
) -> Array:
    total = _convolved(node, x, w, x_zero, w_zero)
    if bias is not None:
        total = total + _along(cast(bias, np.float64), 1, x)
    factor = cast(x_scale, np.float64) * cast(_along(w_scale, 1, x), np.float64) / cast(scale, np.float64)
    return _quantised(node, total * factor, zero, zero.dtype)


def _convolved(node: Operator, x: Array, w: Array, x_zero: Array | None, w_zero: Array | None) -> Array:
    from .windows import read_conv

    return read_conv(node, _shifted(x, x_zero), _shifted(w, _along(w_zero, 0, w)))


def _shifted(x: Array, zero: Array | None, dtype: Any = np.float64) -> Array:
    """Quantised numbers less their zero point; sums of products of them are exact in float64."""
    return cast(x, dtype) if zero is None else cast(x, dtype) - cast(zero, dtype)


def _quantised(node: Operator, x: Array, zero: Array | None, kind: Any) -> Array:
    """The nearest whole number, moved by the zero point, within what its type holds."""
    moved = read_round(node, x) if zero is None else read_round(node, x) + cast(zero, x.dtype)
    if kind.kind not in "iu" or kind.itemsize > 2:
        raise Unsupported(f"quantisation to {kind.name}")
    low, high = (known(np.array(bound, x.dtype)) for bound in (np.iinfo(kind).min, np.iinfo(kind).max))
    above = elementwise(np.maximum, maximum.element_max, moved, low, dtype=x.dtype)
    return _whole(elementwise(np.minimum, maximum.element_min, above, high, dtype=x.dtype), kind)


def _whole(x: Array, kind: Any) -> Array:
    """Floats without fractions as whole numbers of a type."""
    return cast(x, kind) if x.is_known else Array(x.dims, kind, variable=x.held(), batch=x.batch)


def _type(code: int) -> Any:
    from ..tensors import NAMES, TYPES

    if code not in TYPES:
        raise Unsupported(f"quantisation to {NAMES.get(code, code)}")
    return np.dtype(TYPES[code])


def _axis(node: Operator, x: Array) -> int:
    if node.attribute("block_size", 0):
        raise Unsupported(f"quantisation in blocks of {node.attribute('block_size')}")
    return normal(node.attribute("axis", 1), x.rank) if x.rank > 1 else 0


def _along(numbers: Any, axis: int, x: Array) -> Any:
    """A number, or one for each place along an axis of *x*."""
    if numbers is None or not numbers.rank:
        return numbers
    if numbers.dims == (1,):
        return reshape(numbers, [])
    return reshape(numbers, [*[1] * axis, *numbers.dims, *[1] * (x.rank - axis - 1)])


def _rows(numbers: Any) -> Any:
    """A number, or one for each row of a matrix."""
    return numbers if numbers is None or not numbers.rank or numbers.rank > 1 else reshape(numbers, [*numbers.dims, 1])
