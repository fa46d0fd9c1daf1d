"""The sequential generator of CNTK: equal seeds give the numbers that CNTK draws on the CPU, to the last bit.

Sources: M. Matsumoto, T. Nishimura, "Mersenne twister", 1998, in T. Nishimura's variant for words of 64 bits, 2000; G. Marsaglia,
W. W. Tsang, "The ziggurat method for generating random variables", 2000.
"""

from __future__ import annotations

import decimal
from functools import cache
from typing import Any, Protocol

import numpy as np

from .lock import ForkSafeLock

Words = np.ndarray[Any, np.dtype[np.uint64]]
Numbers = np.ndarray[Any, np.dtype[np.float64]]

SIZE, MIDDLE, STEP = 312, 156, 311
MULTIPLIER = 6364136223846793005
TEMPERING = ((29, 0x5555555555555555, True), (17, 0x71D67FFFEDA60000, False), (37, 0xFFF7EEE000000000, False), (43, 2**64 - 1, True))
UPPER, MATRIX = 0xFFFFFFFF80000000, 0xB5026F5AA96619E9
CHUNK = 1 << 15
"""Words that are made at a time, so that they stay in the processor's cache."""

_upper, _one, _matrix = (np.full(STEP, word, np.uint64) for word in (UPPER, 1, MATRIX))


class Loops(Protocol):
    """Compiled loops, which make the same numbers as NumPy, to the last bit.  *state* is the last words, untempered, and goes on."""

    def words(self, state: Words, out: Words) -> None:
        """The next words."""

    def uniform(self, state: Words, out: Any, factor: float, summand: float) -> None:
        """The next numbers in [0, 1), each times *factor* plus *summand* and rounded to the type of *out*."""


class Twister:
    """Numbers one after the other, on the host.

    Args:
        seed: determines the numbers.
        loops: loops that make them; NumPy does if None.

    Attributes:
        draws: how many numbers were taken.
        words: how many words they have used; a normal number may use more than one.
    """

    def __init__(self, seed: int, loops: Loops | None = None) -> None:
        self._loops = loops
        self.draws = self.words = self._skipped = 0
        self._lock = ForkSafeLock()
        words = [seed % 2**64]
        for place in range(1, SIZE):
            words.append((MULTIPLIER * (words[-1] ^ words[-1] >> 62) + place) % 2**64)
        self._state = np.array(words, np.uint64)
        self._ready = np.empty(0, np.uint64)

    def skip(self, words: int) -> None:
        """Skip so many words before the next number is drawn."""
        with self._lock:
            self._skipped += words
            self.words += words

    def create_checkpoint(self) -> dict[str, Any]:
        """The state: the last words, those that are ready, and the counts."""
        with self._lock:
            counts = {"draws": self.draws, "words": self.words, "skipped": self._skipped}
            return {"state": self._state.copy(), "ready": self._ready.copy(), **counts}

    @classmethod
    def from_checkpoint(cls, checkpoint: dict[str, Any]) -> Twister:
        """A generator that goes on from what :meth:`create_checkpoint` returned."""
        made = cls.__new__(cls)
        made._lock, made._loops = ForkSafeLock(), None
        made._state, made._ready = (np.array(checkpoint[name], np.uint64) for name in ("state", "ready"))
        made.draws, made.words, made._skipped = (int(checkpoint[name]) for name in ("draws", "words", "skipped"))
        if made._state.shape != (SIZE,) or made._ready.ndim != 1:
            raise ValueError(f"a generator's state has {SIZE} words and a row of ready ones, got {made._state.shape}, {made._ready.shape}")
        return made

    def uniform(self, count: int) -> Numbers:
        """The next *count* numbers, in [0, 1)."""
        numbers = np.empty(count)
        with self._lock:
            self.draws += count
            for start in range(0, count, CHUNK):
                part = numbers[start : start + CHUNK]
                _as_fractions(self._take(len(part)), part)
        return numbers

    def fill_uniform(self, out: Any, factor: float, summand: float) -> None:
        """Fill a flat array with the next numbers of :meth:`uniform`, each times *factor* plus *summand* and rounded to its type."""
        if self._loops is not None and out.dtype in (np.float32, np.float64) and not self._skipped and not len(self._ready):
            with self._lock:
                self.draws += len(out)
                self.words += len(out)
                self._loops.uniform(self._state, out, factor, summand)
            return
        for start in range(0, len(out), CHUNK):
            part = out[start : start + CHUNK]
            part[:] = self.uniform(len(part)) * factor + summand

    def whole(self, count: int, stop: int) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The next *count* whole numbers in 0 … *stop* - 1, each the remainder of a word divided by *stop*."""
        numbers = np.empty(count, np.intp)
        with self._lock:
            self.draws += count
            for start in range(0, count, CHUNK):
                part = numbers[start : start + CHUNK]
                part[:] = self._take(len(part)) % np.uint64(stop)
        return numbers

    def normal(self, count: int, limit: float = np.inf) -> Numbers:
        """The next *count* numbers of the standard normal distribution, without those further than *limit* from 0."""
        numbers, filled = np.empty(count), 0
        with self._lock:
            self.draws += count
            while filled < count:
                words = self._take(min((count - filled) * 17 // 16 + 64, CHUNK))
                found, starts, used = _ziggurat(words)
                if limit < np.inf:
                    inside = np.abs(found) <= limit
                    found, starts = found[inside], starts[inside]
                missing = count - filled
                if len(found) > missing:
                    found, used = found[:missing], starts[missing]
                self._ready = np.concatenate((words[used:], self._ready))
                self.words -= len(words) - used
                numbers[filled : filled + len(found)] = found
                filled += len(found)
        return numbers

    def _take(self, count: int) -> Words:
        while self._skipped:
            passed = min(self._skipped, CHUNK)
            self._skipped -= passed
            self._next(passed)
        self.words += count
        return self._next(count)

    def _next(self, count: int) -> Words:
        if count > len(self._ready):
            self._ready = np.concatenate((self._ready, self._make(count - len(self._ready))))
        words, self._ready = self._ready[:count], self._ready[count:].copy()
        return words

    def _make(self, count: int) -> Words:
        """At least *count* more words.

        By definition ``word[i + 312] = word[i + 156] ^ mix(word[i], word[i + 1])``, which could be evaluated for 156 words at once.
        Substituted into itself it reads ``word[i] ^ mix(i - 156) ^ mix(i)``, which can for 311.
        """
        if self._loops is not None:
            fresh = np.empty(count, np.uint64)
            self._loops.words(self._state, fresh)
            return fresh
        total = -(-count // STEP) * STEP
        words, mixed = np.empty(SIZE + total, np.uint64), np.empty(MIDDLE + total, np.uint64)
        words[:SIZE] = self._state
        np.bitwise_xor(words[MIDDLE:SIZE], words[:MIDDLE], mixed[:MIDDLE])
        y = np.empty(STEP, np.uint64)
        rows = [x.reshape(-1, STEP) for x in (words[:total], words[1 : total + 1], mixed[:total], mixed[MIDDLE:], words[SIZE:])]
        for high, low, before, mix, out in zip(*rows, strict=True):
            np.bitwise_xor(high, low, y)
            np.bitwise_and(y, _upper, y)
            np.bitwise_xor(y, low, y)  # the upper bits of one word, the lower ones of the next
            np.right_shift(y, _one, y)
            np.bitwise_and(low, _one, mix)
            np.multiply(mix, _matrix, mix)
            np.bitwise_xor(mix, y, mix)
            np.bitwise_xor(high, before, y)
            np.bitwise_xor(y, mix, out)
        self._state = words[total:].copy()
        fresh = words[SIZE:]
        for shift, mask, right in TEMPERING:
            moved = np.right_shift(fresh, np.uint64(shift)) if right else np.left_shift(fresh, np.uint64(shift))
            np.bitwise_and(moved, np.uint64(mask), moved)
            np.bitwise_xor(fresh, moved, fresh)
        return fresh


def _as_fractions(words: Words, out: Numbers) -> None:
    np.multiply(words, 2.0**-64, out=out)
    np.minimum(out, 1 - 2.0**-53, out=out)  # rounding may have reached 1


# ---- normal numbers ------------------------------------------------------------------------------


@cache
def _layers() -> tuple[Numbers, Numbers]:
    """Right ends and heights of the 128 layers of equal area under exp(-x²/2), to the last bit; layer 0 is the base with the tail."""
    with decimal.localcontext(prec=30):
        ends = [decimal.Decimal("3.7130862467403632609"), decimal.Decimal("3.4426198558966521214")]
        heights = [decimal.Decimal(0), (ends[1] * ends[1] / -2).exp()]
        area = ends[0] * heights[1]
        for _ in range(126):
            heights.append(heights[-1] + area / ends[-1])
            ends.append((-2 * heights[-1].ln()).sqrt())
    return np.array([*ends, 0], np.float64), np.array([*heights, 1], np.float64)


def _ziggurat(words: Words) -> tuple[Numbers, Any, int]:
    """Normal numbers made of *words*, the places of the words with which they begin, and how many words are used up.

    A word picks a layer, a side and a point in the layer.  Points under the part of the curve that is as wide as the layer above, nearly
    all, need no more; at others the next word picks a height, and the point is left out if that is above the curve.
    """
    ends, heights = _layers()
    layer = (words & np.uint64(255)).astype(np.intp)
    sign = (layer & 1) * 2 - 1
    layer >>= 1
    x = ((words & ~np.uint64(1 << 11)) >> np.uint64(8)) * 2.0**-56  # bit 11 is not used
    x *= ends[layer]
    valid = x < ends[layer + 1]
    used = len(words)
    edges = np.flatnonzero(~valid)
    if len(edges) and edges[-1] == used - 1:
        used, edges = used - 1, edges[:-1]
    fractions = np.empty(len(edges))
    _as_fractions(words[edges + 1], fractions)
    at = layer[edges]
    below = heights[at] + fractions * (heights[at + 1] - heights[at]) < np.exp(x[edges] * x[edges] / -2)
    end = 0
    for place, bottom, good in zip(edges.tolist(), (at == 0).tolist(), below.tolist(), strict=True):
        if place < end:
            continue  # this word served as a height
        if bottom:
            x[place], end = _tail(words, place + 1)
            if end > len(words):
                used = end = place
                break
            valid[place] = True
        else:
            valid[place], end = good, place + 2
        valid[place + 1 : end] = False
    used = max(used, end)
    starts = np.flatnonzero(valid[:used])
    return x[starts] * sign[starts], starts, used


def _tail(words: Words, place: int) -> tuple[float, int]:
    """A number beyond the base layer, and the place behind the words, from *place* on, that it took; too far where they do not suffice."""
    start = float(_layers()[0][1])
    pair = np.empty(2)
    while place + 2 <= len(words):
        _as_fractions(words[place : place + 2], pair)
        place += 2
        x, y = -np.log1p(-pair)
        if 2 * y > (x / start) ** 2:
            return start + float(x) / start, place
    return 0.0, len(words) + 1
