"""Locks that are released in a forked process, and when a signal handler raises an error."""

from __future__ import annotations

import _thread
import os
import weakref
from typing import Any

_all: set[weakref.ref[ForkSafeLock]] = set()
"""All locks.  No Python function runs when one is deleted, in which the error of a signal handler would get lost."""


class ForkSafeLock(_thread.RLock):  # type: ignore[misc]  # which CPython has no objection to
    """A lock that is open in a forked process, which does not have the thread that held it.

    Its thread may acquire it several times.  Acquiring and releasing are functions in C, so that no signal handler runs between acquiring
    it and entering the ``with`` block that releases it, as can happen with functions in Python.
    """

    def __init__(self) -> None:
        _all.add(weakref.ref(self, _all.discard))

    def renew(self) -> None:
        """Release the lock, whichever thread holds it."""
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
