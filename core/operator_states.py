"""What the operators of a graph keep from pass to pass, for checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .graph import depth_first_search
from .variable import Variable

if TYPE_CHECKING:
    from .function import Function


def operator_states(function: Function) -> list[dict[str, Any]]:
    """What the operators keep, such as where random numbers stand, in the order of the graph."""
    return [node.op.create_checkpoint() for node in _operators(function)]


def restore_operator_states(function: Function, states: list[dict[str, Any]]) -> None:
    """Have the operators of the same graph go on from there.

    Raises:
        RuntimeError: it is another graph.
    """
    nodes = _operators(function)
    if len(states) != len(nodes):
        raise RuntimeError(f"checkpoint of a graph with {len(states)} operators given to one with {len(nodes)}")
    for node, state in zip(nodes, states, strict=True):
        if state:
            node.op.restore_from_checkpoint(state)


def _operators(function: Function) -> list[Any]:
    return depth_first_search(function.root_function, lambda node: not isinstance(node, Variable), -1)
