"""The nearest number to a decimal text, one at a time."""

from __future__ import annotations

import math
from decimal import Decimal
from struct import Struct
from typing import Any

import numpy as np

CUT = 29
"""Bits of a float64's mantissa that a float32 does not have."""

SMALLEST, TOO_LARGE = 2.0**-126, 2.0**128 - 2.0**103
"""The smallest float32 of full precision, and the middle between the largest and the power of two behind it."""

_NUMBER, _BITS = Struct("<d"), Struct("<Q")


def rounded(text: bytes, dtype: Any) -> float:
    """The number of *dtype* that is nearest to a decimal text, or another that rounds to it: the nearest float64 does not always.

    A number that is too large becomes infinite.
    """
    number = float(text)
    if dtype != np.float32:
        return number
    if not _may_be_halfway(number):
        return number if abs(number) < TOO_LARGE else math.copysign(math.inf, number)
    with np.errstate(over="ignore"):
        near = np.float32(number)
    other = np.nextafter(near, np.float32(np.copysign(np.inf, number - _finite(near))))
    exact = Decimal(text.decode())
    if number != (_finite(near) + _finite(other)) / 2 or exact == Decimal(number):
        return float(near)  # of two that are equally far, the even one
    return float(max(near, other) if exact > Decimal(number) else min(near, other))


def _may_be_halfway(number: float) -> bool:
    """As :func:`is_halfway`, of one number."""
    (bits,) = _BITS.unpack(_NUMBER.pack(number))
    return bits & (2**CUT - 1) == 1 << (CUT - 1) or 0 < abs(number) < SMALLEST


def is_halfway(numbers: Any) -> Any:
    """Which float64 may lie halfway between two float32, so that the text decides to which side they are rounded."""
    bits = numbers.view(np.uint64)
    tiny = (np.abs(numbers) < np.finfo(np.float32).tiny) & (numbers != 0)
    return ((bits & np.uint64(2**CUT - 1)) == 1 << (CUT - 1)) | tiny


def _finite(number: Any) -> float:
    """A float32 as float64, where infinity is the number behind the last."""
    return float(number) if np.isfinite(number) else math.copysign(2.0**128, number)
