"""The state that the operators of a graph keep between passes, for checkpoints."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from .graph import depth_first_search
from .variable import Variable

if TYPE_CHECKING:
    from .function import Function


def operator_states(function: Function) -> list[dict[str, Any]]:
    """The states of the operators, such as positions in streams of random numbers, in the order of the graph."""
    return [node.op.create_checkpoint() for node in _operators(function)]


def check_operator_states(function: Function, states: Any) -> None:
    """Check that the operators of a graph accept the states, on copies of the operators.

    Raises:
        RuntimeError: it is another graph.
        Exception: whatever an operator raises for a state that is not one of its own.
    """
    nodes = _operators(function)
    if not isinstance(states, list) or len(states) != len(nodes):
        count = len(states) if isinstance(states, list) else "no"
        raise RuntimeError(f"checkpoint of a graph with {count} operators given to one with {len(nodes)}")
    for node, state in zip(nodes, states, strict=True):
        if not isinstance(state, dict):
            raise RuntimeError(f"expected what {node.op.op_name} keeps, a dictionary, got {type(state).__name__} {state!r:.80}")
        if state:
            copy.copy(node.op).restore_from_checkpoint(state)


def restore_operator_states(function: Function, states: list[dict[str, Any]]) -> None:
    """Restore the states of the operators of the same graph.

    Raises:
        RuntimeError: it is another graph.
    """
    check_operator_states(function, states)
    for node, state in zip(_operators(function), states, strict=True):
        if state:
            node.op.restore_from_checkpoint(state)


def _operators(function: Function) -> list[Any]:
    return depth_first_search(function.root_function, lambda node: not isinstance(node, Variable), -1)
