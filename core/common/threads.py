"""How many threads share the work of one call."""

from __future__ import annotations

import os


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
