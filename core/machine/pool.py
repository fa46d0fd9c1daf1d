"""Threads that share the work of a call.

A call is divided into more pieces than there are threads, and whoever is free takes the next one: the caller as well, so that it waits for
no thread that another program keeps from its processor, but for those alone that have begun a piece.  A thread that finds none looks for
more for a moment, and then sleeps.  One call at a time is shared; calls that come meanwhile are left to their callers.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import llvmlite.binding as llvm

from ..common.lock import ForkSafeLock
from ..common.threads import max_threads, processors
from ..extension.compiled import switch_off, switched_off
from . import assembly
from .blas_threads import share_threads
from .pool_code import SYSTEM, module

THREADS = "threads of compiled loops"
"""What :func:`~cntk.core.extension.compiled.switch_off` calls them."""

starting = ForkSafeLock()
"""Held while threads are started."""

PIECES = 4
"""Pieces of a call for each thread."""

OFFERED_PIECES, OFFERED_HELPERS = 2, 3
"""Pieces of an offered call for each thread, and the most helpers: it takes microseconds."""

MOST = 64
"""Threads that are started at most where there are not as many processors."""

Way = tuple[Callable[[Any], None], Any]
"""A function, and what to call it with."""

PLACES = {"cntk_number": 0, "cntk_count": 1, "cntk_slot": 0}
"""What machine code calls the functions that tell which piece a thread does, of how many, and its own number; and what they are where
nothing is shared."""

ALONE = {name: ctypes.CFUNCTYPE(ctypes.c_int)(lambda place=place: place) for name, place in PLACES.items()}
"""Such functions."""

SHARE, OFFER = "cntk_share", "cntk_offer"
"""What machine code calls the functions that share a call, and that offer one."""

_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

NOT_SHARED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(
    lambda call, argument, *_: _CALL(call)(argument)
)
"""What it is where nothing is shared."""


class Pool:
    """The threads of this process.

    Attributes:
        functions: addresses of what compiled code calls: ``number`` and ``count`` tell which piece the calling thread does, and of how
            many, 0 and 1 outside shared calls; ``slot`` its own number, 0 for the caller; ``is_inside`` whether it does one;
            ``share(call, argument, pieces, helpers)`` shares a call unless another is shared, ``share_in_turn`` when none is any more,
            and ``offer`` where threads look for work anyway.
        turn: what a caller holds whose call is shared, a mutex.
        helpers: the number of threads.
    """

    def __init__(self) -> None:
        system = ctypes.CDLL(None)
        for name in SYSTEM:
            llvm.add_symbol(name, ctypes.cast(getattr(system, name), ctypes.c_void_p).value)
        self._engine = assembly.assembled(module())
        called = "number", "count", "slot", "is_inside", "share", "share_in_turn", "offer"
        self.functions = {name: self._engine.get_function_address(name) for name in called}
        self.turn = self._engine.get_global_value_address("turn")
        self.helpers = ctypes.c_int32.from_address(self._engine.get_global_value_address("started"))
        self._share = self._function("share", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
        self._share_packed, self._offer_packed = (self._function(f"{way}_packed", None, ctypes.c_void_p) for way in ("share", "offer"))
        if hasattr(os, "register_at_fork"):
            is_forked = ctypes.c_int32.from_address(self._engine.get_global_value_address("is_forked"))
            os.register_at_fork(after_in_child=partial(setattr, is_forked, "value", 1))
        self._start = self._function("start", ctypes.c_int32, ctypes.c_int64)
        self._asked = 0
        self._function("prepare", None)()

    def share(self, call: Any, argument: Any, threads: int) -> None:
        """Call the function at an address with an argument for each of several pieces, on at most so many threads, this one among them.

        Where another call is shared meanwhile the function is called once, for all pieces.
        """
        helpers = self._started(threads - 1)
        self._share(call, argument, (helpers + 1) * PIECES, helpers)

    def shared(self, call: Any, argument: Any, threads: int) -> Way:
        """What :meth:`share` does, for calls that are repeated; in a forked process the function is called once."""
        helpers = self._started(threads - 1)
        return self._share_packed, _packed(call, argument, (helpers + 1) * PIECES, helpers)

    def offered(self, call: Any, argument: Any, threads: int) -> Way:
        """The same for a call that takes microseconds: no thread is woken for it.

        Threads that look for work help.  While such calls come one right behind another they are woken once, and go on looking; where one
        was long in coming to an end, as on a busy machine, callers are on their own for a while.
        """
        helpers = self._started(min(threads - 1, OFFERED_HELPERS))
        return self._offer_packed, _packed(call, argument, (helpers + 1) * OFFERED_PIECES, helpers)

    def _started(self, helpers: int) -> int:
        """So many threads at most, which are started first; how many there are."""
        if self._asked < helpers:
            self.start(helpers)
        return min(helpers, self.helpers.value)

    def start(self, helpers: int) -> None:
        """Start threads until there are so many, :data:`MOST`, or the system has no more.  Signals are for Python's own threads."""
        with starting:
            self._asked, most = max(self._asked, helpers), min(helpers, max(MOST, processors()) - 1)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                while self.helpers.value < most and not self._start(self.helpers.value):
                    self.helpers.value += 1
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _function(self, name: str, *types: Any) -> Any:
        return ctypes.CFUNCTYPE(*types)(self._engine.get_function_address(name))


def _packed(call: Any, argument: Any, pieces: int, helpers: int) -> Any:
    function = ctypes.cast(call, ctypes.c_void_p).value or 0
    place = 0 if argument is None else ctypes.addressof(argument)  # cast would make it refer to itself, and keep its arrays
    words = (ctypes.c_int64 * 4)(function, place, pieces, helpers)
    words.refers_to = call, argument  # type: ignore[attr-defined]
    return words


def pool() -> Pool:
    """The threads, of which there are none before a call is shared."""
    return _pools[0] if _pools else _made()


def _made() -> Pool:
    with starting:
        if not _pools:
            _pools.append(Pool())
    return _pools[0]


_pools: list[Pool] = []
"""The pool of this process, once there is one."""


def threads_available() -> bool:
    """Whether threads can run loops: not where the system has none, nor in a process forked from one that has some."""
    return _started_in() == os.getpid()


@lru_cache(maxsize=1)
def _started_in() -> int | None:
    """The process in which the first call has started the threads; None if there are none."""
    with starting:  # others that call meanwhile wait for what comes of it
        return _started_once()


@lru_cache(maxsize=1)
def _started_once() -> int | None:
    if _lacking():
        return None
    pool().start(max_threads() - 1)
    if not _shares_work():
        switch_off(THREADS, "threads of this system do not share work as they should")
        return None
    share_threads(pool())
    return os.getpid()


def helpers_of(threads: int) -> int:
    """How many threads may help another one where so many are to share a call."""
    return min(threads - 1, pool().helpers.value) if threads > 1 and threads_available() else 0


def why_alone() -> str:
    """Why loops run on one thread."""
    if max_threads() == 1:
        return "the number of threads is limited to one"
    return _lacking() or switched_off.get(THREADS, "this process was forked from one whose threads share work")


@lru_cache(maxsize=1)
def _lacking() -> str:
    """What is missing for threads to share work; empty where nothing is."""
    if os.name != "posix":
        return "threads of POSIX, which share work, are not those of this system"
    missing = [name for name in SYSTEM if getattr(ctypes.CDLL(None), name, None) is None]
    return assembly.why_not() or (f"the system has no {', '.join(missing)}" if missing else "")


def _shares_work() -> bool:
    """Whether each piece of a shared call is done once."""
    functions = [ctypes.CFUNCTYPE(ctypes.c_int32)(pool().functions[name]) for name in ("number", "count")]
    seen: list[tuple[int, ...]] = []
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.append(tuple(function() for function in functions)))
    pool().share(call, None, max_threads())
    pieces = PIECES * min(max_threads(), pool().helpers.value + 1)
    return sorted(seen) == [(number, pieces) for number in range(pieces)]


@lru_cache(maxsize=1)
def places() -> dict[str, int]:
    """The addresses of the functions of threads that loops call."""
    if not _lacking():
        return {name: pool().functions[name.removeprefix("cntk_")] for name in (*PLACES, SHARE, OFFER)}
    alone = {**ALONE, SHARE: NOT_SHARED, OFFER: NOT_SHARED}
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in alone.items()}
