"""Progress writers under the name of CNTK's module."""

from __future__ import annotations

from typing import Any

from cntk.core import plugins
from cntk.logging.report import log_number_of_parameters

__all__ = ["log_number_of_parameters", *plugins.progress_writers.names()]


def __getattr__(name: str) -> Any:
    if name in plugins.progress_writers:
        return plugins.progress_writers.get(name)
    raise AttributeError(f"module 'cntk.logging.progress_print' has no '{name}'")
