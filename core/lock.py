"""Locks that do not stay closed: not in a forked process, and not when a signal's handler raises an error."""

from __future__ import annotations

import _thread
import os
import weakref
from typing import Any

_all: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock(_thread.RLock):
    """A lock that is open in a process that was forked, where the thread that held it is not.

    Its thread may close it several times.  It is closed and opened within the interpreter, where no signal's handler comes between the
    lock and the ``with`` statement that opens it again, as happens where these are functions in Python.
    """

    def __init__(self) -> None:
        _all.add(self)

    def renew(self) -> None:
        """Open it, whoever holds it."""
        self._at_fork_reinit()  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        return type(self), ()


def _renew() -> None:
    for lock in _all:
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
