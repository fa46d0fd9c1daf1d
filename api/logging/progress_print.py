"""Progress writers under the name of CNTK's module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntk.core.extension import plugins
from cntk.logging.report import log_number_of_parameters as log_number_of_parameters

if TYPE_CHECKING:
    from cntk.logging._names import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return ["log_number_of_parameters", *plugins.names_to_import(plugins.progress_writers, __name__)]
        if name in plugins.progress_writers:
            return plugins.shown(plugins.progress_writers, name, __name__)
        raise AttributeError(f"module 'cntk.logging.progress_print' has no '{name}'")
