"""The exponential in plain arithmetic, which LLVM turns into vector instructions.

It is within two units in the last place of the true value.  It treats infinities and NaN as a library does, but
results that are too small for a normal number are 0.

Source: S. L. Moshier, *Cephes Mathematical Library*: ``exp`` and ``expf``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.machine.language import jittable, kind_of, overload_for

Function = Callable[[Any], Any]

CONTRACT = {"contract"}
"""Allows the compiler to multiply and add in one instruction."""

TO_TWO, HIGH, LOW = 1.44269504088896341, 0.693145751953125, 1.42860682030941723212e-6
"""1 / log(2), and log(2) in two parts, the first of which has few digits."""

ODD = 1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1
EVEN = 3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1
"""Terms of polynomials in x², the odd and the even part of a fraction that comes near the exponential."""


def exp(x: Any) -> Any:
    """The exponential of a number."""
    return _exp_of(kind_of(x))(x)


@overload_for(exp, fastmath=CONTRACT)
def _exp_of(x: Any) -> Function:
    return _SINGLE if x.bitwidth == 32 else _DOUBLE


def _function(real: Any, whole: Any, near: Function) -> Function:
    """The exponential in a type.

    Args:
        real, whole: the type, and integers of its size.
        near: the exponential of what is no further from 0 than log(2) / 2.
    """
    limits = np.finfo(real)
    to_two, high, low = map(real, (TO_TWO, HIGH, LOW))
    most, least = np.nextafter(np.log(limits.max), real(0)), real((limits.minexp + 1) * np.log(2))
    rounder, digits, zero, infinity = real(1.5 * 2.0**limits.nmant), whole(limits.nmant), real(0), real(np.inf)

    @jittable(fastmath=CONTRACT)
    def exp(x: Any) -> Any:
        moved = x * to_two + rounder  # its last digits are a whole number
        power = moved - rounder
        exponent = real(moved).view(whole) << digits
        result = whole(real(near(x - power * high - power * low)).view(whole) + exponent).view(real)
        result = result if x <= most else x + infinity
        return zero if x < least else result

    return exp


def _single() -> Function:
    terms = 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1
    p0, p1, p2, p3, p4, p5, one = (np.float32(term) for term in terms)

    @jittable(fastmath=CONTRACT)
    def near(x: Any) -> Any:
        return (((((p0 * x + p1) * x + p2) * x + p3) * x + p4) * x + p5) * (x * x) + x + one

    return _function(np.float32, np.int32, near)


def _double() -> Function:
    (p0, p1, p2), (q0, q1, q2) = ODD, EVEN

    @jittable(fastmath=CONTRACT)
    def near(x: Any) -> Any:
        square = x * x
        odd = x * ((p0 * square + p1) * square + p2)
        even = ((q0 * square + q1) * square + q2) * square + 2
        return 1 + 2 * (odd / (even - odd))

    return _function(np.float64, np.int64, near)


_SINGLE, _DOUBLE = _single(), _double()
