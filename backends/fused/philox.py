"""Random bits that depend on a key and a counter alone, as :class:`numpy.random.Philox` makes them.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import jittable

M0, M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
K0, K1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@jittable
def _product(x: Any, y: Any) -> tuple[Any, Any]:
    """Upper and lower 64 bits of a product, from halves, which vectors of numbers have products of."""
    x_high, x_low, y_high, y_low = x >> HALF, x & LOW, y >> HALF, y & LOW
    one, other = x_low * y_high + (x_low * y_low >> HALF), x_high * y_low
    half_of_sum = (one & other) + ((one ^ other) >> np.uint64(1))  # the sum itself may have 65 bits
    return x_high * y_high + (half_of_sum >> np.uint64(31)), x * y


@jittable
def _mixed(words: Any, key: Any) -> Any:
    """A round, and the next one's key."""
    a, b, c, d = words
    high, low = _product(M0, a)
    other_high, other_low = _product(M1, c)
    return (other_high ^ b ^ key[0], other_low, high ^ d ^ key[1], low), (key[0] + K0, key[1] + K1)


@jittable
def philox(key: Any, count: Any, draw: Any) -> Any:
    """Four words of 64 bits; the key is two, and all numbers are unsigned.  NumPy counts from 1.

    Rounds are written one by one, for compilers make vectors of innermost loops alone.
    """
    words, key = _mixed((count, draw, np.uint64(0), np.uint64(0)), key)
    words, key = _mixed(words, key)
    words, key = _mixed(words, key)
    words, key = _mixed(words, key)
    words, key = _mixed(words, key)
    words, key = _mixed(words, key)
    words, key = _mixed(words, key)
    words, key = _mixed(words, key)
    words, key = _mixed(words, key)
    words, key = _mixed(words, key)
    return words
