"""Where in the user's program something was made."""

from __future__ import annotations

import sys


def user_line() -> str:
    """File and line of the innermost frame that is not ours."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_ours(module: str) -> bool:
    return (module == "cntk" or module.startswith("cntk.")) and ".tests." not in module
