"""Work on long arrays, cut into pieces for several threads; no result depends on how many they are."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from queue import SimpleQueue
from typing import Any

from .shape import size_of

PIECE = 2**17
"""Elements that one thread does in less time than it takes to share them with another."""

SHARES = 4
"""Shares of the work for each thread: with more than one, a thread that is held up holds up the others less."""

Work = Callable[[int, int, int], object]
"""What is called with the number of an array, the first element of a piece of it and the one behind its last."""

Piece = tuple[int, int, int]


def processors() -> int:
    """Number of processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_max_threads = processors()


def max_threads() -> int:
    """The largest number of threads that share the work of one call."""
    return _max_threads


def set_max_threads(number: int) -> None:
    """Let at most *number* threads share the work of one call; 1 leaves all of it to the calling thread.

    Raises:
        ValueError: *number* is less than 1.
    """
    global _max_threads
    if number < 1:
        raise ValueError(f"set_max_threads: expected at least one thread, got {number}")
    _max_threads = number


def for_pieces(work: Work, sizes: Sequence[int]) -> None:
    """Call *work* for pieces that together are the arrays of the given sizes, and return when all are done.

    Several threads call it, in no certain order; it should run without Python's lock.  Pieces begin at multiples of ``PIECE``.  The
    calling thread takes part, so that calls from several threads, or from within *work*, never wait for a thread that is busy
    elsewhere.  An error in *work* is raised here.
    """
    size = sum(sizes)
    threads = min(_max_threads, size // PIECE)
    if threads < 2:
        for number, length in enumerate(sizes):
            work(number, 0, length)
        return
    job = _Job(work, _cut(tuple(sizes), -(-size // (threads * SHARES))))
    _pool.hand_out(job.help, threads - 1)
    job.help()
    job.wait()


@lru_cache(maxsize=1024)
def _cut(sizes: tuple[int, ...], length: int) -> list[list[Piece]]:
    """Shares of about *length* elements: pieces of arrays that follow one another."""
    shares: list[list[Piece]] = [[]]
    room = length
    for number, size in enumerate(sizes):
        begin = 0
        while begin < size:
            if room <= 0:
                shares.append([])
                room = length
            end = min(begin + -(-room // PIECE) * PIECE, size)
            shares[-1].append((number, begin, end))
            room -= end - begin
            begin = end
    return shares


def mean(xp: Any, array: Any) -> float:
    """The mean of an array's elements, in an order of addition that depends on the array's size alone.

    >>> from cntk.core.threads import mean
    >>> mean(np, np.array([[1.0, 2.0], [3.0, 6.0]]))
    3.0
    """
    return total(xp, array) / size_of(array.shape)


def total(xp: Any, array: Any) -> float:
    """The sum of an array's elements, in an order of addition that depends on the array's size alone: by pieces."""
    flat = array.reshape(-1)
    size = size_of(array.shape)
    whole = size - size % PIECE
    sums = xp.sum(flat[:whole].reshape(-1, PIECE), axis=1).tolist() if whole else []
    if whole < size:
        sums.append(float(xp.sum(flat[whole:])))
    return float(sum(sums))


class _Job:
    """Shares of work that threads take until none is left."""

    def __init__(self, work: Work, shares: list[list[Piece]]) -> None:
        self._work = work
        self._shares = deque(shares)
        self._left = len(shares)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._error: BaseException | None = None

    def help(self) -> None:
        """Do shares until there are none that another thread has not begun."""
        while True:
            try:
                share = self._shares.popleft()
            except IndexError:
                return
            try:
                for piece in share:
                    self._work(*piece)
            except BaseException as error:
                self._error = error
            with self._lock:
                self._left -= 1
                if not self._left:
                    self._done.set()

    def wait(self) -> None:
        """Wait for the shares that other threads have begun, and raise what went wrong in any."""
        self._done.wait()
        if self._error is not None:
            raise self._error


class _Pool:
    """Threads that wait for something to do; they are made when first needed and end with the process."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._threads = 0
        self._lock = threading.Lock()

    def hand_out(self, task: Callable[[], None], copies: int) -> None:
        """Have *task* called by as many threads as there are copies, when they are free."""
        with self._lock:
            while self._threads < copies:
                try:
                    threading.Thread(target=self._serve, name=f"cntk-{self._threads}", daemon=True).start()
                except RuntimeError:  # the system has no more threads; the calling one does what nobody takes
                    break
                self._threads += 1
        for _ in range(copies):
            self._tasks.put(task)

    def _serve(self) -> None:
        while True:
            self._tasks.get()()


def _new_pool() -> None:
    """Begin without threads: a process that has been forked has none of its parent's."""
    global _pool
    _pool = _Pool()


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_pool)
