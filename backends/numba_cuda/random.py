"""Random numbers, identical to the bit to those on the CPU."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...core.common.dtypes import is_bfloat16
from ...core.common.random import DIGITS
from ...core.machine.language import jittable, prange
from ..fused.philox import HALF, LOW, philox
from .compiler import Kernel, flat

HALVES = 8
"""Number of 32-bit numbers in a Philox block; there are half as many 64-bit numbers."""


@lru_cache(maxsize=256)
def key_of(seed: int) -> tuple[int, ...]:
    """Return the key that NumPy's generator derives from a seed: two words as 32-bit numbers, lower halves first."""
    words = np.random.Philox(key=seed).state["state"]["key"].astype("<u8")
    return tuple(words.view("<u4").tolist())


@jittable
def bits_of(group: int, draw: int, k0: int, k1: int, k2: int, k3: int) -> Any:
    """Return a block of four 64-bit words for the number of a draw and the :func:`key_of` a seed."""
    key = (np.uint64(k0) | (np.uint64(k1) << HALF), np.uint64(k2) | (np.uint64(k3) << HALF))
    return philox(key, np.uint64(group + 1), np.uint64(draw))


@jittable
def half_of(words: Any, at: int) -> Any:
    """Return one of the eight 32-bit halves of four words."""
    return np.uint32((words[at >> 1] >> (HALF * np.uint64(at & 1))) & LOW)


def _halves(out: Any, draw: int, k0: int, k1: int, k2: int, k3: int, shift: int, unit: Any) -> None:
    for group in prange((out.size + HALVES - 1) // HALVES):
        words = bits_of(group, draw, k0, k1, k2, k3)
        for at in range(min(HALVES, out.size - group * HALVES)):
            out[group * HALVES + at] = np.float32(half_of(words, at) >> np.uint32(shift)) * np.float32(unit)


def _words(out: Any, draw: int, k0: int, k1: int, k2: int, k3: int, shift: int, unit: Any) -> None:
    for group in prange((out.size + 3) // 4):
        words = bits_of(group, draw, k0, k1, k2, k3)
        for at in range(min(4, out.size - group * 4)):
            out[group * 4 + at] = np.float64(words[at] >> np.uint64(shift)) * unit


HALVES_KERNEL, WORDS_KERNEL = (Kernel(body, "R1 q q q q q q d") for body in (_halves, _words))


def uniform(out: Any, seed: int, draw: int) -> None:
    """Fill a contiguous array with uniform numbers in [0, 1)."""
    if not out.size:
        return
    is_double, digits = out.dtype == np.float64, DIGITS[out.dtype.name]
    drawn = out.astype(np.float32) if is_bfloat16(out.dtype) else out  # Numba does not know bfloat16
    launch = (WORDS_KERNEL if is_double else HALVES_KERNEL).bound(-(-out.size // (4 if is_double else HALVES)), flat(drawn))
    launch(draw, *key_of(seed), (64 if is_double else 32) - digits, 2.0**-digits)
    if drawn is not out:
        out[...] = drawn


def normal(backend: Any, out: Any, seed: int, draw: int) -> None:
    """Fill a contiguous array with standard normal numbers by the Box-Muller transform, with the array library's functions."""
    xp, half = backend.xp, (out.size + 1) // 2
    u, numbers = backend.empty((2 * half,), np.float64), flat(out)
    uniform(u, seed, draw)
    radius = xp.sqrt(-2.0 * xp.log1p(-u[:half]))
    angle = 2.0 * np.pi * u[half:]
    numbers[:half] = radius * xp.cos(angle)
    numbers[half:] = (radius * xp.sin(angle))[: out.size - half]
