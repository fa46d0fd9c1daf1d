"""Where in the user's program something was made."""

from __future__ import annotations

import sys
import warnings
from typing import Any

_warned: dict[Any, Any] = {}
"""What Python's filters have seen of the warnings."""


def user_line() -> str:
    """File and line of the innermost frame that is not ours."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def warn_at(message: str, line: str) -> None:
    """Warn of something at a line that :func:`user_line` gave, as often as Python's filters say: once."""
    file, _, number = line.rpartition(":")
    warnings.warn_explicit(message, UserWarning, file, int(number), registry=_warned)


def _is_ours(module: str) -> bool:
    return (module == "cntk" or module.startswith("cntk.")) and ".tests." not in module
