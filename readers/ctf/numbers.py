"""Converts digits to numbers, many at once: eight bytes of text are processed as one number of 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .exact import CUT, is_halfway, rounded
from .grammar import NUMBER

PLUS, MINUS, DOT, ZERO = (ord(char) for char in "+-.0")
PADDING = 24
"""Bytes that must lie before the first token: words are read to their ends, whatever comes before."""

MOST_DIGITS, WORD = 19, 8
_EVERY = 0x0101010101010101
ZEROS, DOTS, HIGH = (np.uint64(byte * _EVERY) for byte in (ZERO, DOT ^ ZERO, 0x80))
ALL, ONES, ABOVE_NINE = np.uint64(2**64 - 1), np.uint64(_EVERY), np.uint64(0x76 * _EVERY)
WHOLE_TENS = 10 ** np.arange(MOST_DIGITS + 1, dtype=np.uint64)
TENS = 10.0 ** np.arange(MOST_DIGITS + 1)
EXACT, SHORT = np.uint64(2**53), np.uint64(2**24)
"""Up to here float64 and float32 hold every whole number."""
SHORT_TENS = TENS[:11]
"""Powers of ten that float32 holds."""


def numbers(text: Any, starts: Any, ends: Any, dtype: Any) -> Any:
    """The numbers that lie between *starts* and *ends* in bytes; None if one is not as the grammar has it, or too large for *dtype*."""
    first = text[starts]
    if (ends - starts == 1).all():  # such as those of one-hot rows
        digits = first - np.uint8(ZERO)
        return digits.astype(dtype) if digits.max(initial=0) < 10 else None
    is_negative = first == MINUS
    begins = starts + (is_negative | (first == PLUS))
    whole, places, is_plain = _decimals(text, begins, ends)
    values = whole.astype(np.float64)
    if places is not None:
        values /= TENS[places]
    np.negative(values, out=values, where=is_negative)
    is_sure = is_plain & (_is_sure(values, whole, places) if dtype == np.float32 else whole <= EXACT)
    with np.errstate(over="ignore"):
        values = values.astype(dtype, copy=False)
        for number in np.flatnonzero(~is_sure).tolist():
            word = text[starts[number] : ends[number]].tobytes()
            if NUMBER.fullmatch(word) is None:
                return None
            values[number] = rounded(word, dtype)
            if not np.isfinite(values[number]):
                return None
    return values


def whole_numbers(text: Any, starts: Any, ends: Any) -> Any:
    """The same of whole numbers without sign, as uint64; None as well if one has more than 19 digits."""
    whole, _, is_plain = _decimals(text, starts, ends, has_dots=False)
    return whole if is_plain.all() else None


def are_digits(text: Any, starts: Any, ends: Any) -> bool:
    """Whether there is nothing but digits between *starts* and *ends*."""
    while len(starts):
        if not _decimals(text, np.maximum(starts, ends - WORD), ends, has_dots=False)[2].all():
            return False
        ends = ends - WORD
        left = ends > starts
        starts, ends = starts[left], ends[left]
    return True


def _is_sure(values: Any, whole: Any, places: Any) -> Any:
    """Whether float64, those of large whole numbers perhaps a step or two beside the right one, tell the nearest float32."""
    if whole.max(initial=0) < SHORT and (places is None or places.max(initial=0) < len(SHORT_TENS)):
        return True  # the quotient of two float32 rounds to the same by way of float64
    bits = values.view(np.uint64) & np.uint64(2**CUT - 1)
    is_close = bits - np.uint64(2 ** (CUT - 1) - 4) <= 8
    return ~np.where(whole <= EXACT, is_halfway(values), is_close)


def _decimals(text: Any, begins: Any, ends: Any, has_dots: bool | None = None) -> tuple[Any, Any, Any]:
    """Digits with a point perhaps: the whole numbers that they make, how many stand behind the point, and which are nothing else.

    The point is taken for a zero first, and taken out of the number afterwards.
    """
    lengths = ends - begins
    words = np.ndarray((len(text) - WORD + 1,), np.uint64, text, 0, (1,))
    whole, bad = np.zeros(len(ends), np.uint64), (lengths < 1) | (lengths > MOST_DIGITS)
    if has_dots is None:
        has_dots = bool((text == DOT).any())
    dots: Any = np.zeros(len(ends), np.int64)
    places: Any = np.zeros(len(ends), np.int64)
    for skipped in range(0, min(int(lengths.max(initial=0)), MOST_DIGITS), WORD):
        chosen = np.flatnonzero(lengths > skipped) if skipped else slice(None)
        word = words[ends[chosen] - (skipped + WORD)] ^ ZEROS
        missing = np.maximum(skipped + WORD - lengths[chosen], 0).astype(np.uint64)
        word &= ALL << (np.minimum(missing, WORD - 1) << np.uint64(3))
        if has_dots:
            found = word ^ DOTS
            found = (found - ONES) & ~found & HIGH
            word ^= (found >> np.uint64(7)) * (DOTS & np.uint64(0xFF))
            is_dot = found != 0
            dots[chosen] += np.bitwise_count(found)
            behind = skipped + WORD - 1 - (np.bitwise_count(found - np.uint64(1)) >> 3).astype(np.int64)
            places[chosen] += np.where(is_dot, behind, 0)
        bad[chosen] |= ((word | (word + ABOVE_NINE)) & HIGH) != 0
        value = _eight_digits(word)
        whole[chosen] += value * WHOLE_TENS[skipped] if skipped else value
    if not has_dots:
        return whole, None, ~bad
    bad |= (dots > 1) | ((dots == 1) & (places >= lengths - 1))
    places = np.where(bad, 0, places)
    before = whole // WHOLE_TENS[places + 1]
    whole -= np.where(dots == 1, before * (WHOLE_TENS[places] * np.uint64(9)), np.uint64(0))
    return whole, places, ~bad


def _eight_digits(word: Any) -> Any:
    """The number that eight digits make, the first of which is the lowest byte."""
    pairs = word * np.uint64(10) + (word >> np.uint64(8))
    mask = np.uint64(0x000000FF000000FF)
    return (
        (pairs & mask) * np.uint64(100 + (10**6 << 32)) + ((pairs >> np.uint64(16)) & mask) * np.uint64(1 + (10**4 << 32))
    ) >> np.uint64(32)
