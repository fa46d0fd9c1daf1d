"""The order in which operators run, and the recurrences among them: cycles of the graph that go through a delay.

A recurrence is a strongly connected component of the graph (Tarjan 1972): each of its operators depends on every other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..graph.inference import explained
from ..graph.nodes import Primitive
from ..graph.variable import Variable
from ..operators.delay import Delay

Operands = Callable[[Primitive], Iterable[Primitive]]


@dataclass(frozen=True)
class Cycle:
    """Operators that depend on one another, in the order of one step, and the direction in which steps follow.

    Attributes:
        nodes: the operators, each after those that it needs within a step.
        forward: whether a step needs earlier ones, rather than later ones.
    """

    nodes: tuple[Primitive, ...]
    forward: bool


def in_order(roots: Iterable[Variable], owner_of: Callable[[Variable], Primitive | None]) -> list[Primitive | Cycle]:
    """The operators behind *roots*, each after those it needs; those that need one another come together as a :class:`Cycle`.

    Args:
        roots: what is to be computed.
        owner_of: the operator that computes a variable, None for a leaf.

    Raises:
        ValueError: a cycle goes through no delay, or through delays in both directions.
    """

    def operands(node: Primitive) -> Iterator[Primitive]:
        return (owner for variable in node.inputs if (owner := owner_of(variable)) is not None)

    def values(node: Primitive) -> Iterator[Primitive]:
        """Operands whose value is read, not only their layout."""
        read = (variable for i, variable in enumerate(node.inputs) if i not in node.op.traits.layout_inputs)
        return (owner for variable in read if (owner := owner_of(variable)) is not None)

    def within_step(node: Primitive) -> Iterator[Primitive]:
        """Operands whose value is read at the same step."""
        unread = node.op.traits.layout_inputs
        skipped = (0, *unread) if isinstance(node.op, Delay) else unread
        read = (variable for i, variable in enumerate(node.inputs) if i not in skipped)
        return (owner for variable in read if (owner := owner_of(variable)) is not None)

    # Operands that are read for their layout alone may come from a recurrence without being part of it, unlike others.
    order: list[Primitive | Cycle] = []
    starts = [owner for root in roots if (owner := owner_of(root)) is not None]
    for group in _components(starts, operands):
        if not _is_cycle(group, operands):
            order.append(group[0])
            continue
        for inner in _components(group, values, set(group)):
            order.append(_as_cycle(inner, within_step) if _is_cycle(inner, values) else inner[0])
    return order


def _is_cycle(group: Sequence[Primitive], operands: Operands) -> bool:
    return len(group) > 1 or group[0] in operands(group[0])


def _as_cycle(group: Sequence[Primitive], within_step: Operands) -> Cycle:
    shifts = {node: node.op.steps_back for node in group if isinstance(node.op, Delay)}
    if not shifts:
        raise explained(ValueError("the graph has a cycle here that goes through no delay (past_value or future_value)"), group[-1])
    ahead = [node for node, steps in shifts.items() if steps < 0]
    if ahead and len(ahead) < len(shifts):
        raise explained(ValueError("a recurrence goes through past_value and future_value; it must step one way"), ahead[0])
    nodes: list[Primitive] = []
    for part in _components(group, within_step, set(group)):
        if _is_cycle(part, within_step):
            raise explained(ValueError("the graph has a cycle here that goes through no delay (past_value or future_value)"), part[-1])
        nodes.append(part[0])
    return Cycle(tuple(nodes), not ahead)


def _components(starts: Iterable[Primitive], operands: Operands, among: set[Primitive] | None = None) -> Iterator[list[Primitive]]:
    """Strongly connected components, each after those it depends on; only nodes *among* these are seen."""
    number: dict[Primitive, int] = {}
    lowest: dict[Primitive, int] = {}
    open_nodes: list[Primitive] = []
    is_open: set[Primitive] = set()
    for start in starts:
        stack: list[tuple[Primitive, Iterator[Primitive]]] = []
        following: Primitive | None = start if start not in number else None
        while following is not None or stack:
            if following is not None:
                number[following] = lowest[following] = len(number)
                open_nodes.append(following)
                is_open.add(following)
                stack.append((following, iter(operands(following))))
            node, pending = stack[-1]
            following = None
            for operand in pending:
                if among is not None and operand not in among:
                    continue
                if operand not in number:
                    following = operand
                    break
                if operand in is_open:
                    lowest[node] = min(lowest[node], number[operand])
            if following is not None:
                continue
            stack.pop()
            if stack:
                lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[node])
            if lowest[node] == number[node]:
                at = next(i for i in range(len(open_nodes) - 1, -1, -1) if open_nodes[i] is node)
                component = open_nodes[at:]
                del open_nodes[at:]
                is_open.difference_update(component)
                yield component
