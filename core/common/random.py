"""Seeds, streams and sources of random numbers.

Initial values, random values and samples of classes are drawn on the host, one after the other, by the generator that CNTK has
(:mod:`~cntk.core.common.twister`).  Numbers that users cannot see, such as masks of dropout and noise on parameters, come from a
counter-based generator, Philox 4x64-10, on any device: a stream's seed and the number of the draw determine it.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .launch import launched_rank, launched_size
from .lock import ForkSafeLock
from .switches import next_seed, seed_is_fixed

AUTO_SEED = 2**64 - 3
"""Seed argument that means: choose one (CNTK's ``SentinelValueForAutoSelectRandomSeed``)."""

_lock = ForkSafeLock()


def set_fixed_random_seed(seed: int) -> None:
    """Choose *seed* wherever a seed is chosen from now on: parameters of one shape and initialiser become equal.

    >>> C.cntk_py.set_fixed_random_seed(1)
    >>> first, second = (C.parameter(3, init=C.uniform(1)) for _ in range(2))
    >>> np.array_equal(first.value, second.value)
    True
    """
    with _lock:
        seed_is_fixed.value, next_seed.value = True, int(seed)


def reset_random_seed(seed: int) -> None:
    """Choose *seed* next and count up from there: what a program draws repeats from run to run.

    >>> C.cntk_py.reset_random_seed(1)
    >>> first, second = (C.parameter(3, init=C.uniform(1)) for _ in range(2))
    >>> C.cntk_py.reset_random_seed(1)
    >>> again = C.parameter(3, init=C.uniform(1))
    >>> np.array_equal(first.value, second.value), np.array_equal(first.value, again.value)
    (False, True)
    """
    with _lock:
        seed_is_fixed.value, next_seed.value = False, int(seed)


def get_random_seed() -> int:
    """The seed that is chosen next.

    >>> C.cntk_py.reset_random_seed(7)
    >>> parameter = C.parameter(2, init=C.uniform(1))
    >>> C.cntk_py.get_random_seed()
    8
    """
    return next_seed.value


def is_random_seed_fixed() -> bool:
    """Whether every choice gives the same seed, as after :func:`set_fixed_random_seed`.

    >>> C.cntk_py.reset_random_seed(7)
    >>> C.cntk_py.is_random_seed_fixed()
    False
    >>> C.cntk_py.set_fixed_random_seed(7)
    >>> C.cntk_py.is_random_seed_fixed()
    True
    """
    return seed_is_fixed.value


def generate_random_seed(per_worker: bool = False) -> int:
    """Choose a seed for an initialiser or a random op: the fixed one, else the next of a count from 0.

    Args:
        per_worker: whether the workers of a distributed training choose different ones, unless the seed is fixed.

    >>> C.cntk_py.reset_random_seed(7)
    >>> C.cntk_py.generate_random_seed(), C.cntk_py.generate_random_seed()
    (7, 8)
    """
    with _lock:
        seed = next_seed.value
        if not seed_is_fixed.value:
            next_seed.value += 1
            if per_worker:
                seed = seed * launched_size() + launched_rank()
        return seed


def create_checkpoint() -> dict[str, Any]:
    """The state of the choice of seeds."""
    return {"fixed": seed_is_fixed.value, "next_seed": next_seed.value}


def check_checkpoint(checkpoint: Any) -> None:
    """Check that a value is one that :func:`create_checkpoint` returns.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(checkpoint.get("fixed"), bool):
        raise ValueError(f"expected whether the seed is fixed, got {checkpoint.get('fixed')!r:.80}")
    _whole(checkpoint, "next_seed")


def restore_from_checkpoint(checkpoint: dict[str, Any]) -> None:
    """Go on from what :func:`create_checkpoint` returned.

    Raises:
        ValueError: it is something else.
    """
    check_checkpoint(checkpoint)
    with _lock:
        seed_is_fixed.value, next_seed.value = checkpoint["fixed"], checkpoint["next_seed"]


def _whole(checkpoint: dict[str, Any], name: str) -> int:
    """A whole number of a checkpoint.

    Raises:
        ValueError: it is something else.
    """
    number = checkpoint.get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"expected a whole number called '{name}', got {number!r:.80}")
    return number


def choose_seed(seed: int, per_worker: bool = False) -> int:
    """Return *seed*, or a new one where it is :data:`AUTO_SEED`; see :func:`generate_random_seed`."""
    return generate_random_seed(per_worker) if seed == AUTO_SEED else int(seed)


class Stream:
    """The position of a random op in its stream: ``stream.next()`` numbers its draws, also from several threads at once.

    Attributes:
        seed: the seed of the numbers.
        draws: how many draws were taken.
    """

    __slots__ = ("draws", "seed")

    def __init__(self, seed: int) -> None:
        self.seed, self.draws = seed, 0

    def next(self) -> int:
        """Number of the next draw."""
        with _lock:
            self.draws += 1
            return self.draws - 1

    def create_checkpoint(self) -> dict[str, Any]:
        """Seed and number of draws."""
        return {"seed": self.seed, "draws": self.draws}

    @classmethod
    def from_checkpoint(cls, checkpoint: dict[str, Any]) -> Stream:
        """A stream that goes on from what :meth:`create_checkpoint` returned."""
        stream = cls(_whole(checkpoint, "seed"))
        stream.draws = _whole(checkpoint, "draws")
        return stream


DIGITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Random bits of a uniform number, by the name of its type: as many as need no rounding, which might give 1."""


def philox_uniform(out: Any, seed: int, draw: int) -> None:
    """Fill a NumPy array with uniform numbers in [0, 1), determined by *seed* and *draw*."""
    flat = out.reshape(-1)
    per_word = 1 if out.dtype == np.float64 else 2
    bits = np.random.Philox(key=seed, counter=[0, draw, 0, 0])
    words = bits.random_raw((flat.size + per_word - 1) // per_word)
    if out.dtype == np.float64:
        flat[...] = (words >> np.uint64(11)) * 2.0**-53
    else:
        halves = words.view(np.uint32)[: flat.size]
        digits = DIGITS[out.dtype.name]
        flat[...] = (halves >> np.uint32(32 - digits)).astype(np.float32) * np.float32(2.0**-digits)


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
