"""Random recurrences: values and gradients are right, whatever goes round in a loop, comes into it and goes out of it.

A graph is drawn together with a reference, which computes each row of each value when it is asked for, with NumPy: it knows nothing
of loops, layouts and stages.  The reference also computes with complex numbers: an imaginary step of size h along a direction shows in
the result as h times the slope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix, issparse
from shares import share

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common.thresholds import overridden
from cntk.core.extension.device import DeviceDescriptor, DeviceKind
from cntk.core.program.chains import kernel_of
from cntk.core.program.passes import set_passes
from cntk.core.run.evaluate import set_checked_mode

pytestmark = pytest.mark.filterwarnings("ignore:(?s).* is given as scipy.sparse.csr_matrix")  # roots may be sparse

Key = tuple[int, ...]
"""What a row belongs to: nothing, a sequence, or a sequence and a step."""
Results = dict[tuple[int, int | None], Any]
"""Rows of each root, by (root, None), and the slope of its weighted sum along a direction of each leaf, by (root, leaf)."""

STEP = 1e-30
SHAPES = [(), (2,), (3,), (2, 3)]


def seeds(count: int) -> Any:
    """Runs a test with so many graphs."""
    return pytest.mark.parametrize("seed", range(count))


@dataclass(eq=False)
class Axes:
    """Dynamic axes: how many there are; the steps of a sequence are those that are fed, or those that a condition picks."""

    count: int
    condition: Node | None = None


STATIC, BATCH, FED = Axes(0), Axes(1), Axes(2)


@dataclass(eq=False, repr=False)
class Node:
    """A value of the graph.

    Attributes:
        function: the variable or function that it is.
        axes: its dynamic axes.
        shape: its static shape.
        operands: what it is computed from, unless it is a leaf.
        compute: gives a row, from the same rows of the operands.
        row: gives a row where it takes others.
        is_sparse: whether it is fed as CSR rows, and has no gradient.
    """

    function: Any
    axes: Axes
    shape: tuple[int, ...]
    operands: tuple[Node, ...] = ()
    compute: Callable[..., Any] | None = None
    row: Callable[[Evaluation, Key], Any] | None = None
    is_sparse: bool = False

    @property
    def is_leaf(self) -> bool:
        return self.compute is None and self.row is None


class Evaluation:
    """The reference: a row is computed when it is first asked for.

    Args:
        lengths: steps of the sequences that are fed.
        leaves: rows of the leaves.
    """

    def __init__(self, lengths: Sequence[int], leaves: dict[Node, dict[Key, Any]]) -> None:
        self.lengths, self.leaves = lengths, leaves
        self._rows: dict[tuple[Node, Key], Any] = {}
        self._picked: dict[tuple[Node, int], list[int]] = {}

    def row(self, node: Node, key: Key) -> Any:
        """A row of a node; for the key of a step, that of its sequence if the node has but one row for it."""
        key = key[: node.axes.count]
        if node.is_leaf:
            return self.leaves[node][key]
        if (node, key) not in self._rows:
            self._rows[node, key] = node.row(self, key) if node.row else self._computed(node, key)
        return self._rows[node, key]

    def _computed(self, node: Node, key: Key) -> Any:
        assert node.compute is not None
        return node.compute(*(self.row(operand, key) for operand in node.operands))

    def steps(self, axes: Axes, sequence: int) -> int:
        """How many steps a sequence has."""
        return self.lengths[sequence] if axes.condition is None else len(self.picked(axes.condition, sequence))

    def picked(self, condition: Node, sequence: int) -> list[int]:
        """The steps that a condition picks."""
        if (condition, sequence) not in self._picked:
            steps = range(self.steps(condition.axes, sequence))
            self._picked[condition, sequence] = [t for t in steps if self.row(condition, (sequence, t)) != 0]
        return self._picked[condition, sequence]

    def keys(self, axes: Axes) -> list[Key]:
        """Keys of all rows."""
        sequences = range(len(self.lengths))
        if axes.count < 2:
            return [(s,) for s in sequences] if axes.count else [()]
        return [(s, t) for s in sequences for t in range(self.steps(axes, s))]

    def rows(self, node: Node) -> dict[Key, Any]:
        return {key: self.row(node, key) for key in self.keys(node.axes)}


@dataclass(repr=False)
class Graph:
    """Nodes, each after its operands but for those of delays; some are leaves, and some are what is computed."""

    nodes: list[Node] = field(default_factory=list)
    roots: list[Node] = field(default_factory=list)
    read: set[Node] = field(default_factory=set)

    def add(self, node: Node) -> Node:
        self.nodes.append(node)
        self.read.update(node.operands)
        return node

    @cached_property
    def leaves(self) -> list[Node]:
        function = self.function
        used = {*function.arguments, *function.parameters}
        return [node for node in self.nodes if node.is_leaf and node.function in used]

    @cached_property
    def function(self) -> Any:
        """All roots together."""
        return C.combine([root.function for root in self.roots])


# ---- drawing graphs ----

Pick = Callable[..., Node]
"""Chooses a node that a condition accepts."""


def leaf(random: Random, axes: Axes, shape: tuple[int, ...]) -> Node:
    is_sparse = axes.count > 0 and len(shape) == 1 and random.random() < 0.25
    options: dict[str, Any] = {"dtype": np.float64, "needs_gradient": not is_sparse}
    if axes.count > 0:
        declare = C.sequence.input_variable if axes is FED else C.input_variable
        return Node(declare(shape, is_sparse=is_sparse, **options), axes, shape, is_sparse=is_sparse)
    if random.random() < 0.3:
        return Node(C.input_variable(shape, dynamic_axes=[], **options), axes, shape)
    return Node(C.parameter(shape, init=0, dtype=np.float64), axes, shape)


def softmax(x: Any) -> Any:
    powers = np.exp(x)
    return powers / np.sum(powers)


UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": np.sin,
    "tanh": np.tanh,
    "negate": np.negative,
    "alias": np.copy,
    "softmax": softmax,
    "stop_gradient": np.real,  # and so without derivative
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "plus": np.add,
    "minus": np.subtract,
    "element_times": lambda x, y: np.sin(x * y),  # which else could grow without bound
    "element_max": lambda x, y: np.where(np.real(x) > np.real(y), x, y),
}


def block(random: Random, pick: Pick) -> Node:
    x, inside = pick(), C.placeholder()
    function = C.as_block(C.sin(inside) - 0.5 * inside, [(inside, x.function)], "Block")
    return Node(function, x.axes, x.shape, (x,), lambda value: np.sin(value) - 0.5 * value)


def wider(x: Node, y: Node) -> Axes:
    return x.axes if x.axes.count >= y.axes.count else y.axes


def go_together(x: Node, y: Node) -> bool:
    return min(x.axes.count, y.axes.count) < 2 or x.axes is y.axes


def unary(random: Random, pick: Pick) -> Node:
    x, name = pick(), random.choice(list(UNARY))
    return Node(getattr(C, name)(x.function), x.axes, x.shape, (x,), UNARY[name])


def binary(random: Random, pick: Pick) -> Node:
    x, name = pick(), random.choice(list(BINARY))
    alike = random.random() < 0.5
    y = pick(lambda node: go_together(x, node) and (node.shape == x.shape if alike else () in (node.shape, x.shape)), any_node=True)
    if random.random() < 0.5:
        x, y = y, x
    function = getattr(C, name)(x.function, y.function)
    made = C.sin(function) if name == "element_times" else function
    return Node(made, wider(x, y), np.broadcast_shapes(x.shape, y.shape), (x, y), BINARY[name])


def product(random: Random, pick: Pick) -> Node:
    x = pick(lambda node: len(node.shape) > 0)
    w = pick(lambda node: len(node.shape) == 2 and node.shape[0] == x.shape[-1] and go_together(x, node), any_node=True)
    shape = (*x.shape[:-1], w.shape[1])
    return Node(C.tanh(C.times(x.function, w.function)), wider(x, w), shape, (x, w), lambda a, b: np.tanh(a @ b))


def view(random: Random, pick: Pick) -> Node:
    x = pick()
    shape = random.choice([(int(np.prod(x.shape, dtype=int)),), x.shape[::-1]])
    return Node(C.reshape(x.function, shape), x.axes, shape, (x,), lambda value: value.reshape(shape))


def transpose(random: Random, pick: Pick) -> Node:
    x = pick(lambda node: len(node.shape) == 2)
    return Node(C.transpose(x.function, (1, 0)), x.axes, x.shape[::-1], (x,), np.transpose)


def part(random: Random, pick: Pick) -> Node:
    x = pick(lambda node: len(node.shape) > 0)
    axis = random.randrange(len(x.shape))
    begin = random.randrange(x.shape[axis])
    end = random.randint(begin + 1, x.shape[axis])
    where = (*[slice(None)] * axis, slice(begin, end))
    shape = (*x.shape[:axis], end - begin, *x.shape[axis + 1 :])
    return Node(C.slice(x.function, axis, begin, end), x.axes, shape, (x,), lambda value: value[where])


def joined(random: Random, pick: Pick) -> Node:
    x = pick(lambda node: len(node.shape) > 0)
    fits = lambda node: len(node.shape) > 0 and node.shape[1:] == x.shape[1:] and go_together(x, node)  # noqa: E731
    y = pick(lambda node: fits(node) and {node.axes.count, x.axes.count} != {1, 2}, any_node=True)
    shape = (x.shape[0] + y.shape[0], *x.shape[1:])
    return Node(C.splice(x.function, y.function, axis=0), wider(x, y), shape, (x, y), lambda a, b: np.concatenate((a, b)))


def reduction(random: Random, pick: Pick) -> Node:
    x = pick(lambda node: len(node.shape) > 0)
    axis = random.randrange(len(x.shape))
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return Node(C.reduce_sum(x.function, axis), x.axes, shape, (x,), lambda value: np.sum(value, axis=axis, keepdims=True))


def repeated(random: Random, pick: Pick) -> Node:
    like = pick(lambda node: node.axes.count == 2)
    x = pick(lambda node: node.axes.count < 2, any_node=True)
    row: Any = lambda known, key: known.row(x, key)  # noqa: E731
    return Node(C.sequence.broadcast_as(x.function, like.function), like.axes, x.shape, (x, like), row=row)


def beginning(random: Random, pick: Pick) -> Node:
    x = pick(lambda node: node.axes.count == 2)
    return Node(C.sequence.is_first(x.function), x.axes, (), (x,), row=lambda known, key: np.float64(key[1] == 0))


def delayed(random: Random, pick: Pick, shift: int = 0, x: Node | None = None) -> Node:
    """A delay: of a node, or of a state, *x*, the operand of which is told later."""
    shift = shift or random.choice([1, 2, 3, -1, -2])
    x = x or pick(lambda node: node.axes.count == 2)
    kind = random.choice(["number", "node", "node"])
    initial = pick(lambda node: node.axes.count < 2 and node.shape in (x.shape, ()), any_node=True, inner=False)
    given = initial.function if kind == "node" else 0.25

    def row(known: Evaluation, key: Key) -> Any:
        sequence, step = key
        source = step - shift
        if 0 <= source < known.steps(made.axes, sequence):
            return known.row(made.operands[0], (sequence, source))
        return np.broadcast_to(known.row(initial, key) if kind == "node" else 0.25, made.shape)

    function = C.sequence.delay(x.function, given, shift)
    made = Node(function, x.axes, x.shape, (x, initial) if kind == "node" else (x,), row=row)
    return made


def end_of_sequence(random: Random, pick: Pick) -> Node:
    x = pick(lambda node: node.axes.count == 2)
    name = random.choice(["first", "last", "reduce_sum"])

    def row(known: Evaluation, key: Key) -> Any:
        rows = [known.row(x, (*key, step)) for step in range(known.steps(x.axes, key[0]))]
        return {"first": rows[0], "last": rows[-1], "reduce_sum": sum(rows)}[name]

    return Node(getattr(C.sequence, name)(x.function), BATCH, x.shape, (x,), row=row)


def condition(random: Random, pick: Pick) -> Node:
    x = pick(lambda node: node.axes.count == 2 and node.shape == ())
    function = C.element_max(C.greater(x.function, 0), C.sequence.is_first(x.function))
    row: Any = lambda known, key: np.float64(key[1] == 0 or np.real(known.row(x, key)) > 0)  # noqa: E731
    return Node(function, x.axes, (), (x,), row=row)


SHAPING = [view, transpose, part, part, joined, joined, reduction]
INSIDE = [unary, unary, binary, binary, binary, product, product, *SHAPING, repeated, beginning, block]
OUTSIDE = [*INSIDE, delayed, end_of_sequence, end_of_sequence]


class NothingFits(Exception):
    """No node has the shape that is wanted, and no leaf may have it."""


class Drawing:
    """A graph in the making."""

    def __init__(self, seed: int) -> None:
        self.random, self.graph = Random(seed), Graph()
        self.inner: list[Node] = []
        self.axes = FED
        self.graph.add(leaf(self.random, FED, self.random.choice(SHAPES)))

    def pick(self, accept: Callable[[Node], bool] = lambda node: True, any_node: bool = False, inner: bool = True) -> Node:
        """A node that can be used now: mostly one from within the loop, if there is one, or a new leaf where none is accepted."""
        random = self.random
        usable = [node for node in self.graph.nodes if node.axes.count < 2 or node.axes is self.axes]
        own = [node for node in self.inner if accept(node)] if inner and random.random() < (0.4 if any_node else 0.8) else []
        fitting = own or [node for node in usable if accept(node)]
        if not inner:
            fitting = [node for node in fitting if node not in self.inner]
        if fitting:
            return random.choice(random.choice([fitting, fitting[-4:]]))
        possible = [Node(None, axes, shape) for axes in (STATIC, BATCH, FED) for shape in SHAPES_OF_LEAVES]
        new = [node for node in possible if (node.axes.count < 2 or node.axes is self.axes) and accept(node)]
        if not new:
            raise NothingFits
        chosen = random.choice(new)
        return self.graph.add(leaf(random, chosen.axes, chosen.shape))

    def add(self, kinds: Sequence[Any]) -> None:
        try:
            made = self.random.choice(kinds)(self.random, self.pick)
        except NothingFits:
            return
        self.graph.add(made)
        if self.inner and made.axes is self.axes:
            self.inner.append(made)

    def pick_steps(self) -> None:
        """Go on with the steps that a condition picks."""
        before = self.axes
        if all(node.shape for node in self.graph.nodes if node.axes is self.axes):
            return
        chosen = self.graph.add(condition(self.random, self.pick))
        self.axes = Axes(2, chosen)
        for x in self.random.choices([node for node in self.graph.nodes if node.axes is before], k=3):
            function = C.sequence.gather(x.function, chosen.function)
            row: Any = lambda known, key, x=x: known.row(x, (key[0], known.picked(chosen, key[0])[key[1]]))  # noqa: E731
            self.graph.add(Node(function, self.axes, x.shape, (x, chosen), row=row))

    def put_back(self) -> None:
        """Go back to the steps that the condition picked from."""
        chosen = self.axes.condition
        assert chosen is not None
        x = self.pick(lambda node: node.axes is self.axes)

        def row(known: Evaluation, key: Key) -> Any:
            steps = known.picked(chosen, key[0])
            return known.row(x, (key[0], steps.index(key[1]))) if key[1] in steps else np.zeros(x.shape)

        self.axes = chosen.axes
        self.graph.add(Node(C.sequence.scatter(x.function, chosen.function), self.axes, x.shape, (x, chosen), row=row))

    def add_loop(self) -> None:
        random, graph = self.random, self.graph
        direction = random.choice([1, -1])
        outside = next(node for node in reversed(graph.nodes) if node.axes is self.axes).function
        places = []
        for _ in range(random.randint(1, 3)):
            shape = random.choice(SHAPES)
            end = C.placeholder(shape, outside.dynamic_axes)
            place = Node(end, self.axes, shape)
            places.append((place, graph.add(delayed(random, self.pick, direction * random.randint(1, 3), place))))
        self.inner = [made for _, made in places]
        for _ in range(random.randint(2, 10)):
            if random.random() < 0.1:
                made = graph.add(delayed(random, self.pick, direction, random.choice(self.inner)))
                self.inner.append(made)
            else:
                self.add(INSIDE)
        states = {}
        for place, made in places:
            state = random.choice(self.inner[-4:])
            if state.shape != place.shape:
                state = self._sine_of_sum(random.choice([node for node in self.inner if node.shape == place.shape]), state)
            if not self._tells_lengths(state):
                outer = [node for node in graph.nodes if node.axes is self.axes and node not in self.inner]
                state = self._sine_of_sum(state, random.choice(outer))
            states[place.function] = state.function.output
            made.operands = (state, *made.operands[1:])
            graph.read.add(state)
        C.combine([node.function for node in self.inner]).replace_placeholders(states)
        self.inner = []

    def _sine_of_sum(self, x: Node, y: Node) -> Node:
        """A new node in the loop, of the shape of *x*."""
        function = C.sin(x.function + C.reduce_sum(y.function))
        made = self.graph.add(Node(function, self.axes, x.shape, (x, y), lambda a, b: np.sin(a + np.sum(b))))
        self.inner.append(made)
        return made

    def _tells_lengths(self, node: Node) -> bool:
        """Whether an operand from outside the loop tells the lengths of the sequences."""
        waiting, seen = [node], {node}
        while waiting:
            node = waiting.pop()
            if node.axes is self.axes and node not in self.inner and not node.function.is_placeholder:
                return True
            found = [operand for operand in node.operands if node in self.inner and operand not in seen]
            waiting.extend(found)
            seen.update(found)
        return False


SHAPES_OF_LEAVES = [*SHAPES, (3, 2), (2, 2), (3, 3), (1, 2), (1, 3), (2, 1), (3, 1), (1, 1), (1,), (6,), (4,), (5,)]


def random_graph(seed: int) -> Graph:
    drawing = Drawing(seed)
    random, graph = drawing.random, drawing.graph
    for number in range(random.randint(1, 3)):
        for _ in range(random.randint(0, 4)):
            drawing.add(OUTSIDE)
        if number and random.random() < 0.5:
            drawing.put_back() if drawing.axes.condition is not None else drawing.pick_steps()
        drawing.add_loop()
    for _ in range(random.randint(0, 4)):
        drawing.add(OUTSIDE)
    within = [node for node in graph.nodes if not node.is_leaf and not node.function.is_placeholder]
    graph.roots = list(dict.fromkeys([*random.sample(within, min(len(within), random.randrange(3))), *sums_of_ends(graph)]))
    return graph


def sums_of_ends(graph: Graph) -> list[Node]:
    """Sums of all nodes on the same axes that are no operands, so that every node has a part in one."""
    sums: dict[Axes, Node] = {}
    for end in [node for node in graph.nodes if node not in graph.read and not node.is_leaf]:
        scalar = Node(C.reduce_sum(end.function), end.axes, (), (end,), np.sum) if end.shape else end
        before = sums.get(end.axes)
        sums[end.axes] = scalar if before is None else Node(before.function + scalar.function, end.axes, (), (before, scalar), np.add)
    return list(sums.values())


# ---- data ----


@dataclass
class Minibatch:
    """Lengths of the sequences, and rows and directions of each leaf; the values of parameters are the same in all."""

    lengths: list[int]
    leaves: dict[Node, dict[Key, Any]]
    directions: dict[Node, dict[Key, Any]]


def minibatch(graph: Graph, lengths: list[int], seed: int) -> Minibatch:
    leaves, directions = {}, {}
    keys = Evaluation(lengths, {})
    for number, node in enumerate(graph.leaves):
        random = np.random.default_rng((number, 0 if node.function.is_parameter else seed))
        leaves[node] = {key: random.uniform(-1, 1, node.shape) for key in keys.keys(node.axes)}
        if node.is_sparse:
            leaves[node] = {key: row * (random.random(node.shape) < 0.5) for key, row in leaves[node].items()}
        directions[node] = {key: random.uniform(0.5, 1, node.shape) for key in keys.keys(node.axes)}
        if node.function.is_parameter:
            node.function.value = leaves[node][()]
    return Minibatch(lengths, leaves, directions)


def selection(whole: Minibatch, sequences: Sequence[int]) -> Minibatch:
    """A minibatch of some sequences of another."""

    def chosen(rows: dict[Key, Any]) -> dict[Key, Any]:
        if () in rows:
            return rows
        return {(place, *key[1:]): row for place, own in enumerate(sequences) for key, row in rows.items() if key[0] == own}

    leaves, directions = ({node: chosen(rows) for node, rows in part.items()} for part in (whole.leaves, whole.directions))
    return Minibatch([whole.lengths[own] for own in sequences], leaves, directions)


def shown(rows: dict[Key, Any], axes: Axes) -> Any:
    """Rows as users feed and see them."""
    if axes.count == 0:
        return np.asarray(rows[()])
    if axes.count == 1:
        return np.stack(list(rows.values()))
    sequences: dict[int, list[Any]] = {}
    for (sequence, _), row in rows.items():
        sequences.setdefault(sequence, []).append(row)
    return [np.stack(steps) for steps in sequences.values()]


def fed(node: Node, rows: dict[Key, Any]) -> Any:
    """Rows as they are fed."""
    data = shown(rows, node.axes)
    if not node.is_sparse:
        return data
    return [csr_matrix(part) for part in data] if isinstance(data, list) else csr_matrix(data)


def flat(value: Any) -> Any:
    """All numbers of a value, which may be sparse."""
    parts = value if isinstance(value, list) else [value]
    return np.concatenate([np.ravel(part.toarray() if issparse(part) else part) for part in parts])


def weights(root: Node, known: Evaluation) -> dict[Key, Any]:
    """What the rows of a root are weighted with."""
    size = int(np.prod(root.shape, dtype=int))
    return {key: np.cos(np.arange(size) + 1.0 + sum(key)).reshape(root.shape) for key in known.keys(root.axes)}


# ---- computing ----


def differentiable(graph: Graph) -> list[Node]:
    return [node for node in graph.leaves if not node.is_sparse]


def arguments_of(given: Minibatch) -> dict[Any, Any]:
    return {node.function: fed(node, rows) for node, rows in given.leaves.items() if node.function.is_input}


def computed(graph: Graph, given: Minibatch, device: DeviceDescriptor) -> Results:
    """Results of the program, whose values are the same with and without a backward pass."""
    function = graph.function
    arguments = arguments_of(given)
    outputs = function.outputs
    results: Results = {}
    _, values = function.forward(arguments, outputs, device=device)
    known = Evaluation(given.lengths, given.leaves)
    wrt = differentiable(graph)
    for number, (root, output) in enumerate(zip(graph.roots, outputs, strict=True)):
        state, again = function.forward(arguments, outputs, outputs, device)
        for value in outputs:
            np.testing.assert_equal(flat(again[value]), flat(values[value]))
        start = {output: shown(weights(root, known), root.axes)}
        gradients = function.backward(state, start, [node.function for node in wrt])
        results[number, None] = flat(values[output])
        for place, node in enumerate(wrt):
            results[number, place] = np.vdot(flat(gradients[node.function]), flat(shown(given.directions[node], node.axes)))
    return results


def reference(graph: Graph, given: Minibatch) -> Results:
    """The right results."""
    known = Evaluation(given.lengths, given.leaves)
    results: Results = {(number, None): flat(shown(known.rows(root), root.axes)) for number, root in enumerate(graph.roots)}
    for place, node in enumerate(differentiable(graph)):
        stepped = {key: row + 1j * STEP * given.directions[node][key] for key, row in given.leaves[node].items()}
        moved = Evaluation(given.lengths, {**given.leaves, node: stepped})
        for number, root in enumerate(graph.roots):
            slopes = [np.sum(weight * np.imag(moved.row(root, key))) for key, weight in weights(root, known).items()]
            results[number, place] = sum(slopes) / STEP
    return results


def assert_close(actual: Results, expected: Results, message: str = "") -> None:
    assert actual.keys() == expected.keys()
    for place, value in actual.items():
        assert_allclose(value, expected[place], rtol=1e-8, atol=1e-8, err_msg=f"{message} root and leaf {place}")


# ---- laws ----


def drawn(seed: int) -> tuple[Graph, Minibatch]:
    """A graph and a minibatch for it."""
    graph = random_graph(seed)
    return graph, minibatch(graph, random_lengths(seed), 1)


def random_lengths(seed: int) -> list[int]:
    """Steps of each sequence of a minibatch."""
    random = Random(seed)
    return [random.randint(1, 5) for _ in range(random.randint(1, 4))]


def levelled(lengths: list[int]) -> list[int]:
    """As many steps in all, of as many sequences, with lengths as equal as can be."""
    each, rest = divmod(sum(lengths), len(lengths))
    return [each + (number < rest) for number in range(len(lengths))]


@seeds(100)
def test_values_and_gradients_are_those_of_the_reference(seed: int, device: DeviceDescriptor) -> None:
    graph, given = drawn(seed)
    assert_close(computed(graph, given, device), reference(graph, given))


@pytest.mark.slow
@pytest.mark.parametrize("start", share(range(100, 2100, 200), 4))
def test_many_more_are_those_of_the_reference(start: int, device: DeviceDescriptor) -> None:
    for seed in range(start, start + 200):
        graph, given = drawn(seed)
        assert_close(computed(graph, given, device), reference(graph, given), f"random_graph({seed})")


@seeds(30)
def test_what_ran_before_and_what_runs_beside_makes_no_difference(seed: int, device: DeviceDescriptor) -> None:
    graph, given = drawn(seed)
    others = [random_lengths(seed + 1), given.lengths[::-1], levelled(given.lengths), given.lengths]
    minibatches = [given, *(minibatch(graph, lengths, number) for number, lengths in enumerate(others, 2))]
    alone = [computed(graph, given, device) for given in minibatches]
    np.testing.assert_equal([computed(graph, given, device) for given in minibatches], alone)
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_equal(list(pool.map(lambda given: computed(graph, given, device), minibatches * 2)), alone * 2)
    set_checked_mode(True)
    try:
        checked = [computed(graph, given, device) for given in minibatches]
    finally:
        set_checked_mode(False)
    if device.type() == DeviceKind.CPU or kernel_of(device.backend) is None:
        np.testing.assert_equal(checked, alone)
    else:  # checked mode has no chains, whose kernels on GPUs have other functions than operators: exp differs in the last place
        for result, expected in zip(checked, alone, strict=True):
            assert_close(result, expected)


@seeds(30)
def test_what_else_is_computed_makes_no_difference(seed: int, device: DeviceDescriptor) -> None:
    graph, given = drawn(seed)
    together = computed(graph, given, device)
    for number, root in enumerate(graph.roots):
        alone = Graph(graph.nodes, [root])
        part = Minibatch(given.lengths, *({node: rows[node] for node in alone.leaves} for rows in (given.leaves, given.directions)))
        for (_, place), value in computed(alone, part, device).items():
            at = None if place is None else differentiable(graph).index(differentiable(alone)[place])
            assert_allclose(value, together[number, at], rtol=1e-8, atol=1e-8)


@seeds(30)
def test_splitting_a_minibatch_makes_no_difference(seed: int, device: DeviceDescriptor) -> None:
    graph, whole = drawn(seed)
    expected = computed(graph, whole, device)
    parts = [computed(graph, selection(whole, [sequence]), device) for sequence in range(len(whole.lengths))]
    for number, root in enumerate(graph.roots):
        if root.axes.count > 0:
            assert_allclose(np.concatenate([part[number, None] for part in parts]), expected[number, None], rtol=1e-8, atol=1e-8)


@seeds(30)
def test_a_clone_computes_the_same(seed: int, device: DeviceDescriptor) -> None:
    graph, given = drawn(seed)
    arguments, function = arguments_of(given), graph.function
    clone = function.clone(C.CloneMethod.share)
    theirs = {copy: arguments[own] for copy, own in zip(clone.arguments, function.arguments, strict=True)}
    _, right = function.forward(arguments, function.outputs, device=device)
    _, found = clone.forward(theirs, clone.outputs, device=device)
    for copy, own in zip(clone.outputs, function.outputs, strict=True):
        np.testing.assert_equal(flat(found[copy]), flat(right[own]))


@seeds(30)
def test_passes_make_no_difference(seed: int, device: DeviceDescriptor) -> None:
    graph, given = drawn(seed)
    with overridden(blocks_of_rows=1), patch.object(NumpyBackend, "block_bytes", 1):
        with_passes = computed(graph, given, device)
    set_passes([])
    try:
        assert_close(with_passes, computed(graph, given, device))
    finally:
        set_passes()
