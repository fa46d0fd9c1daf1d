"""Compiled loops whose turns threads share.

The threads are OpenMP's, since Numba's own take a hundred microseconds to begin and serve one caller at a time.  Those of OpenMP wait
for work by spinning, for milliseconds if nobody says otherwise, and keep the BLAS's threads from the processors; so they are told to sleep
after some microseconds.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import FunctionType
from typing import Any

import numba

from ...core.threads import max_threads
from .blas_threads import lend

OPENMP = "libgomp.so.1"

SPINS = 2000
"""How often OpenMP's threads look for work before they sleep."""

SHARED_FROM = 2**14
"""Elements that a loop goes through in more time than it takes to share them."""


ROWS_SHARED_FROM = 2**20
"""The same for loops over scattered rows, which come so long after others that the threads sleep and must be woken."""


class Loop:
    """A loop over ``numba.prange``, compiled when it is first called with arguments of some types; the result is kept on disk.

    Numba looks for a change in the loop's own file only: after one in another that it takes functions from, its cached results must be
    removed.

    Args:
        function: what to compile; no turn of its loop may depend on another.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self._alone, self._shared = compiled(function), compiled(_twin(function), parallel=True)

    def __call__(self, size: int, *arguments: Any) -> None:
        """Run the loop, by several threads where it goes through enough elements.

        Args:
            size: number of elements.
            arguments: of the function.
        """
        self.run(size >= SHARED_FROM, *arguments)

    def run(self, shared: bool, *arguments: Any) -> None:
        """Run the loop, by several threads if it is to be *shared* and they can.

        Args:
            arguments: of the function.
        """
        threads = max_threads() if shared else 1
        if threads > 1 and are_shared():
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
            self._shared(*arguments)
        else:
            self._alone(*arguments)


def _twin(function: Any) -> Any:
    """The same function under another name, which is what Numba tells results on disk apart by; it does not look at options."""
    twin = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__qualname__ = f"{function.__qualname__}_shared"
    return twin


def compiled(function: Callable[..., Any], parallel: bool = False) -> Callable[..., Any]:
    """A function that is compiled when it is first called with arguments of some types; the result is kept on disk."""
    try:
        return numba.njit(function, cache=True, parallel=parallel, nogil=True, error_model="numpy")
    except RuntimeError:  # no folder that Numba keeps results in can be written to
        return numba.njit(function, parallel=parallel, nogil=True, error_model="numpy")


def are_shared() -> bool:
    """Whether threads can share loops: not where there is no OpenMP, nor in a process forked from one in which it runs."""
    return _started_in() == os.getpid()


@lru_cache(maxsize=1)
def _started_in() -> int | None:
    """The process in which the threads have been started, by the first call.

    None if they serve one caller at a time, or another library has loaded OpenMP before, whose threads then wait as long as they like.
    """
    with _waiting_shortly() as is_known:
        numba.set_num_threads(1)
    layer = numba.threading_layer() if is_known else None
    if layer == "omp":
        lend(OPENMP)
    return os.getpid() if layer in ("omp", "tbb") else None


@contextmanager
def _waiting_shortly() -> Iterator[bool]:
    """Have OpenMP loaded with our number of spins, if the user has not said how its threads wait; tells whether one of us has."""
    name = "GOMP_SPINCOUNT"
    if name in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield True
        return
    if _is_loaded():
        yield False
        return
    os.environ[name] = str(SPINS)
    try:
        with suppress(OSError):  # another system's OpenMP, or none: Numba finds out
            ctypes.CDLL(OPENMP)
        yield True
    finally:
        del os.environ[name]


def _is_loaded() -> bool:
    """Whether some library has brought OpenMP."""
    if not hasattr(os, "RTLD_NOLOAD"):
        return False
    try:
        ctypes.CDLL(OPENMP, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True
