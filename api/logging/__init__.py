"""Progress writers, and tools that look at graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntk.core.extension import plugins
from cntk.logging import graph as graph
from cntk.logging import progress_print as progress_print
from cntk.logging.graph import depth_first_search as depth_first_search
from cntk.logging.graph import find_all_with_name as find_all_with_name
from cntk.logging.graph import find_by_name as find_by_name
from cntk.logging.graph import find_by_uid as find_by_uid
from cntk.logging.graph import get_node_outputs as get_node_outputs
from cntk.logging.graph import plot as plot
from cntk.logging.model_summary import named_parameters as named_parameters
from cntk.logging.model_summary import summary as summary
from cntk.logging.report import TraceLevel as TraceLevel
from cntk.logging.report import get_trace_level as get_trace_level
from cntk.logging.report import log_number_of_parameters as log_number_of_parameters
from cntk.logging.report import set_trace_level as set_trace_level

_OWN_NAMES = [
    "TraceLevel",
    "depth_first_search",
    "find_all_with_name",
    "find_by_name",
    "find_by_uid",
    "get_node_outputs",
    "get_trace_level",
    "graph",
    "log_number_of_parameters",
    "named_parameters",
    "plot",
    "progress_print",
    "set_trace_level",
    "summary",
]


if TYPE_CHECKING:
    from cntk.logging._names import *
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return [*_OWN_NAMES, *plugins.names_to_import(plugins.progress_writers, __name__)]
        if name in plugins.progress_writers:
            return plugins.shown(plugins.progress_writers, name, __name__)
        raise AttributeError(f"module 'cntk.logging' has no '{name}'; registered progress writers are {plugins.progress_writers.names()}")


def __dir__() -> list[str]:
    return sorted({*globals(), *plugins.names_shown(plugins.progress_writers)})
