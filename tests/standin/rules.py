"""Counting of operations that are expensive on a device, which are refused depending on the strictness.

Strictness 1 follows CuPy's rules, and accepts work on the backend's stream only.  While an operator computes, 2 also refuses operations
that wait for the device or copy a host index array to it; 3 also refuses memory allocation, except for memory that operators keep and for
index arrays of a minibatch.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

STRICTNESS = int(os.environ.get("CNTK_STANDIN", "1"))

READ = "a read of the device"
HOST_INDEX = "an index array of the host"
ALLOCATION = "an allocation"
UPLOAD = "an upload"
OVERLAP = "a copy of an operand that overlaps the result"

REFUSED = {1: (), 2: (READ, HOST_INDEX), 3: (READ, HOST_INDEX, ALLOCATION)}
"""Operations refused while an operator computes, by strictness."""

counts: Counter[str] = Counter()
"""Number of times each operation has happened while an operator computed."""

_refused = REFUSED[STRICTNESS]


class _Thread(threading.local):
    """The operators that a thread is computing."""

    def __init__(self) -> None:
        self.computing: list[str] = []


_thread = _Thread()


class Refused(RuntimeError):
    """Raised if an operator does something that this strictness refuses."""


@contextmanager
def computing(what: str) -> Iterator[None]:
    """Context manager in which an operator computes."""
    _thread.computing.append(what)
    try:
        yield
    finally:
        _thread.computing.pop()


@contextmanager
def preparing() -> Iterator[None]:
    """Context manager for work done once, before any capture, such as allocating memory that is kept."""
    held, _thread.computing = _thread.computing, []
    try:
        yield
    finally:
        _thread.computing = held


def note(what: str) -> None:
    """Count an expensive operation.

    Raises:
        Refused: the operation is refused at this strictness.
    """
    if _thread.computing:
        counts[what] += 1
        if what in _refused:
            raise Refused(f"{_thread.computing[-1]}: {what}")
