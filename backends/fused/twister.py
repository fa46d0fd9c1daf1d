"""Numbers of CNTK's sequential generator, as :mod:`cntk.core.common.twister` makes them, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.common.twister import MATRIX, MIDDLE, SIZE, TEMPERING, UPPER, Words
from ...core.machine.language import jittable, prange
from ...core.machine.loops import loop

_upper, _matrix, _one = np.uint64(UPPER), np.uint64(MATRIX), np.uint64(1)
_shift0, _shift1, _shift2, _shift3 = (np.uint64(shift) for shift, _, _ in TEMPERING)
_mask0, _mask1, _mask2, _mask3 = (np.uint64(mask) for _, mask, _ in TEMPERING)

WORDS = 1 << 16
"""Words that are made at a time, so that they stay in the cache of a processor."""

PART = 1 << 11
"""Words of a turn of what threads share."""


@loop("U1")
def twist(words: Any) -> None:
    """Go on from the first 312 words, untempered, to the end."""
    for start in range(0, len(words) - SIZE, MIDDLE):
        size = min(MIDDLE, len(words) - SIZE - start)  # none of so many depends on another
        first, middle, fresh = words[start : start + size + 1], words[start + MIDDLE :][:size], words[start + SIZE :][:size]
        for i in range(size):
            low = first[i + 1]
            mixed = ((first[i] & _upper) | (low & ~_upper)) >> _one
            fresh[i] = middle[i] ^ mixed ^ (_matrix * (low & _one))


@jittable
def _tempered(word: Any) -> Any:
    word ^= (word >> _shift0) & _mask0
    word ^= (word << _shift1) & _mask1
    word ^= (word << _shift2) & _mask2
    return word ^ ((word >> _shift3) & _mask3)


@loop("U1 U1")
def temper(words: Any, out: Any) -> None:
    """Temper all words but the first 312."""
    for part in prange((len(out) + PART - 1) // PART):
        for i in range(part * PART, min((part + 1) * PART, len(out))):
            out[i] = _tempered(words[i + SIZE])


@loop("U1 R1 d d")
def scale(words: Any, out: Any, factor: float, summand: float) -> None:
    """Temper them, and make numbers in [0, 1) of them, which are multiplied by *factor*; *summand* is added."""
    for part in prange((len(out) + PART - 1) // PART):
        for i in range(part * PART, min((part + 1) * PART, len(out))):
            fraction = np.float64(_tempered(words[i + SIZE])) * 2.0**-64
            out[i] = min(fraction, 1 - 2.0**-53) * factor + summand


class TwisterLoops:
    """The numbers of a generator whose last words, untempered, are *state*, which goes on."""

    @staticmethod
    def words(state: Words, out: Words) -> None:
        """The next words."""
        for made, part in _parts(state, out):
            temper(len(part), made, part)

    @staticmethod
    def uniform(state: Words, out: Any, factor: float, summand: float) -> None:
        """The next numbers in [0, 1), each times *factor* plus *summand* and rounded to the type of *out*."""
        for made, part in _parts(state, out):
            scale(len(part), made, part, factor, summand)


def _parts(state: Words, out: Any) -> Iterator[tuple[Words, Any]]:
    """Words before tempering, behind the 312 before them, and the part of *out* that they are for."""
    made = np.empty(SIZE + min(WORDS, len(out)), np.uint64)
    made[:SIZE] = state
    for start in range(0, len(out), WORDS):
        part = out[start : start + WORDS]
        twist.run(False, made[: SIZE + len(part)])
        yield made, part
        made[:SIZE] = made[len(part) : SIZE + len(part)].copy()
    state[:] = made[:SIZE]
