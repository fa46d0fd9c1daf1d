"""How many threads share the work of one call."""

from __future__ import annotations

from . import switches
from .environment import processors as processors


def max_threads() -> int:
    """The largest number of threads that share the work of one call."""
    return switches.max_threads.value


def set_max_threads(number: int) -> None:
    """Let at most *number* threads share the work of one call; 1 leaves all of it to the calling thread.

    Raises:
        ValueError: *number* is less than 1.
    """
    if number < 1:
        raise ValueError(f"set_max_threads: expected at least one thread, got {number}")
    switches.max_threads.value = number
