"""Locks that do not stay closed in a forked process."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_all: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """A lock that is open in a process that was forked, where the thread that held it is not."""

    def __init__(self) -> None:
        self.renew()
        _all.add(self)

    def renew(self) -> None:
        """Open it, whoever holds it."""
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return Lock, ()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()


def _renew() -> None:
    for lock in _all:
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
