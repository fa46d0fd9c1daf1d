"""Compiled code: whether it is enabled, and which parts of it cannot be used on this machine."""

from __future__ import annotations

import os
from functools import cache

from ..common.environment import switch_in
from ..common.lock import ForkSafeLock
from ..common.user_frame import warn_user

SWITCH = "CNTK_FUSED"
"""The environment variable that turns off all compiled code if it is 0."""

compiling = ForkSafeLock()
"""Held while machine code is compiled or loaded.  LLVM has locks of its own, so no process may be forked meanwhile."""

switched_off: dict[str, str] = {}
"""Parts that cannot be used, and why."""


class Unusable(ImportError):
    """Compiled code cannot be used here; the user has been warned."""


def is_wanted() -> bool:
    """Whether compiled code may be used at all.

    Raises:
        ValueError: the environment variable is neither 0 nor 1.
    """
    return switch_in(SWITCH, True)


def switch_off(part: str, why: str) -> None:
    """Note that a part cannot be used, and warn about it the first time; ``cntk doctor`` repeats it."""
    if part not in switched_off:
        switched_off[part] = why
        warn_user(f"{part} are switched off: {why}; results are the same, but take longer", RuntimeWarning)


@cache
def warn_not_cached(why: str) -> None:
    """Warn, once, that compiled code cannot be cached, so that every process compiles it again."""
    warn_user(f"compiled code cannot be cached, so every process compiles it again: {why}", RuntimeWarning)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=compiling.__enter__, after_in_parent=compiling.__exit__)
