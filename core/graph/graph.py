"""Walking graphs: the functions behind a function, in order; finding nodes by name.

All walks use a stack of their own, so that depth is limited by memory and not by Python's recursion limit.
"""

from __future__ import annotations

import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from .variable import Output, Variable

if TYPE_CHECKING:
    from .function import Function
    from .nodes import Primitive

T = TypeVar("T")


class Wiring:
    """How existing primitives are connected, and in what order functions take their arguments.

    Attributes:
        version: another one after each change, so that nothing read off graphs before is used after it.
    """

    def __init__(self) -> None:
        self.version = 0
        self._versions = itertools.count(1)

    def note_change(self) -> None:
        """Tell that operands, or an order of arguments, have changed."""
        self.version = next(self._versions)


wiring = Wiring()


def read_off(method: Callable[..., T]) -> Callable[..., T]:
    """Decorates what reads a function's graph, a method or whatever takes the function first: its answers are kept until graphs change."""

    @wraps(method)
    def answer(self: Any, *arguments: Any) -> T:
        version = wiring.version
        known = self.__dict__.get("_read_off")
        if known is None or known[0] != version:
            known = self._read_off = version, {}
        answers, key = known[1], (method, *arguments)
        if key not in answers:
            answers[key] = method(self, *arguments)
        found: T = answers[key]
        return found

    return answer


def primitives_of(roots: Iterable[Primitive], stop: Callable[[Variable], bool] = lambda _: False) -> list[Primitive]:
    """Every primitive that *roots* depend on, each after those it needs; blocks count as one.

    Args:
        roots: where to start.
        stop: variables beyond which the walk does not go.
    """
    order: list[Primitive] = []
    seen: set[Primitive] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(root.inputs))]
        while stack:
            node, pending = stack[-1]
            for variable in pending:
                if isinstance(variable, Output) and variable.owner not in seen and not stop(variable):
                    seen.add(variable.owner)
                    stack.append((variable.owner, iter(variable.owner.inputs)))
                    break
            else:
                order.append(node)
                stack.pop()
    return order


def leaves_of(root: Primitive, engine_order: bool = False) -> list[Variable]:
    """Inputs, placeholders, parameters and constants that *root* depends on, depth first, each once.

    Args:
        root: where to start.
        engine_order: list the operands of products right before left, as CNTK orders parameters.
    """
    return _leaves(_operands(root, engine_order), {root}, engine_order)


def leaves_behind(variables: Iterable[Variable]) -> list[Variable]:
    """The leaves among *variables*, and those that the others depend on, each once."""
    return _leaves(variables, set(), engine_order=False)


def _leaves(variables: Iterable[Variable], seen: set[Primitive], engine_order: bool) -> list[Variable]:
    found: dict[Variable, None] = {}
    stack = [iter(variables)]
    while stack:
        for variable in stack[-1]:
            if not isinstance(variable, Output):
                found.setdefault(variable)
            elif variable.owner not in seen:
                seen.add(variable.owner)
                stack.append(iter(_operands(variable.owner, engine_order)))
                break
        else:
            stack.pop()
    return list(found)


def _operands(node: Primitive, engine_order: bool) -> Iterable[Variable]:
    return reversed(node.inputs) if engine_order and node.op.traits.reversed_operands else node.inputs


def depth_first_search(root: Any, accept: Callable[[Any], bool], depth: int = 0) -> list[Any]:
    """Nodes (functions and leaf variables) that *accept* takes, each before what it depends on.

    Args:
        root: a function or variable.
        accept: called once with every node.
        depth: how many blocks to enter on the way from *root* to a node, the first ones met; -1 for all.
    """
    return [node for node in _walk(root, depth) if accept(node)]


def _walk(root: Any, depth: int) -> Iterator[Any]:
    """Visit nodes in CNTK's order: a block's content, and what precedes it, comes after all nodes that are queued already."""
    seen: set[Any] = set()
    waiting: deque[tuple[Any, int]] = deque([(_node_of(root), sys.maxsize if depth == -1 else depth)])
    while waiting:
        node, levels = waiting.popleft()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if isinstance(node, Variable):
            continue
        if node.is_block and levels > 0:
            inner, outer = zip(*node.block_arguments_mapping, strict=True) if node.block_arguments_mapping else ((), ())
            seen.update(inner)
            waiting.extend((_node_of(item), levels - 1) for item in (*outer, node.block_root))
        else:
            waiting.extendleft((_node_of(variable), levels) for variable in reversed(node.inputs))


def _node_of(item: Any) -> Any:
    if isinstance(item, Output):
        return item.owner
    return item if isinstance(item, Variable) else item.root_function


def find_all_with_name(root: Any, name: str, depth: int = 0) -> list[Any]:
    """Nodes called *name*; functions come as functions, leaves as variables.

    Raises:
        ValueError: *name* is not a string.
    """
    if not isinstance(name, str):
        raise ValueError(f"find_all_with_name: expected a name (str), got {type(name).__name__}")
    return depth_first_search(root, lambda node: node.name == name, depth)


def find_by_name(root: Any, name: str, depth: int = 0) -> Any:
    """The node called *name*, or None.

    Raises:
        ValueError: *name* is not a string, or several nodes have it.
    """
    found = find_all_with_name(root, name, depth)
    if len(found) > 1:
        raise ValueError(f"{len(found)} nodes are called '{name}'; names must be unique to look a node up, or use find_all_with_name")
    return found[0] if found else None


def find_by_uid(root: Any, uid: str, depth: int = 0) -> Any:
    """The node with this uid, or None.

    Raises:
        ValueError: *uid* is not a string.
    """
    if not isinstance(uid, str):
        raise ValueError(f"find_by_uid: expected a uid (str), got {type(uid).__name__}")
    found = depth_first_search(root, lambda node: node.uid == uid, depth)
    return found[0] if found else None


def function_of(item: Function | Variable) -> Primitive | None:
    """The primitive behind a function or output; None for a leaf."""
    node = _node_of(item)
    return None if isinstance(node, Variable) else node
