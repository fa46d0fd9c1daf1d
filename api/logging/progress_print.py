"""Progress writers under the name of CNTK's module."""

from __future__ import annotations

from typing import Any

from cntk.core import plugins


def __getattr__(name: str) -> Any:
    if name in plugins.progress_writers:
        return plugins.progress_writers.get(name)
    raise AttributeError(f"module 'cntk.logging.progress_print' has no '{name}'")
