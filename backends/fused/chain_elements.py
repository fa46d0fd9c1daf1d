"""Operations of chains on elements: a line each, beside those of all tapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import carray, jittable
from . import opcodes as op
from .elements import compute, each
from .exponential import exp
from .logarithms import expm1, log, log1p
from .tile import pointer

_divide = each(lambda one, z, x, y: x / y if y != 0 else x * (one - one))
_divide_number = each(lambda one, z, x, y: y / x if x != 0 else y * (one - one), by_number=True)
_divide_by_number = each(lambda one, z, x, y: x / y if y != 0 else x * (one - one), by_number=True)
_quotient = each(lambda one, z, x, y: x / y)
_maximum = each(lambda one, z, x, y: x if x >= y or x != x else y)
_maximum_number = each(lambda one, z, x, y: x if x >= y or x != x else y, by_number=True)
_minimum = each(lambda one, z, x, y: x if x <= y or x != x else y)
_minimum_number = each(lambda one, z, x, y: x if x <= y or x != x else y, by_number=True)
_greater = each(lambda one, z, x, y: one if x > y else one - one)
_greater_number = each(lambda one, z, x, y: one if x > y else one - one, by_number=True)
_less_number = each(lambda one, z, x, y: one if x < y else one - one, by_number=True)
_at_least = each(lambda one, z, x, y: one if x >= y else one - one)
_at_least_number = each(lambda one, z, x, y: one if x >= y else one - one, by_number=True)
_at_most_number = each(lambda one, z, x, y: one if x <= y else one - one, by_number=True)
_equal = each(lambda one, z, x, y: one if x == y else one - one)
_equal_number = each(lambda one, z, x, y: one if x == y else one - one, by_number=True)
_slope = each(lambda one, z, x, y: (y if x < 0 else y * (one - one)) + (one if x >= 0 else one - one))
_slope_number = each(lambda one, z, x, y: (y if x < 0 else y * (one - one)) + (one if x >= 0 else one - one), by_number=True)
_where = each(lambda one, z, x, y: x if y != 0 else -(one - one))
_where_number = each(lambda one, z, x, y: x if y != 0 else -(one - one), by_number=True)
_where_not = each(lambda one, z, x, y: x if y == 0 else -(one - one))
_where_not_number = each(lambda one, z, x, y: x if y == 0 else -(one - one), by_number=True)
_exp = each(lambda one, z, x, y: exp(x))
_expm1 = each(lambda one, z, x, y: expm1(x))
_log = each(lambda one, z, x, y: log(x) if x > 0 or x != x else -one / (one - one))
_log1p = each(lambda one, z, x, y: log1p(x))
_sqrt = each(lambda one, z, x, y: np.sqrt(x if x > 0 or x != x else one - one))
_abs = each(lambda one, z, x, y: abs(x))
_sign = each(lambda one, z, x, y: one if x > 0 else (-one if x < 0 else x * (one - one)))
_floor = each(lambda one, z, x, y: np.floor(x))
_fill = each(lambda one, z, x, y: y, by_number=True)


@jittable(fastmath={"reassoc"})
def _row_sum(at: Any, like: Any) -> None:
    """The sum of each row, in lanes; *size* is that of x."""
    rows, size, z, z_stride, x, x_stride, _, _ = at
    for row in range(rows):
        b = carray(pointer(x + row * x_stride, like), size)
        total = like.dtype.type(0)
        for i in range(size):
            total += b[i]
        carray(pointer(z + row * z_stride, like), 1)[0] = total


@jittable
def compute_any(kind: int, at: Any, like: Any) -> None:
    """Do an operation, as :func:`~cntk.backends.fused.elements.compute`, of any kind."""
    if kind < op.PRODUCT:
        compute(kind, at, like)
    elif kind == op.DIVIDE:
        _divide(at, like)
    elif kind == op.DIVIDE_NUMBER:
        _divide_number(at, like)
    elif kind == op.DIVIDE_BY_NUMBER:
        _divide_by_number(at, like)
    elif kind == op.QUOTIENT:
        _quotient(at, like)
    elif kind == op.MAXIMUM:
        _maximum(at, like)
    elif kind == op.MAXIMUM_NUMBER:
        _maximum_number(at, like)
    elif kind == op.MINIMUM:
        _minimum(at, like)
    elif kind == op.MINIMUM_NUMBER:
        _minimum_number(at, like)
    elif kind == op.ROW_SUM:
        _row_sum(at, like)
    elif kind == op.FILL:
        _fill(at, like)
    elif kind < op.SLOPE:
        _compare(kind, at, like)
    elif kind < op.EXP:
        _choose(kind, at, like)
    else:
        _transform(kind, at, like)


@jittable
def _compare(kind: int, at: Any, like: Any) -> None:
    if kind == op.GREATER:
        _greater(at, like)
    elif kind == op.GREATER_NUMBER:
        _greater_number(at, like)
    elif kind == op.LESS_NUMBER:
        _less_number(at, like)
    elif kind == op.AT_LEAST:
        _at_least(at, like)
    elif kind == op.AT_LEAST_NUMBER:
        _at_least_number(at, like)
    elif kind == op.AT_MOST_NUMBER:
        _at_most_number(at, like)
    elif kind == op.EQUAL:
        _equal(at, like)
    elif kind == op.EQUAL_NUMBER:
        _equal_number(at, like)


@jittable
def _choose(kind: int, at: Any, like: Any) -> None:
    if kind == op.SLOPE:
        _slope(at, like)
    elif kind == op.SLOPE_NUMBER:
        _slope_number(at, like)
    elif kind == op.WHERE:
        _where(at, like)
    elif kind == op.WHERE_NUMBER:
        _where_number(at, like)
    elif kind == op.WHERE_NOT:
        _where_not(at, like)
    elif kind == op.WHERE_NOT_NUMBER:
        _where_not_number(at, like)


@jittable
def _transform(kind: int, at: Any, like: Any) -> None:
    if kind == op.EXP:
        _exp(at, like)
    elif kind == op.EXPM1:
        _expm1(at, like)
    elif kind == op.LOG:
        _log(at, like)
    elif kind == op.LOG1P:
        _log1p(at, like)
    elif kind == op.SQRT:
        _sqrt(at, like)
    elif kind == op.ABS:
        _abs(at, like)
    elif kind == op.SIGN:
        _sign(at, like)
    elif kind == op.FLOOR:
        _floor(at, like)
