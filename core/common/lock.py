"""Locks that do not stay closed: not in a forked process, and not when a signal's handler raises an error."""

from __future__ import annotations

import _thread
import os
import weakref
from typing import Any

_all: set[weakref.ref[ForkSafeLock]] = set()
"""The locks there are.  No function in Python is called when one goes, in which the error of a signal's handler would get lost."""


class ForkSafeLock(_thread.RLock):  # type: ignore[misc]  # which CPython has no objection to
    """A lock that is open in a process that was forked, where the thread that held it is not.

    Its thread may close it several times.  It is closed and opened within the interpreter, where no signal's handler comes between the
    lock and the ``with`` statement that opens it again, as happens where these are functions in Python.
    """

    def __init__(self) -> None:
        _all.add(weakref.ref(self, _all.discard))

    def renew(self) -> None:
        """Open it, whoever holds it."""
        self._at_fork_reinit()  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        return type(self), ()


def _renew() -> None:
    for reference in list(_all):
        lock = reference()
        if lock is not None:
            lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
