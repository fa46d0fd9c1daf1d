"""OpenMP's threads.

By default they spin for milliseconds while they wait for work, and so occupy the processors.  They are made to sleep earlier, and earlier
still if the BLAS has threads of its own.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from ..common.threads import max_threads
from ..extension.compiled import switch_off, switched_off
from .blas_threads import can_share_threads, share_threads

LIBRARY = "libgomp.so.1"

THREADS = "threads of compiled loops"
"""What :func:`~cntk.core.extension.compiled.switch_off` calls them."""

SPINS, FEW_SPINS = 10000, 2000
"""How often threads poll for work before they sleep: for about 0.3 ms, since waking them takes at least 30 us; and for 0.06 ms, if threads
of the BLAS need the processors."""

PLACES = {"omp_get_thread_num": 0, "omp_get_num_threads": 1}
"""The functions for the number of the calling thread and the number of threads, and their results outside parallel regions."""


def threads_available() -> bool:
    """Whether threads can run loops: not without OpenMP, nor in a process forked from one in which OpenMP runs."""
    return _started_in() == os.getpid()


@lru_cache(maxsize=1)
def _started_in() -> int | None:
    """The process in which the first call has started the threads.

    None if there are none, or if another library has loaded OpenMP first, so that the spinning of its threads cannot be limited.
    """
    with _short_spin() as is_known:
        is_usable = library() is not None and is_known
    if is_usable and not _shares_work():
        switch_off(THREADS, f"{LIBRARY} does not share work between threads as it should")
        is_usable = False
    if is_usable:
        share_threads(LIBRARY)
    return os.getpid() if is_usable else None


def why_alone() -> str:
    """Why loops run on one thread."""
    if max_threads() == 1:
        return "the number of threads is limited to one"
    if library() is None:
        return f"there is no {LIBRARY}"
    return switched_off.get(THREADS, "another library has loaded OpenMP first, or this process was forked from one that uses it")


def _shares_work() -> bool:
    """Whether the threads of a parallel region have distinct numbers, and agree on how many there are."""
    seen: list[tuple[int, ...]] = []
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.append(tuple(getattr(library(), name)() for name in PLACES)))
    try:
        library().GOMP_parallel(call, None, max_threads(), 0)
    except (AttributeError, ctypes.ArgumentError):
        return False
    return len(seen) > 0 and sorted(seen) == [(number, len(seen)) for number in range(len(seen))]


@lru_cache(maxsize=1)
def library() -> Any:
    """The library; None if there is none."""
    with suppress(OSError):
        found = ctypes.CDLL(LIBRARY)
        found.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        return found
    return None


@lru_cache(maxsize=1)
def places() -> dict[str, Any]:
    """The functions of :data:`PLACES`."""
    threads_available()  # loads the library
    if library() is not None:
        return {name: getattr(library(), name) for name in PLACES}
    return {name: ctypes.CFUNCTYPE(ctypes.c_int)(lambda place=place: place) for name, place in PLACES.items()}


@contextmanager
def _short_spin() -> Iterator[bool]:
    """Load OpenMP with our spin count unless the user has set one; yields whether one of the two is in effect."""
    name = "GOMP_SPINCOUNT"
    if name in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield True
    elif _is_loaded():
        yield False
    else:
        os.environ[name] = str(SPINS if can_share_threads() else FEW_SPINS)
        try:
            yield True
        finally:
            del os.environ[name]


def _is_loaded() -> bool:
    """Whether some library has loaded OpenMP already."""
    if not hasattr(os, "RTLD_NOLOAD"):
        return False
    try:
        ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True
