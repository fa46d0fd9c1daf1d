"""Where in a program a thread is."""

from __future__ import annotations

import sys
from types import FrameType

from ...core.source import is_ours

INNER = ("cntk.core", "cntk.plugins", "cntk.train.team", "cntk.train.agreement")
"""Modules whose functions programs do not call."""


def whereabouts(thread: int) -> str:
    """The line of the user's program at which a thread is, and what of ours it calls there, such as ``Trainer.train_minibatch``."""
    frame: FrameType | None = sys._current_frames().get(thread)
    calls: list[str] = []
    while frame is not None and is_ours(module := frame.f_globals.get("__name__", "")):
        name = frame.f_code.co_qualname
        if not module.startswith(INNER) and ("._" not in name or name.endswith(".__init__")):
            calls.insert(0, name)
        frame = frame.f_back
    line = "" if frame is None else f"{frame.f_code.co_filename}, line {frame.f_lineno}"
    return ", in ".join(filter(None, (line, *calls)))
