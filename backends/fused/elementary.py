"""Logistic function and hyperbolic tangent in plain arithmetic, which LLVM turns into vector instructions.

A library's functions take one number at a time.  These are within a few units in the last place of the true values, in either type.

Source: S. L. Moshier, *Cephes Mathematical Library*: ``exp`` and ``tanh``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .language import helper, means

SATURATED = 80
"""From here on both functions are 1, and the exponential not yet infinite."""

Function = Callable[[Any], Any]


def sigmoid(x: Any) -> Any:
    """The logistic function, exact far into the left tail; there in compiled code."""
    raise NotImplementedError("sigmoid is called from compiled code only")


def tanh(x: Any) -> Any:
    """The hyperbolic tangent; there in compiled code."""
    raise NotImplementedError("tanh is called from compiled code only")


@means(sigmoid)
def _sigmoid_of(x: Any) -> Function:
    return _SINGLE[0] if x.bitwidth == 32 else _DOUBLE[0]


@means(tanh)
def _tanh_of(x: Any) -> Function:
    return _SINGLE[1] if x.bitwidth == 32 else _DOUBLE[1]


def _functions(real: Any, whole: Any, digits: int, least: float) -> tuple[Function, Function]:
    """Both functions in a type.

    Args:
        real, whole: the type, and integers of its size.
        digits: bits of its mantissa.
        least: the exponential of less is taken for that of this.
    """
    to_two, high, low = (real(c) for c in (1.44269504088896341, 0.693145751953125, 1.42860682030941723212e-6))
    p0, p1, p2 = (real(c) for c in (1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1))
    q0, q1, q2 = (real(c) for c in (3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1))
    r0, r1, r2 = (real(c) for c in (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3))
    s0, s1, s2 = (real(c) for c in (1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3))
    one, two, half, some, most, fewest = (real(c) for c in (1, 2, 0.5, 0.625, SATURATED, least))
    bias, shift = whole(np.finfo(real).maxexp - 1), whole(digits)

    @helper
    def exp(x: Any) -> Any:
        x = most if x > most else x
        x = fewest if x < fewest else x
        power = np.floor(x * to_two + half)
        x -= power * high
        x -= power * low
        square = x * x
        odd = x * ((p0 * square + p1) * square + p2)
        even = ((q0 * square + q1) * square + q2) * square + two
        return (one + two * (odd / (even - odd))) * whole((whole(power) + bias) << shift).view(real)

    def sigmoid(x: Any) -> Any:
        e = exp(x)
        return e / (e + one)

    def tanh(x: Any) -> Any:
        size = abs(x)
        far = one - two / (exp(size + size) + one)
        square = x * x
        near = ((r0 * square + r1) * square + r2) / (((square + s0) * square + s1) * square + s2)
        near = x * square * near + x
        return near if size < some else (-far if x < 0 else far)

    return sigmoid, tanh


_SINGLE = _functions(np.float32, np.int32, 23, -87.0)
_DOUBLE = _functions(np.float64, np.int64, 52, -708.0)
