"""From decimal to binary, compiled: the nearest number, whatever the digits.

Up to 19 digits are a whole number of 64 bits, which times a power of ten, known to 128 bits, gives the result's bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import jittable

SMALLEST, LARGEST = -342, 308
"""Powers of ten by which a whole number of 19 digits becomes neither 0 nor infinite."""

UNDECIDED = np.uint64(2**64 - 1)
"""The result for numbers that 128 bits of a power of ten do not decide."""

HALF = np.uint64(0xFFFFFFFF)
ONE = np.uint64(1)


def _powers_of_ten() -> Any:
    """The leading 128 bits of each power of ten, cut off, or rounded up where it is below one: two words each, the higher one first."""
    table = np.empty((LARGEST - SMALLEST + 1, 2), np.uint64)
    for row, power in enumerate(range(SMALLEST, LARGEST + 1)):
        if power >= 0:
            bits = 10**power
            bits = bits << 128 >> bits.bit_length()
        else:
            divisor = 10**-power
            bits = (1 << (divisor.bit_length() + 127)) // divisor + 1
            bits >>= bits.bit_length() - 128
        table[row] = bits >> 64, bits & (2**64 - 1)
    return table


POWERS = _powers_of_ten()


@jittable
def _multiply(left: Any, right: Any) -> Any:
    """The 128 bits of a product, the higher ones first."""
    shift = np.uint64(32)
    a, b, c, d = left >> shift, left & HALF, right >> shift, right & HALF
    low, middle, other = b * d, a * d, b * c
    carried = (low >> shift) + (middle & HALF) + (other & HALF)
    return a * c + (middle >> shift) + (other >> shift) + (carried >> shift), (carried << shift) | (low & HALF)


@jittable
def _leading_zeros(number: Any) -> Any:
    zeros = 0
    for width in (32, 16, 8, 4, 2, 1):
        if number >> np.uint64(64 - width) == 0:
            zeros += width
            number <<= np.uint64(width)
    return zeros


@jittable
def nearest_bits(whole: Any, power: int, explicit: int, bias: int, even_from: int, even_to: int) -> Any:
    """The bits, without sign, of the floating-point number that is nearest to *whole* times ten to the *power*.

    Args:
        whole: a whole number of 64 bits.
        power: the power of ten.
        explicit: bits that the type stores of a mantissa: 23 or 52.
        bias: of its exponents: 127 or 1023.
        even_from, even_to: powers of ten that allow a tie: -17 to 10 or -4 to 23.

    Source: Daniel Lemire, Number parsing at a gigabyte per second, Software: Practice and Experience 51(8), 2021.
    """
    infinite = np.uint64(2 * bias + 1)
    if whole == 0 or power < SMALLEST:
        return np.uint64(0)
    if power > LARGEST:
        return infinite << np.uint64(explicit)
    zeros = _leading_zeros(whole)
    whole <<= np.uint64(zeros)
    high, low = _multiply(whole, POWERS[power - SMALLEST, 0])
    unsure = UNDECIDED >> np.uint64(explicit + 3)
    if high & unsure == unsure:
        more, _ = _multiply(whole, POWERS[power - SMALLEST, 1])
        low += more
        if more > low:
            high += ONE
    if low == UNDECIDED and not -27 <= power <= 55:
        return UNDECIDED
    upper = int(high >> np.uint64(63))
    cut = np.uint64(upper + 64 - explicit - 3)
    mantissa = high >> cut
    exponent = (((152170 + 65536) * power) >> 16) + 63 + upper - zeros + bias
    if exponent <= 0:  # subnormal
        if 1 - exponent >= 64:
            return np.uint64(0)
        mantissa >>= np.uint64(1 - exponent)
        return (mantissa + (mantissa & ONE)) >> ONE  # the bit that carries makes the smallest normal number
    if low <= ONE and even_from <= power <= even_to and mantissa & np.uint64(3) == ONE and mantissa << cut == high:
        mantissa &= ~ONE  # a tie: to the even one
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    if mantissa >= np.uint64(2) << np.uint64(explicit):
        mantissa >>= ONE
        exponent += 1
    if np.uint64(exponent) >= infinite:
        return infinite << np.uint64(explicit)
    return np.uint64(exponent) << np.uint64(explicit) | (mantissa & ((ONE << np.uint64(explicit)) - ONE))
