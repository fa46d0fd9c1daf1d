"""Looking at graphs: walking them and finding nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cntk.core import graph
from cntk.core.variable import Variable


def depth_first_search(root: Any, visitor: Callable[[Any], bool], depth: int = 0) -> list[Any]:
    """Nodes that a predicate accepts, each before what it depends on.

    Args:
        root: a function or variable.
        visitor: called once with every node, a function or a leaf variable; tells whether to list it.
        depth: how many blocks to look into on the way from *root* to a node; -1 for all.

    >>> x = C.input_variable(2)
    >>> [node.op_name for node in C.logging.depth_first_search(C.relu(x + 1), lambda node: isinstance(node, C.Function))]
    ['ReLU', 'Plus']
    """
    return graph.depth_first_search(root, visitor, depth)


def find_by_name(node: Any, node_name: str, depth: int = 0) -> Any:
    """The node called *node_name* behind *node*, or None; blocks are looked into as :func:`depth_first_search` does.

    Raises:
        ValueError: *node_name* is no string, or several nodes have it.
    """
    return graph.find_by_name(node, node_name, depth)


def find_all_with_name(node: Any, node_name: str, depth: int = 0) -> list[Any]:
    """All nodes called *node_name* behind *node*; blocks are looked into as :func:`depth_first_search` does.

    Raises:
        ValueError: *node_name* is no string.

    >>> x = C.input_variable(2, name='x')
    >>> C.logging.find_all_with_name(C.relu(x), 'x')
    [Input('x', [#], [2])]
    """
    return graph.find_all_with_name(node, node_name, depth)


def find_by_uid(node: Any, node_uid: str, depth: int = 0) -> Any:
    """The node with this uid behind *node*, or None; blocks are looked into as :func:`depth_first_search` does.

    Raises:
        ValueError: *node_uid* is no string.
    """
    return graph.find_by_uid(node, node_uid, depth)


def get_node_outputs(node: Any, depth: int = 0) -> list[Variable]:
    """Outputs of every function behind *node*, blocks looked into to *depth* levels.

    >>> x = C.input_variable(2)
    >>> len(C.logging.graph.get_node_outputs(C.relu(x + 1)))
    2
    """
    functions = depth_first_search(node, lambda item: not isinstance(item, Variable), depth)
    return [output for function in functions for output in function.outputs]


__all__ = ["depth_first_search", "find_all_with_name", "find_by_name", "find_by_uid", "get_node_outputs"]
