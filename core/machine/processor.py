"""The processor that loops are compiled for.

If this processor has one of the levels of x86-64, machine code is made for that level.  Such code is as fast as code for the exact
processor, and runs on all processors of the level, so that a package can contain it.

Source: `x86-64 psABI <https://gitlab.com/x86-psABIs/x86-64-ABI>`_, micro-architecture levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from llvmlite import binding

_AVX2 = "sse3 ssse3 sse4.1 sse4.2 popcnt cx16 sahf avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"

LEVELS = {"x86-64-v4": f"{_AVX2} avx512f avx512bw avx512cd avx512dq avx512vl", "x86-64-v3": _AVX2}
"""Levels, highest first, and the features that a processor of each has, as LLVM names them."""

_chosen: str | None = None


def choose(level: str) -> None:
    """Compile for processors of a level in this process.  This processor need not have the level, so compiled code must not be run here.

    Call this before loops are imported, since they are written for vectors of one width.
    """
    global _chosen
    _chosen = level


def is_another() -> bool:
    """Whether a level has been chosen that this processor may not have."""
    return _chosen is not None


def level() -> str | None:
    """The level that loops are compiled for; None where the processor has none of :data:`LEVELS`."""
    return _chosen or _own_level()


def level_of(features: Mapping[str, bool]) -> str | None:
    """The highest level all of whose features a processor has; None if it has none.

    >>> from cntk.core.machine.processor import LEVELS, level_of
    >>> level_of(dict.fromkeys(LEVELS["x86-64-v3"].split(), True))
    'x86-64-v3'
    >>> level_of({"neon": True})
    """
    return next((level for level, needed in LEVELS.items() if all(features.get(name) for name in needed.split())), None)


@lru_cache(maxsize=1)
def _own_level() -> str | None:
    return level_of(features())


def features() -> Mapping[str, bool]:
    """The features of this processor; none if LLVM cannot query them on this system."""
    try:
        return dict(binding.get_host_cpu_features())
    except RuntimeError:
        return {}


def description() -> str:
    """This processor, as LLVM describes it."""
    return f"{binding.get_host_cpu_name()} {' '.join(sorted(name for name, has in features().items() if has))}"
