"""The line of the user's program that created something, or that a warning is about."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

_warned: dict[Any, Any] = {}
"""The registry of warnings that Python's filters use."""


def user_line() -> str:
    """File and line of the innermost frame that is not ours."""
    frame, _ = _frame_of_user()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the innermost line that is not ours, which is shown with the warning, once."""
    _, level = _frame_of_user()
    warnings.warn(message, category, stacklevel=level)


def _frame_of_user() -> tuple[FrameType, int]:
    """The innermost frame that is not ours, and its number as the caller counts levels of the stack."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_passed_over(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    return frame, level


def _is_passed_over(module: str) -> bool:
    """Whether a frame of this module is ours, or of Python's importing something of ours."""
    return is_ours(module) or module.startswith("importlib._bootstrap")


def warn_at(message: str, line: str) -> None:
    """Warn about a line that :func:`user_line` gave, as often as Python's filters allow: once."""
    file, _, number = line.rpartition(":")
    warnings.warn_explicit(message, UserWarning, file, int(number), registry=_warned)


def is_ours(module: str) -> bool:
    """Whether a module of this name is a part of the package."""
    return (module == "cntk" or module.startswith("cntk.")) and ".tests." not in module
