"""Locks that do not stay closed in a forked process."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_all: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """A lock that is open in a process that was forked, where the thread that held it is not."""

    _kind: Any = threading.Lock

    def __init__(self) -> None:
        self.renew()
        _all.add(self)

    def renew(self) -> None:
        """Open it, whoever holds it."""
        self._lock = self._kind()

    def __reduce__(self) -> Any:
        return type(self), ()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()


class RLock(Lock):
    """The same for a lock that its thread may close several times."""

    _kind = threading.RLock


def _renew() -> None:
    for lock in _all:
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
