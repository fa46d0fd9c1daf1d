"""What costs on a device, counted, and refused as the strictness says.

Strictness 1 has CuPy's rules, and takes work on the backend's stream alone.  While an operator computes, 2 refuses besides whatever waits
for the device or sends it an index array of the host; 3 also refuses memory that is allocated.
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
"""What is refused by strictness, while an operator computes."""

counts: Counter[str] = Counter()
"""How often each has happened while an operator computed."""

_refused = REFUSED[STRICTNESS]


class _Thread(threading.local):
    """What a thread's operators are."""

    def __init__(self) -> None:
        self.computing: list[str] = []


_thread = _Thread()


class Refused(RuntimeError):
    """An operator has done what this strictness refuses."""


@contextmanager
def computing(what: str) -> Iterator[None]:
    """An operator computes."""
    _thread.computing.append(what)
    try:
        yield
    finally:
        _thread.computing.pop()


@contextmanager
def preparing() -> Iterator[None]:
    """What is done once, before anything is captured, as for memory that is kept."""
    held, _thread.computing = _thread.computing, []
    try:
        yield
    finally:
        _thread.computing = held


def note(what: str) -> None:
    """Something has happened that costs.

    Raises:
        Refused: it may not.
    """
    if _thread.computing:
        counts[what] += 1
        if what in _refused:
            raise Refused(f"{_thread.computing[-1]}: {what}")
