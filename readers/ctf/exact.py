"""The nearest number to a decimal text, one at a time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

CUT = 29
"""Bits of a float64's mantissa that a float32 does not have."""


def rounded(text: bytes, dtype: Any) -> Any:
    """The number of *dtype* that is nearest to a decimal text, which is not always that which is nearest to the nearest float64."""
    number = float(text)
    if dtype != np.float32 or not is_halfway(np.array([number]))[0]:
        return number
    size = abs(Fraction(text.decode()))
    with np.errstate(over="ignore"):
        near = np.float32(abs(number))
        nearest = min((np.nextafter(near, np.float32(0)), near, np.nextafter(near, np.float32(np.inf))), key=lambda n: _distance(n, size))
    return -nearest if text.startswith(b"-") else nearest


def is_halfway(numbers: Any) -> Any:
    """Which float64 may lie in the middle between two float32, so that the text they come of decides to which side they are rounded."""
    bits = numbers.view(np.uint64)
    tiny = (np.abs(numbers) < np.finfo(np.float32).tiny) & (numbers != 0)
    return ((bits & np.uint64(2**CUT - 1)) == 1 << (CUT - 1)) | tiny


def _distance(number: Any, size: Fraction) -> tuple[Fraction, int]:
    """How far a float32 is from a size; of two that are equally far the even one comes first, infinity as the number behind the last."""
    value = Fraction(float(number)) if np.isfinite(number) else Fraction(2**128)
    return abs(value - size), int(number.view(np.uint32) & 1)
