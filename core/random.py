"""Seeds, streams and sources of random numbers.

Numbers come from a counter-based generator, Philox 4x64-10: a stream's seed and the number of the draw determine them, whatever
the backend, the thread or the order of evaluation.

Classes are drawn from a sequential generator instead, the Mersenne twister, on the host, so that programs get the samples CNTK gives.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

AUTO_SEED = 2**64 - 3
"""Seed argument that means: choose one (CNTK's ``SentinelValueForAutoSelectRandomSeed``)."""

_lock = threading.Lock()
_fixed = False
_next_seed = 0


def set_fixed_random_seed(seed: int) -> None:
    """Choose *seed* wherever a seed is chosen from now on: parameters of one shape and initialiser become equal."""
    global _fixed, _next_seed
    with _lock:
        _fixed, _next_seed = True, int(seed)


def reset_random_seed(seed: int) -> None:
    """Choose *seed* next and count up from there: what a program draws repeats from run to run."""
    global _fixed, _next_seed
    with _lock:
        _fixed, _next_seed = False, int(seed)


def get_random_seed() -> int:
    """The seed that is chosen next."""
    return _next_seed


def is_random_seed_fixed() -> bool:
    """Whether every choice gives the same seed, as after :func:`set_fixed_random_seed`."""
    return _fixed


def generate_random_seed() -> int:
    """Choose a seed for an initialiser or a random op: the fixed one, else the next of a count from 0."""
    global _next_seed
    with _lock:
        seed = _next_seed
        if not _fixed:
            _next_seed += 1
        return seed


def choose_seed(seed: int) -> int:
    """Return *seed*, or a new one where it is :data:`AUTO_SEED`."""
    return generate_random_seed() if seed == AUTO_SEED else int(seed)


class Stream:
    """Where a random op stands: ``stream.next()`` numbers its draws, ``stream.take(n)`` its numbers, also from several threads at once.

    Attributes:
        seed: what determines the numbers.
        draws: how many draws, or numbers, were taken.
    """

    __slots__ = ("draws", "seed")

    def __init__(self, seed: int) -> None:
        self.seed, self.draws = seed, 0

    def next(self) -> int:
        """Number of the next draw."""
        return self.take(1)

    def take(self, count: int) -> int:
        """Take *count* numbers; returns the place of the first."""
        with _lock:
            first = self.draws
            self.draws += count
            return first


class Twister:
    """Uniform numbers one after the other, as CNTK draws classes: the same classes come for a seed.

    Source: M. Matsumoto, T. Nishimura, "Mersenne twister", 1998, in T. Nishimura's variant for words of 64 bits, 2000.

    Attributes:
        draws: how many numbers were taken.
    """

    _SIZE, _HALF = 312, 156
    _MULTIPLIER, _MATRIX = 6364136223846793005, np.uint64(0xB5026F5AA96619E9)
    _UPPER, _LOWER = np.uint64(0xFFFFFFFF80000000), np.uint64(0x7FFFFFFF)
    _TEMPERING = ((29, 0x5555555555555555, True), (17, 0x71D67FFFEDA60000, False), (37, 0xFFF7EEE000000000, False), (43, 2**64 - 1, True))

    def __init__(self, seed: int) -> None:
        self.draws = 0
        words = [seed % 2**64]
        for place in range(1, self._SIZE):
            words.append((self._MULTIPLIER * (words[-1] ^ words[-1] >> 62) + place) % 2**64)
        self._state = np.array(words, np.uint64)
        self._ready = np.empty(0)

    def uniform(self, count: int) -> Any:
        """The next *count* numbers, in [0, 1) and double precision."""
        with _lock:
            self.draws += count
            parts, missing = [self._ready], count - len(self._ready)
            while missing > 0:
                parts.append(self._next_block())
                missing -= self._SIZE
            numbers = np.concatenate(parts)
            self._ready = numbers[count:]
            return numbers[:count]

    def _next_block(self) -> Any:
        old, new = self._state, np.empty_like(self._state)
        mixed = self._mix(old[:-1], old[1:])
        new[: self._HALF] = old[self._HALF :] ^ mixed[: self._HALF]
        new[self._HALF : -1] = new[: self._HALF - 1] ^ mixed[self._HALF :]
        new[-1:] = new[self._HALF - 1 : self._HALF] ^ self._mix(old[-1:], new[:1])
        self._state = new
        words = new.copy()
        for shift, mask, right in self._TEMPERING:
            words ^= (words >> np.uint64(shift) if right else words << np.uint64(shift)) & np.uint64(mask)
        return np.minimum(words.astype(np.float64) * 2.0**-64, 1 - 2.0**-53)

    def _mix(self, high: Any, low: Any) -> Any:
        word = (high & self._UPPER) | (low & self._LOWER)
        return (word >> np.uint64(1)) ^ ((word & np.uint64(1)) * self._MATRIX)


def philox_uniform(out: Any, seed: int, draw: int, start: int = 0) -> None:
    """Fill a NumPy array with uniform numbers in [0, 1), determined by *seed* and *draw*, from the *start*-th of that draw on."""
    flat = out.reshape(-1)
    per_word = 1 if out.dtype == np.float64 else 2
    block, passed = divmod(start, 4 * per_word)
    bits = np.random.Philox(key=seed, counter=[block, draw, 0, 0])
    words = bits.random_raw((passed + flat.size + per_word - 1) // per_word)
    if out.dtype == np.float64:
        flat[...] = (words[passed:] >> np.uint64(11)) * 2.0**-53
    else:
        halves = words.view(np.uint32)[passed : passed + flat.size]
        scale = 2.0**-24 if out.dtype == np.float32 else 2.0**-11
        shift = np.uint32(8 if out.dtype == np.float32 else 21)
        flat[...] = (halves >> shift).astype(np.float32) * np.float32(scale)


def philox_normal(out: Any, seed: int, draw: int) -> None:
    """Fill a NumPy array with standard normal numbers, determined by *seed* and *draw* (Box-Muller transform)."""
    half = (out.size + 1) // 2
    u = np.empty(2 * half)
    philox_uniform(u, seed, draw)
    radius = np.sqrt(-2.0 * np.log1p(-u[:half]))
    angle = 2.0 * np.pi * u[half:]
    flat = out.reshape(-1)
    flat[:half] = radius * np.cos(angle)
    flat[half:] = (radius * np.sin(angle))[: flat.size - half]
