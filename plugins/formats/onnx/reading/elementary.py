"""Readers of operators that compute element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from .....core.common.dtypes import limits_of
from ....ops import arithmetic, comparison, elementary, identity, maximum, trigonometry
from .arrays import Array, elementwise, known, normal, reshape, truncated
from .importer import Operator
from .sizes import same

Reader = Callable[..., Array]


def unary(compute: Callable[..., Any], operator: Callable[..., Any]) -> Reader:
    """The reader of an operator of one operand."""

    def read(node: Operator, x: Array) -> Array:
        return elementwise(compute, operator, x)

    return read


def binary(compute: Callable[..., Any], operator: Callable[..., Any]) -> Reader:
    """The reader of an operator of two operands."""

    def read(node: Operator, a: Array, b: Array) -> Array:
        return elementwise(compute, operator, a, _lined_up(node, a, b), dtype=a.dtype)

    return read


def _lined_up(node: Operator, a: Array, b: Array) -> Array:
    """The second operand, before version 7 lined up with the axes of the first from one on."""
    if node.version >= 7 or not node.has("axis"):
        return b
    axis = normal(node.attribute("axis"), a.rank)
    return reshape(b, [*b.dims, *[1] * (a.rank - axis - b.rank)])


def compared(compute: Callable[..., Any], operator: Callable[..., Any]) -> Reader:
    """The reader of a comparison."""

    def read(node: Operator, a: Array, b: Array) -> Array:
        return elementwise(compute, operator, a, b, dtype=np.bool_)

    return read


def folded(compute: Callable[..., Any], operator: Callable[..., Any]) -> Reader:
    """The reader of an operator of any number of operands."""

    def read(node: Operator, *operands: Array) -> Array:
        return reduce(lambda a, b: elementwise(compute, operator, a, b), operands)

    return read


# ---- functions of one number ---------------------------------------------------------------------


def _sign(x: Any) -> Any:
    return arithmetic.minus(comparison.greater(x, 0), comparison.less(x, 0))


def _round_to_even(x: Any) -> Any:
    """Halves go to the even neighbour: what rounds up to an odd number has come from a half if it is half above."""
    up = elementary.round(x)
    half = comparison.equal(arithmetic.minus(up, x), 0.5)
    odd = comparison.not_equal(elementary.floor(arithmetic.element_times(up, 0.5)), arithmetic.element_times(up, 0.5))
    return arithmetic.minus(up, arithmetic.element_times(half, odd))


def _acosh(x: Any) -> Any:
    root = elementary.sqrt(arithmetic.minus(arithmetic.square(x), 1))
    return elementary.log(arithmetic.plus(x, root))


def _is_nan(x: Any) -> Any:
    return comparison.not_equal(x, x)


_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def _erf(x: Any) -> Any:
    """The error function, to 1.5e-7.

    Source: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 1964, 7.1.26.
    """
    size = arithmetic.abs(x)
    t = arithmetic.reciprocal(arithmetic.plus(arithmetic.element_times(size, 0.3275911), 1))
    series: Any = _ERF[-1]
    for factor in _ERF[-2::-1]:
        series = arithmetic.plus(arithmetic.element_times(series, t), factor)
    tail = arithmetic.element_times(series, t, elementary.exp(arithmetic.negate(arithmetic.square(x))))
    return arithmetic.element_times(_sign(x), arithmetic.minus(1, tail))


def _number_erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(np.asarray(x).dtype)


read_abs = unary(np.abs, arithmetic.abs)
read_acos = unary(np.arccos, trigonometry.acos)
read_acosh = unary(np.arccosh, _acosh)
read_asin = unary(np.arcsin, trigonometry.asin)
read_asinh = unary(np.arcsinh, trigonometry.asinh)
read_atan = unary(np.arctan, trigonometry.atan)
read_atanh = unary(np.arctanh, trigonometry.atanh)
read_ceil = unary(np.ceil, elementary.ceil)
read_cos = unary(np.cos, trigonometry.cos)
read_cosh = unary(np.cosh, trigonometry.cosh)
read_erf = unary(_number_erf, _erf)
read_exp = unary(np.exp, elementary.exp)
read_floor = unary(np.floor, elementary.floor)
read_log = unary(np.log, elementary.log)
read_neg = unary(np.negative, arithmetic.negate)
read_reciprocal = unary(np.reciprocal, arithmetic.reciprocal)
read_round = unary(np.round, _round_to_even)
read_sign = unary(np.sign, _sign)
read_sin = unary(np.sin, trigonometry.sin)
read_sinh = unary(np.sinh, trigonometry.sinh)
read_sqrt = unary(np.sqrt, elementary.sqrt)
read_tan = unary(np.tan, trigonometry.tan)


# ---- functions of several ------------------------------------------------------------------------

read_add = binary(np.add, arithmetic.plus)
read_sub = binary(np.subtract, arithmetic.minus)
read_mul = binary(np.multiply, arithmetic.element_times)
read_sum = folded(np.add, arithmetic.plus)
read_max = folded(np.maximum, maximum.element_max)
read_min = folded(np.minimum, maximum.element_min)


def read_mean(node: Operator, *operands: Array) -> Array:
    return read_sum(node, *operands) / len(operands)


def read_div(node: Operator, a: Array, b: Array) -> Array:
    """Whole numbers are divided without a rest, cut off towards 0."""
    b = _lined_up(node, a, b)
    if a.is_float:
        return elementwise(np.true_divide, arithmetic.element_divide, a, b)
    return elementwise(_whole_quotient, lambda x, y: truncated(arithmetic.element_divide(x, y)), a, b, dtype=a.dtype)


def _whole_quotient(a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype == object or b.dtype == object:
        return a // b
    quotient = np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64)) if a.dtype.kind == "i" else a // b
    return quotient * np.sign(a) * np.sign(b) if a.dtype.kind == "i" else quotient


def read_mod(node: Operator, a: Array, b: Array) -> Array:
    """The rest, with the sign of the divisor, or with ``fmod`` that of the dividend."""
    towards_zero = bool(node.attribute("fmod", 0))

    def rest(x: Any, y: Any) -> Any:
        quotient = arithmetic.element_divide(x, y)
        return arithmetic.minus(x, arithmetic.element_times(y, truncated(quotient) if towards_zero else elementary.floor(quotient)))

    return elementwise(np.fmod if towards_zero else np.mod, rest, a, b, dtype=a.dtype)


def read_pow(node: Operator, base: Array, exponent: Array) -> Array:
    if (
        exponent.is_known
        and not exponent.trainable
        and exponent.known.size == 1
        and float(exponent.numbers.reshape(-1)[0]) == 2
        and base.is_float
    ):
        return elementwise(np.square, arithmetic.square, base)
    return elementwise(np.power, arithmetic.pow, base, exponent, dtype=base.dtype)


# ---- comparisons and logic -----------------------------------------------------------------------


def _equal(a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype == object or b.dtype == object:
        return np.vectorize(same, otypes=[np.bool_])(a, b)
    return np.equal(a, b)


read_equal = compared(_equal, comparison.equal)
read_greater = compared(np.greater, comparison.greater)
read_greater_or_equal = compared(np.greater_equal, comparison.greater_equal)
read_less = compared(np.less, comparison.less)
read_less_or_equal = compared(np.less_equal, comparison.less_equal)
read_and = compared(np.logical_and, comparison.element_and)
read_or = compared(np.logical_or, comparison.element_or)
read_xor = compared(np.logical_xor, comparison.element_xor)


def read_not(node: Operator, x: Array) -> Array:
    return elementwise(np.logical_not, comparison.element_not, x, dtype=np.bool_)


def read_is_na_n(node: Operator, x: Array) -> Array:
    return elementwise(np.isnan, _is_nan, x, dtype=np.bool_)


def read_is_inf(node: Operator, x: Array) -> Array:
    up, down = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)
    largest = float(limits_of(x.dtype).max)
    signs = [sign for sign, wanted in ((1, up), (-1, down)) if wanted]
    if not signs:
        return elementwise(np.zeros_like, identity.zeros_like, x, dtype=np.bool_)
    found = [elementwise(np.greater, comparison.greater, x * sign, known(largest, x.dtype), dtype=np.bool_) for sign in signs]
    return reduce(lambda a, b: elementwise(np.logical_or, comparison.element_or, a, b, dtype=np.bool_), found)


def read_where(node: Operator, condition: Array, yes: Array, no: Array) -> Array:
    if condition.is_known and not (yes.is_known and no.is_known) and condition.known.size and condition.known.dtype != object:
        if condition.known.all() and condition.known.size == 1:
            return yes
        if not condition.known.any() and condition.known.size == 1:
            return no
    return select(condition, yes, no)


def select(condition: Array, yes: Array, no: Array) -> Array:
    """Elements of one array where a condition holds, and of another elsewhere."""
    return elementwise(_where, comparison.element_select, condition, yes, no)


def _where(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(np.asarray(condition, bool), yes, no)


def read_clip(node: Operator, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Bounds are attributes before version 11, operands from then on."""
    if node.version < 11:
        low = known(node.attribute("min"), x.dtype) if node.has("min") else None
        high = known(node.attribute("max"), x.dtype) if node.has("max") else None
    if low is not None:
        x = elementwise(np.maximum, maximum.element_max, x, low, dtype=x.dtype)
    return x if high is None else elementwise(np.minimum, maximum.element_min, x, high, dtype=x.dtype)
