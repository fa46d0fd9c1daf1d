"""Random graphs: values and gradients are right, however their memory is shared, and whatever has run before or runs beside.

A graph is drawn together with a reference, which computes every node by itself, row by row, with NumPy.  The reference
also computes with complex numbers: an imaginary step of size h in an input shows in the result as h times the derivative,
which is a finite difference without cancellation, exact to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common.thresholds import overridden
from cntk.core.extension.device import DeviceDescriptor, DeviceKind, all_devices, default_device
from cntk.core.program.chains import kernel_of
from cntk.core.program.passes import available, set_passes
from cntk.core.run.evaluate import set_checked_mode

Key = tuple[int, ...]
Rows = dict[Key, Any]
"""Value of each row: by (), by (sample,) or by (sample, step)."""
Results = dict[tuple[int, int | None], Rows]
"""Rows of each root, by (root, None), and of its gradients, by (root, leaf)."""

STEP = 1e-30
STATIC, BATCH, SEQUENCE = range(3)
"""Dynamic axes of a node, by their number."""
SHAPES = [(), (1,), (2,), (3,), (1, 3), (2, 1), (2, 3), (3, 2)]
LENGTHS = st.lists(st.integers(1, 3), min_size=1, max_size=3)
"""Steps of each sequence of a minibatch; how many there are is the number of samples."""


@pytest.fixture(autouse=True)
def parameters_are_on_the_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """Graphs are drawn, and their parameters made, while a test runs."""
    with default_device(request.getfixturevalue("device")):
        yield


on_every_device = pytest.mark.parametrize("device", all_devices(), ids=lambda device: device.backend.name)


@dataclass(eq=False)
class Node:
    """A value of the graph, and how the reference computes one row of it from a row of each operand."""

    function: Any
    axes: int
    shape: tuple[int, ...]
    operands: tuple[Node, ...] = ()
    compute: Callable[..., Any] = np.copy

    @property
    def mixes_rows(self) -> bool:
        """Whether *compute* gets all rows of its operand, stacked."""
        return self.compute is np.mean


@dataclass
class Graph:
    """Nodes, each after its operands; some of them are leaves, and some are what is computed."""

    leaves: list[Node] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    roots: list[Node] = field(default_factory=list)

    def add(self, node: Node) -> Node:
        self.nodes.append(node)
        if not node.operands:
            self.leaves.append(node)
        return node

    @property
    def mixes_rows(self) -> bool:
        return any(node.mixes_rows for node in self.nodes)

    @cached_property
    def function(self) -> Any:
        """All roots together."""
        return C.combine([root.function for root in self.roots])


# ---- drawing graphs ----


def leaf(random: Random, number: int, usual: tuple[int, ...]) -> Node:
    shape = random.choice([usual, random.choice(SHAPES)])
    kind = random.choice(["batch", "batch", "sequence", "static", "parameter"])
    name = f"{kind}{number}"
    if kind == "parameter":
        return Node(C.parameter(shape, init=0, dtype=np.float64, name=name), STATIC, shape)
    options = {"dtype": np.float64, "needs_gradient": True, "name": name}
    if kind == "sequence":
        return Node(C.sequence.input_variable(shape, **options), SEQUENCE, shape)
    axes = {"dynamic_axes": []} if kind == "static" else {}
    return Node(C.input_variable(shape, **options, **axes), STATIC if axes else BATCH, shape)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": np.sin,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "negate": np.negative,
    "square": np.square,
    "alias": np.copy,
    "stop_gradient": np.real,  # and so without derivative
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {"plus": np.add, "minus": np.subtract, "element_times": np.multiply}


def unary(random: Random, graph: Graph) -> Node:
    x, name = pick(random, graph), random.choice(list(UNARY))
    return Node(getattr(C, name)(x.function), x.axes, x.shape, (x,), UNARY[name])


def binary(random: Random, graph: Graph) -> Node:
    x, name = pick(random, graph), random.choice(list(BINARY))
    alike = random.randrange(3)
    y = pick(random, graph, lambda node: (node.shape, node.axes)[:alike] == (x.shape, x.axes)[:alike])
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        y, shape = x, x.shape
    return Node(getattr(C, name)(x.function, y.function), max(x.axes, y.axes), shape, (x, y), BINARY[name])


def product(random: Random, graph: Graph) -> Node:
    x = pick(random, graph, lambda node: bool(node.shape))
    fitting = [node for node in graph.leaves if node.function.is_parameter and len(node.shape) == 2 and node.shape[0] == x.shape[-1]]
    if fitting and random.random() < 0.5:
        w = fitting[0]
    else:
        shape = (x.shape[-1], random.randint(1, 3))
        w = Node(C.parameter(shape, init=0, dtype=np.float64, name=f"weights{len(graph.leaves)}"), STATIC, shape)
        graph.add(w)
    return Node(C.times(x.function, w.function), x.axes, (*x.shape[:-1], w.shape[1]), (x, w), np.matmul)


def view(random: Random, graph: Graph) -> Node:
    x = pick(random, graph)
    size = int(np.prod(x.shape))
    shape = random.choice([(size,), (1, size), (size, 1), (*x.shape, 1), x.shape[::-1]])
    return Node(C.reshape(x.function, shape), x.axes, shape, (x,), lambda value: value.reshape(shape))


def transpose(random: Random, graph: Graph) -> Node:
    x = pick(random, graph, lambda node: len(node.shape) >= 2)
    order = tuple(random.sample(range(len(x.shape)), len(x.shape)))
    shape = tuple(x.shape[axis] for axis in order)
    return Node(C.transpose(x.function, order), x.axes, shape, (x,), lambda value: value.transpose(order))


def part(random: Random, graph: Graph) -> Node:
    x = pick(random, graph, lambda node: bool(node.shape))
    axis = random.randrange(len(x.shape))
    begin = random.randrange(x.shape[axis])
    end = random.randint(begin + 1, x.shape[axis])
    where = (*[slice(None)] * axis, slice(begin, end))
    shape = (*x.shape[:axis], end - begin, *x.shape[axis + 1 :])
    return Node(C.slice(x.function, axis, begin, end), x.axes, shape, (x,), lambda value: value[where])


def joined(random: Random, graph: Graph) -> Node:
    x = pick(random, graph, lambda node: bool(node.shape))
    y = pick(random, graph, lambda node: node.shape[1:] == x.shape[1:] and bool(node.shape) and {node.axes, x.axes} != {BATCH, SEQUENCE})
    shape = (x.shape[0] + y.shape[0], *x.shape[1:])
    axes = max(x.axes, y.axes)
    return Node(C.splice(x.function, y.function, axis=0), axes, shape, (x, y), lambda *values: np.concatenate(values))


def reduction(random: Random, graph: Graph) -> Node:
    x = pick(random, graph, lambda node: bool(node.shape))
    axis = random.randrange(len(x.shape))
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return Node(C.reduce_sum(x.function, axis), x.axes, shape, (x,), lambda value: np.sum(value, axis=axis, keepdims=True))


def over_rows(random: Random, graph: Graph) -> Node:
    x = pick(random, graph, lambda node: node.axes != STATIC)
    return Node(C.reduce_mean(x.function, C.Axis.all_axes()), STATIC, (), (x,), np.mean)


KINDS = [unary, unary, binary, binary, binary, product, view, transpose, part, joined, reduction, over_rows]


def pick(random: Random, graph: Graph, accept: Callable[[Node], bool] = lambda node: True) -> Node:
    """A node of the graph, or a new input where none is accepted."""
    fitting = [node for node in graph.nodes if accept(node)]
    if fitting:
        return random.choice(random.choice([fitting, fitting[-6:]]))
    made = Node(C.input_variable((2, 3), dtype=np.float64, needs_gradient=True), BATCH, (2, 3))
    return graph.add(made)


def random_graph(seed: int, length: int) -> Graph:
    """A graph of some *length* steps, the first ones being the same for every length."""
    random, graph = Random(seed), Graph()
    usual = random.choice(SHAPES)  # so that many operands have one shape, and gradients are passed on
    for number in range(random.randint(1, 4)):
        graph.add(leaf(random, number, usual))
    others = random.randrange(3)
    for _ in range(length):
        made = graph.add(random.choice(KINDS)(random, graph))
        if made.compute in (np.square, np.multiply, np.matmul):  # which could grow without bound
            graph.add(Node(C.sin(made.function), made.axes, made.shape, (made,), np.sin))
    graph.roots = [*random.sample([node for node in graph.nodes if node.operands], others), sum_of_ends(graph)]
    return graph


def sum_of_ends(graph: Graph) -> Node:
    """The sum of all nodes that are no operands, so that every node has a part in it."""
    used = {operand for node in graph.nodes for operand in node.operands}
    total: Node | None = None
    for end in [node for node in graph.nodes if node not in used]:
        scalar = end if end.shape == () else graph.add(Node(C.reduce_sum(end.function), end.axes, (), (end,), np.sum))
        if total is None:
            total = scalar
        else:
            function = C.plus(total.function, scalar.function)
            total = graph.add(Node(function, max(total.axes, scalar.axes), (), (total, scalar), np.add))
    assert total is not None
    return total


GRAPHS = st.builds(random_graph, st.integers(0, 2**32), st.integers(2, 16))


# ---- data ----


@dataclass
class Minibatch:
    """Lengths of the sequences, and rows of each leaf; the values of parameters are the same in all."""

    lengths: list[int]
    leaves: list[Rows]


def rows_on(axes: int, lengths: Sequence[int]) -> list[Key]:
    """Keys of the rows of a value."""
    if axes == STATIC:
        return [()]
    if axes == BATCH:
        return [(sample,) for sample in range(len(lengths))]
    return [(sample, step) for sample, steps in enumerate(lengths) for step in range(steps)]


def minibatch(graph: Graph, lengths: list[int], seed: int) -> Minibatch:
    leaves = []
    for number, node in enumerate(graph.leaves):
        random = np.random.default_rng((number, 0 if node.function.is_parameter else seed))
        leaves.append({key: random.uniform(-1, 1, node.shape) for key in rows_on(node.axes, lengths)})
        if node.function.is_parameter:
            node.function.value = leaves[-1][()]
    return Minibatch(lengths, leaves)


def selection(graph: Graph, whole: Minibatch, samples: Sequence[int]) -> Minibatch:
    """A minibatch of some samples of another."""
    lengths = [whole.lengths[sample] for sample in samples]
    pairs = zip(graph.leaves, whole.leaves, strict=True)
    leaves = [{key: rows[origin(key, samples)] for key in rows_on(node.axes, lengths)} for node, rows in pairs]
    return Minibatch(lengths, leaves)


def origin(key: Key, samples: Sequence[int]) -> Key:
    """Key in the whole minibatch of a row in a selection of *samples*."""
    return (samples[key[0]], *key[1:]) if key else ()


def shown(rows: Rows, axes: int, lengths: list[int]) -> Any:
    """Rows as users feed and see them."""
    if axes == STATIC:
        return np.asarray(rows[()])
    if axes == BATCH:
        return np.stack(list(rows.values()))
    return [np.stack([rows[sample, step] for step in range(steps)]) for sample, steps in enumerate(lengths)]


def rows_of(value: Any, axes: int, lengths: list[int]) -> Rows:
    """What users see as rows."""
    keys = rows_on(axes, lengths)
    return dict(zip(keys, [value] if axes == STATIC else np.concatenate(value) if axes == SEQUENCE else value, strict=True))


def seed(root: Node, lengths: list[int]) -> Rows:
    """Gradient that the backward pass starts with: any numbers."""
    return {key: np.cos(np.arange(np.prod(root.shape, dtype=int)) + 1.0).reshape(root.shape) for key in rows_on(root.axes, lengths)}


# ---- computing ----


def computed(graph: Graph, given: Minibatch, device: DeviceDescriptor) -> Results:
    """Results of the program, whose values are the same with and without a backward pass."""
    lengths = given.lengths
    function = graph.function
    used = {*function.arguments, *function.parameters}
    arguments = {
        node.function: shown(rows, node.axes, lengths)
        for node, rows in zip(graph.leaves, given.leaves, strict=True)
        if node.function in used and node.function.is_input
    }
    wanted = {number: node for number, node in enumerate(graph.leaves) if node.function in used}
    outputs = function.outputs
    results: Results = {}
    _, values = function.forward(arguments, outputs, device=device)
    for number, (root, output) in enumerate(zip(graph.roots, outputs, strict=True)):
        state, again = function.forward(arguments, outputs, outputs, device)
        for value in outputs:
            np.testing.assert_equal(again[value], values[value])
        start = {output: shown(seed(root, lengths), root.axes, lengths)}
        gradients = function.backward(state, start, [node.function for node in wanted.values()])
        results[number, None] = rows_of(values[output], root.axes, lengths)
        for place, node in wanted.items():
            results[number, place] = rows_of(gradients[node.function], node.axes, lengths)
    return results


def forward(graph: Graph, leaves: list[Rows], lengths: list[int]) -> list[Rows]:
    """Rows of the roots, by the reference."""
    known = dict(zip(graph.leaves, leaves, strict=True))
    for node in graph.nodes:
        if node in known:
            continue
        operands = [(known[operand], operand.axes) for operand in node.operands]
        if node.mixes_rows:
            known[node] = {(): node.compute(np.stack(list(operands[0][0].values())))}
        else:
            known[node] = {key: node.compute(*(rows[key[:axes]] for rows, axes in operands)) for key in rows_on(node.axes, lengths)}
    return [known[root] for root in graph.roots]


def reference(graph: Graph, given: Minibatch) -> Results:
    """The right results."""
    lengths = given.lengths
    results: Results = {(number, None): rows for number, rows in enumerate(forward(graph, given.leaves, lengths))}
    for place, node in enumerate(graph.leaves):
        for number in range(len(graph.roots)):
            results[number, place] = {key: np.zeros(node.shape) for key in given.leaves[place]}
        for key, row in given.leaves[place].items():
            for element in np.ndindex(node.shape):
                stepped = row.astype(complex)
                stepped[element] += 1j * STEP
                leaves = [*given.leaves]
                leaves[place] = {**given.leaves[place], key: stepped}
                for number, (root, rows) in enumerate(zip(graph.roots, forward(graph, leaves, lengths), strict=True)):
                    slopes = [np.sum(start * np.imag(rows[at])) for at, start in seed(root, lengths).items()]
                    results[number, place][key][element] = sum(slopes) / STEP
    return results


def assert_close(actual: Results, expected: Results) -> None:
    for place, rows in actual.items():
        for key, row in rows.items():
            assert_allclose(row, expected[place][key], rtol=1e-9, atol=1e-9)


# ---- laws ----


@on_every_device
@settings(deadline=None, max_examples=100)
@given(GRAPHS, LENGTHS)
def test_values_and_gradients_are_those_of_the_reference(device: DeviceDescriptor, graph: Graph, lengths: list[int]) -> None:
    given = minibatch(graph, lengths, 1)
    assert_close(computed(graph, given, device), reference(graph, given))


@on_every_device
@settings(deadline=None, max_examples=50)
@given(GRAPHS, LENGTHS, LENGTHS)
def test_what_ran_before_and_what_runs_beside_makes_no_difference(
    device: DeviceDescriptor, graph: Graph, lengths: list[int], others: list[int]
) -> None:
    minibatches = [minibatch(graph, lengths, 1), minibatch(graph, others, 2), minibatch(graph, lengths[::-1], 3)]
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


@on_every_device
@settings(deadline=None, max_examples=50)
@given(GRAPHS, LENGTHS, st.data())
def test_the_order_of_samples_makes_no_difference(device: DeviceDescriptor, graph: Graph, lengths: list[int], data: Any) -> None:
    given = minibatch(graph, lengths, 1)
    samples = data.draw(st.permutations(range(len(lengths))))
    permuted = computed(graph, selection(graph, given, samples), device)
    expected = computed(graph, given, device)
    assert_close({place: {origin(key, samples): row for key, row in rows.items()} for place, rows in permuted.items()}, expected)


@on_every_device
@settings(deadline=None, max_examples=50)
@given(GRAPHS.filter(lambda graph: not graph.mixes_rows), LENGTHS, st.integers(0, 3))
def test_splitting_a_minibatch_makes_no_difference(device: DeviceDescriptor, graph: Graph, lengths: list[int], at: int) -> None:
    given = minibatch(graph, lengths, 1)
    together: Results = {}
    for samples in (range(at)[: len(lengths)], range(at, len(lengths))):
        if not samples:
            continue
        for (number, place), rows in computed(graph, selection(graph, given, samples), device).items():
            collected = together.setdefault((number, place), {})
            for key, row in rows.items():
                sums = key == () and graph.roots[number].axes != STATIC  # each part adds to the gradient of what all share
                collected[origin(key, samples)] = row + (collected.get(key, 0) if sums else 0)
    assert_close(together, computed(graph, given, device))


@on_every_device
@settings(deadline=None, max_examples=40)
@given(GRAPHS, LENGTHS, st.sampled_from(list(available())), st.sampled_from([1, 100]))
def test_passes_make_no_difference(device: DeviceDescriptor, graph: Graph, lengths: list[int], name: str, block: int) -> None:
    given = minibatch(graph, lengths, 1)
    try:
        set_passes([])
        expected = computed(graph, given, device)
        with overridden(blocks_of_rows=1), patch.object(NumpyBackend, "block_bytes", block):
            set_passes([name])
            assert_close(computed(graph, given, device), expected)
            set_passes()
            assert_close(computed(graph, given, device), expected)
    finally:
        set_passes()
