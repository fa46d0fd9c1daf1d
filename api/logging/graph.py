"""Looking at graphs: walking them and finding nodes."""

from __future__ import annotations

from typing import Any

from cntk.core.graph import depth_first_search, find_all_with_name, find_by_name, find_by_uid
from cntk.core.variable import Variable


def get_node_outputs(node: Any, depth: int = 0) -> list[Variable]:
    """Outputs of every function behind *node*, blocks looked into to *depth* levels.

    >>> x = C.input_variable(2)
    >>> len(C.logging.graph.get_node_outputs(C.relu(x + 1)))
    2
    """
    functions = depth_first_search(node, lambda item: not isinstance(item, Variable), depth)
    return [output for function in functions for output in function.outputs]


__all__ = ["depth_first_search", "find_all_with_name", "find_by_name", "find_by_uid", "get_node_outputs"]
