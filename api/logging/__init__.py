"""Progress writers, and tools that look at graphs."""

from __future__ import annotations

from typing import Any

from cntk.core.extension import plugins
from cntk.logging import graph, progress_print
from cntk.logging.graph import depth_first_search, find_all_with_name, find_by_name, find_by_uid, get_node_outputs, plot
from cntk.logging.model_summary import named_parameters, summary
from cntk.logging.report import TraceLevel, get_trace_level, log_number_of_parameters, set_trace_level

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


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*_OWN_NAMES, *plugins.names_to_import(plugins.progress_writers, __name__)]
    if name in plugins.progress_writers:
        return plugins.shown(plugins.progress_writers, name, __name__)
    raise AttributeError(f"module 'cntk.logging' has no '{name}'; registered progress writers are {plugins.progress_writers.names()}")
