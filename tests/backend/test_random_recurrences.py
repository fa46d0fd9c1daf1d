"""Random recurrences: values and gradients are right, whatever goes round in a loop, comes into it and goes out of it.

A graph is drawn together with a reference, which computes each step of each value when it is asked for, one number at a time, with
NumPy; it knows of no loops, layouts and stages.  The reference also computes with complex numbers: an imaginary step of size h along a
direction shows in the result as h times the slope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import cntk as C
from cntk.core.device import DeviceDescriptor, all_devices
from cntk.core.evaluate import set_checked_mode

Key = tuple[int, ...]
"""What a row belongs to: nothing, a sequence, or a sequence and a step."""
Read = Callable[["Node", Key], Any]
"""Gives the row of a node."""

STEP = 1e-30
STATIC, BATCH = "static", "batch"
SHAPES = [(), (2,), (3,), (2, 3)]
LENGTHS = st.lists(st.integers(1, 5), min_size=1, max_size=4)
"""Steps of each sequence of a minibatch."""
on_every_device = pytest.mark.parametrize("device", all_devices(), ids=lambda device: device.backend.name)


@dataclass(eq=False)
class Node:
    """A value of the graph.

    Attributes:
        function: the variable or function it is.
        axes: static, batch, or the node whose steps it has as many of: the first input, or a condition that picks steps of others.
        shape: its static shape.
        operands: what *compute* takes a row of each of.
        row: gives a row where it is not computed from the same rows of the operands alone.
    """

    function: Any
    axes: Any
    shape: tuple[int, ...]
    operands: tuple[Node, ...] = ()
    compute: Callable[..., Any] | None = None
    row: Callable[[Evaluation, Key], Any] | None = None

    @property
    def is_leaf(self) -> bool:
        return self.compute is None and self.row is None

    @property
    def is_sequence(self) -> bool:
        return isinstance(self.axes, Node) or self.axes is None


class Evaluation:
    """The reference: rows are computed when they are asked for, once.

    Args:
        lengths: steps of the sequences that are fed.
        leaves: rows of the leaves.
    """

    def __init__(self, lengths: Sequence[int], leaves: dict[Node, dict[Key, Any]]) -> None:
        self.lengths, self.leaves = lengths, leaves
        self._known: dict[tuple[Node, Key], Any] = {}
        self._steps: dict[tuple[Node, int], list[int]] = {}

    def row(self, node: Node, key: Key) -> Any:
        """A row of a node; of one on fewer axes the one that counts there."""
        key = key[: 0 if node.axes is STATIC else 1 if node.axes is BATCH else 2]
        if node.is_leaf:
            return self.leaves[node][key]
        if (node, key) not in self._known:
            if node.row is not None:
                made = node.row(self, key)
            else:
                assert node.compute is not None
                made = node.compute(*(self.row(operand, key) for operand in node.operands))
            self._known[node, key] = made
        return self._known[node, key]

    def count(self, axes: Any, sequence: int) -> int:
        """How many steps a sequence has."""
        return len(self.picked(axes, sequence)) if axes.operands else self.lengths[sequence]

    def picked(self, condition: Node, sequence: int) -> list[int]:
        """The steps that a condition picks."""
        if (condition, sequence) not in self._steps:
            steps = range(self.count(condition.axes, sequence))
            self._steps[condition, sequence] = [t for t in steps if np.real(self.row(condition, (sequence, t))) != 0]
        return self._steps[condition, sequence]

    def keys(self, axes: Any) -> list[Key]:
        """Keys of all rows."""
        if axes is STATIC:
            return [()]
        sequences = range(len(self.lengths))
        return [(s,) for s in sequences] if axes is BATCH else [(s, t) for s in sequences for t in range(self.count(axes, s))]


@dataclass
class Graph:
    """Nodes, each after its operands but for those of delays; some are leaves, and some are what is computed."""

    nodes: list[Node] = field(default_factory=list)
    roots: list[Node] = field(default_factory=list)

    def add(self, node: Node) -> Node:
        self.nodes.append(node)
        return node

    @property
    def leaves(self) -> list[Node]:
        return [node for node in self.nodes if node.is_leaf]

    @cached_property
    def function(self) -> Any:
        """All roots together."""
        return C.combine([root.function for root in self.roots])
