"""Logistic function and hyperbolic tangent in plain arithmetic, which LLVM turns into vector instructions.

A library's functions take one number at a time.  These are within a few units in the last place of the true values, in either type.

Source: S. L. Moshier, *Cephes Mathematical Library*: ``tanh``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.machine.language import overload_for
from .exponential import CONTRACT, exp

SATURATED = 80
"""From here on both functions are 1, and the exponential not yet infinite."""

Function = Callable[[Any], Any]


def sigmoid(x: Any) -> Any:
    """The logistic function, exact far into the left tail; callable from compiled code only."""
    raise NotImplementedError("sigmoid is called from compiled code only")


def tanh(x: Any) -> Any:
    """The hyperbolic tangent; callable from compiled code only."""
    raise NotImplementedError("tanh is called from compiled code only")


@overload_for(sigmoid, fastmath=CONTRACT)
def _sigmoid_of(x: Any) -> Function:
    return _SINGLE[0] if x.bitwidth == 32 else _DOUBLE[0]


@overload_for(tanh, fastmath=CONTRACT)
def _tanh_of(x: Any) -> Function:
    return _SINGLE[1] if x.bitwidth == 32 else _DOUBLE[1]


def _functions(real: Any) -> tuple[Function, Function]:
    """Both functions in a type."""
    r0, r1, r2 = (real(c) for c in (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3))
    s0, s1, s2 = (real(c) for c in (1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3))
    one, two, some, most = (real(c) for c in (1, 2, 0.625, SATURATED))

    def sigmoid(x: Any) -> Any:
        e = exp(most if x > most else x)
        return e / (e + one)

    def tanh(x: Any) -> Any:
        size = abs(x)
        double = size + size
        square = x * x
        near_over, near_under = (r0 * square + r1) * square + r2, ((square + s0) * square + s1) * square + s2
        far_under = exp(most if double > most else double) + one
        quotient = (near_over if size < some else two) / (near_under if size < some else far_under)  # one division serves both
        near, far = x * square * quotient + x, one - quotient
        return near if size < some else (-far if x < 0 else far)

    return sigmoid, tanh


_SINGLE, _DOUBLE = _functions(np.float32), _functions(np.float64)
