"""Where in a program a thread is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import dropwhile
from types import FrameType

from ...core.common.user_frame import is_ours

INNER = (
    "cntk.core",
    "cntk.plugins",
    "cntk.train.agreement",
    "cntk.train.criterion",
    "cntk.train.state",
    "cntk.train.team",
    "cntk.train.updates",
)
"""Modules whose functions programs do not call."""


def whereabouts(thread: int) -> str:
    """The line of the user's program at which a thread is, and what of ours it calls there, such as ``Trainer.train_minibatch``."""
    line = ""
    calls: list[str] = []
    for frame in dropwhile(lambda frame: not is_ours(_module(frame)), _frames(thread)):  # may wait in a module of Python's
        if not is_ours(_module(frame)):
            line = f"{frame.f_code.co_filename}, line {frame.f_lineno}"
            break
        name = frame.f_code.co_qualname
        if not _module(frame).startswith(INNER) and ("._" not in name or name.endswith(".__init__")):
            calls.insert(0, name)
    return ", in ".join(filter(None, (line, *calls)))


def _frames(thread: int) -> Iterator[FrameType]:
    """From the innermost outwards."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
