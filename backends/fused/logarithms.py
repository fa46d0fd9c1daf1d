"""Logarithms, and the exponential less 1, in plain arithmetic, which LLVM turns into vector instructions.

They are within a few units in the last place of the true values, in either type.

Source: S. L. Moshier, *Cephes Mathematical Library*: ``exp`` and ``log``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.machine.language import jittable, overload_for
from .exponential import EVEN, HIGH, LOW, ODD, TO_TWO

Function = Callable[[Any], Any]


def expm1(x: Any) -> Any:
    """The exponential less 1, exact near 0; callable from compiled code only."""
    raise NotImplementedError("expm1 is called from compiled code only")


def log(x: Any) -> Any:
    """The natural logarithm of what is positive and not subnormal; callable from compiled code only."""
    raise NotImplementedError("log is called from compiled code only")


def log1p(x: Any) -> Any:
    """The natural logarithm of 1 more than what is between 0 and 1, exact near 0; callable from compiled code only."""
    raise NotImplementedError("log1p is called from compiled code only")


@overload_for(expm1)
def _expm1_of(x: Any) -> Function:
    return _SINGLE[0] if x.bitwidth == 32 else _DOUBLE[0]


@overload_for(log)
def _log_of(x: Any) -> Function:
    return _SINGLE[1] if x.bitwidth == 32 else _DOUBLE[1]


@overload_for(log1p)
def _log1p_of(x: Any) -> Function:
    return _SINGLE[2] if x.bitwidth == 32 else _DOUBLE[2]


def _exponential_less_one(real: Any, whole: Any, digits: int, least: float, most: float) -> Function:
    """The exponential less 1.

    Args:
        real, whole: the type, and integers of its size.
        digits: bits of its mantissa.
        least, most: from here on it is -1, or infinite.
    """
    to_two, high, low = map(real, (TO_TWO, HIGH, LOW))
    p0, p1, p2 = map(real, ODD)
    q0, q1, q2 = map(real, EVEN)
    one, two, half, bottom, top = (real(c) for c in (1, 2, 0.5, least, most))
    bias, shift, single = whole(np.finfo(real).maxexp - 1), whole(digits), whole(1)

    @jittable
    def power_of_two(power: Any) -> Any:
        return whole((power + bias) << shift).view(real)

    def expm1(x: Any) -> Any:
        x = top if x > top else x
        x = bottom if x < bottom else x
        power = np.floor(x * to_two + half)
        x -= power * high
        x -= power * low
        square = x * x
        odd = x * ((p0 * square + p1) * square + p2)
        even = ((q0 * square + q1) * square + q2) * square + two
        rest = two * (odd / (even - odd))
        power = whole(power)
        first = power >> single  # the power of 2 alone may be too large for the type
        lower, higher = power_of_two(whole(first)), power_of_two(whole(power - first))
        return (rest * lower + (lower - one / higher)) * higher

    return expm1


def _logarithms(real: Any, whole: Any, digits: int) -> tuple[Function, Function]:
    """The logarithm, and that of 1 more."""
    p0, p1, p2 = (real(c) for c in (1.01875663804580931796e-4, 4.97494994976747001425e-1, 4.70579119878881725854))
    p3, p4, p5 = (real(c) for c in (1.44989225341610930846e1, 1.79368678507819816313e1, 7.70838733755885391666))
    q0, q1, q2 = (real(c) for c in (1.12873587189167450590e1, 4.52279145837532221105e1, 8.29875266912776603211e1))
    q3, q4 = (real(c) for c in (7.11544750618563894466e1, 2.31251620126765340583e1))
    high, low = real(0.693359375), real(-2.121944400546905827679e-4)
    one, half, root, infinity = (real(c) for c in (1, 0.5, 1.41421356237309504880, np.inf))
    bias, shift, fraction = whole(np.finfo(real).maxexp - 1), whole(digits), whole((1 << digits) - 1)
    bits_of_one = whole(np.array(1, real).view(whole)[()])

    @jittable
    def log(x: Any) -> Any:
        bits = real(x).view(whole)
        power = real(whole(bits >> shift) - bias)
        part = whole((bits & fraction) | bits_of_one).view(real)
        is_large = part > root
        part = (part * half if is_large else part) - one
        power = power + one if is_large else power
        square = part * part
        above = ((((p0 * part + p1) * part + p2) * part + p3) * part + p4) * part + p5
        below = ((((part + q0) * part + q1) * part + q2) * part + q3) * part + q4
        correction = part * (square * above / below) + power * low - half * square
        return part + correction + power * high if x < infinity else x

    def log1p(x: Any) -> Any:
        more = one + x
        return log(more) + (x - (more - one)) / more

    return log, log1p


_SINGLE = (_exponential_less_one(np.float32, np.int32, 23, -20.0, 89.0), *_logarithms(np.float32, np.int32, 23))
_DOUBLE = (_exponential_less_one(np.float64, np.int64, 52, -40.0, 710.0), *_logarithms(np.float64, np.int64, 52))
