"""Random chains of operators on rows and sequences, whole or in pieces, on all paths: against PyTorch in double precision.

How far a number may be off is found by trial: the reference is computed again and again, with every number that is rounded, forwards and
backwards, changed at random by as much as rounding may.  Where these results lie far apart numbers cancel, and so may ours be off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import paths
from bounds import UNIT, check

import cntk as C

NEEDS = ("torch",)

RUNS = 8
"""Times that the reference is computed with changed numbers."""

FACTOR = 64
"""Results may be so many times as far off as those of the changed reference: loops add up in other orders, and functions are off by more
than half a unit in the last place.  Where a comparison decides, numbers so close to each other count as either."""

BLOCK = 512
"""Terms that may be added up one after another."""

SHAPES = ((), (1,), (2,), (3,), (16,), (33,), (1, 3), (2, 1), (2, 3), (3, 2), (4, 8), (2, 3, 2))
MOST = 60_000
"""Elements of an input, at most."""


@dataclass(eq=False)
class Node:
    """A value of the graph, and how the reference computes it for all rows."""

    number: int
    ours: Any
    shape: tuple[int, ...]
    has_rows: bool
    compute: Callable[[Reference], Any]


def trial(random: np.random.Generator) -> str:
    """A graph, and data for it."""
    path = str(random.choice(paths.PATHS))
    dtype = (np.float32, np.float32, np.float32, np.float64, np.float16)[random.integers(5)]
    with paths.on(path):
        drawing = Drawing(random, dtype)
        drawing.draw(int(random.integers(2, 14)))
        right = drawing.reference()
        pieces = drawing.cuts() if random.random() < 0.4 and not drawing.mixes_rows else [drawing.lengths]
        drawing.compare(pieces, *right)
    return f"{np.dtype(dtype)}, {path}, {'whole' if len(pieces) == 1 else 'in pieces'}"


class Reference:
    """Computes all nodes; with a unit every number is off by up to one.

    Attributes:
        values: of the nodes, the rows of all sequences one after another.
    """

    def __init__(self, drawing: Drawing, unit: float = 0, exact: Reference | None = None) -> None:
        import torch

        def changed(x: Any) -> Any:
            return torch.rand_like(x).mul_(2 * unit).add_(1 - unit).mul_(x) if unit else x

        class Rounded(torch.autograd.Function):
            """Its operand, changed by rounding; so is the gradient."""

            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return changed(x)

            @staticmethod
            def backward(ctx: Any, slope: Any) -> Any:
                return changed(slope)

        class Tanh(torch.autograd.Function):
            """Its gradient is worked out from the rounded result, as everywhere: near 1 it is as exact as that."""

            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                y = changed(torch.tanh(x))
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx: Any, slope: Any) -> Any:
                (y,) = ctx.saved_tensors
                return slope * changed(1 - changed(y * y))

        self.torch, self.drawing, self.exact, self.unit = torch, drawing, exact, unit
        self.rounded, self.tanh = Rounded.apply, Tanh.apply
        self.leaves = [torch.tensor(leaf.astype(np.float64), requires_grad=True) for leaf in drawing.data]
        self.values: list[Any] = []
        for node in drawing.nodes:
            self.values.append(self.rounded(node.compute(self)))

    def __getitem__(self, node: Node) -> Any:
        return self.values[node.number]

    def total(self, x: Any, over: int) -> Any:
        """A sum whose partial sums may all be rounded the same way, as those of equal numbers are; long ones are made in blocks."""
        sums = self.rounded(x).sum(over, keepdim=True)
        steps = min(x.shape[over], BLOCK) / FACTOR
        size = x.detach().abs().sum(over, keepdim=True)
        return sums + size * self.unit * steps * (2 * self.torch.rand_like(size) - 1)

    def sigmoid(self, x: Any) -> Any:
        """As :meth:`tanh`."""
        return (self.tanh(x / 2) + 1) / 2

    def decider(self, node: Node) -> Any:
        """What is compared: numbers further off than those of this run, for ours may be."""
        value = self[node].detach()
        return value if self.exact is None else self.exact[node].detach() + FACTOR * (value - self.exact[node].detach())

    def lined_up(self, *nodes: Node) -> list[Any]:
        """Values of one shape, each number rounded where it is used so that the sum of its gradients is."""
        rank = max(len(node.shape) for node in nodes)
        rows = any(node.has_rows for node in nodes)
        return [self.rounded(x) for x in self.torch.broadcast_tensors(*(self._with_axes(self[node], node, rank, rows) for node in nodes))]

    def deciders(self, *nodes: Node) -> list[Any]:
        """As :meth:`lined_up` for what is compared."""
        rank = max(len(node.shape) for node in nodes)
        rows = any(node.has_rows for node in nodes)
        return list(self.torch.broadcast_tensors(*(self._with_axes(self.decider(node), node, rank, rows) for node in nodes)))

    @staticmethod
    def _with_axes(value: Any, node: Node, rank: int, rows: bool) -> Any:
        lead = value.shape[:1] if node.has_rows else (1,) * rows
        return value.reshape((*lead, *(1,) * (rank - len(node.shape)), *node.shape))

    def by_sequence(self, node: Node, function: Callable[[Any], Any]) -> Any:
        """A function of the steps of each sequence."""
        return self.torch.cat([function(steps) for steps in self.torch.split(self.rounded(self[node]), self.drawing.lengths)])


class Drawing:
    """Draws a graph and its reference together."""

    def __init__(self, random: np.random.Generator, dtype: Any) -> None:
        self.random, self.dtype = random, dtype
        self.nodes: list[Node] = []
        self.inputs: list[Node] = []
        self.parameters: list[Node] = []
        self.data: list[Any] = []
        self.mixes_rows = False
        self.is_sequence = bool(random.random() < 0.4)
        if self.is_sequence:
            self.lengths = random.integers(1, 9, random.integers(1, 7)).tolist()
        else:
            self.lengths = [1] * int(random.choice([1, 1, 2, 3, 7, 17, 33, 100, 500, 2000, 6000]))

    # ---- nodes ----

    def add(self, ours: Any, shape: tuple[int, ...], has_rows: bool, compute: Callable[[Reference], Any]) -> Node:
        node = Node(len(self.nodes), ours, shape, has_rows, compute)
        self.nodes.append(node)
        return node

    def leaf(self, shape: tuple[int, ...], has_rows: bool) -> Node:
        """An input or a parameter; some numbers are 0, and some are alike."""
        number, rows = len(self.data), sum(self.lengths)
        if has_rows and rows * prod(shape) > MOST:
            shape = (2, 3)
        array = self.random.standard_normal((rows, *shape) if has_rows else shape) * self.random.choice([0.3, 1, 3])
        if self.random.random() < 0.2:
            array = np.where(self.random.random(array.shape) < 0.3, 0, array)
        if self.random.random() < 0.2:
            array = np.round(array, 1)
        self.data.append(np.asarray(array, self.dtype))
        if has_rows:
            make = C.sequence.input_variable if self.is_sequence else C.input_variable
            ours = make(shape, self.dtype, needs_gradient=True, name=f"x{number}")
        else:
            ours = C.parameter(shape, init=self.data[number] if shape else float(array), dtype=self.dtype, name=f"p{number}")
        node = self.add(ours, shape, has_rows, lambda run: run.leaves[number])
        (self.inputs if has_rows else self.parameters).append(node)
        return node

    def pick(self, accept: Callable[[Node], bool] = lambda node: True, or_else: tuple[int, ...] = (2, 3)) -> Node:
        """A node that is accepted, most often one of the last; a new input of the shape *or_else* where there is none."""
        fitting = [node for node in self.nodes if accept(node)]
        if not fitting:
            return self.leaf(or_else, True)
        return fitting[-1 - min(int(self.random.geometric(0.4)) - 1, len(fitting) - 1)]

    def parameter(self, shape: tuple[int, ...]) -> Node:
        fitting = [node for node in self.parameters if node.shape == shape]
        return fitting[0] if fitting and self.random.random() < 0.5 else self.leaf(shape, False)

    def draw(self, steps: int) -> None:
        usual = SHAPES[self.random.integers(len(SHAPES))]
        for number in range(self.random.integers(1, 4)):
            shape = usual if self.random.random() < 0.7 else SHAPES[self.random.integers(len(SHAPES))]
            self.leaf(shape, number == 0 or self.random.random() < 0.6)
        kinds = [*KINDS, *SEQUENCE_KINDS, *SEQUENCE_KINDS] if self.is_sequence else KINDS
        for _ in range(steps):
            node = kinds[self.random.integers(len(kinds))](self)
            if node is not None and self.random.random() < 0.3:
                calm(self, node)
        within = [node for node in self.nodes if node.has_rows and node not in self.inputs]
        last = within[-1] if within else smooth(self, self.inputs[0])
        self.roots = [last, *(within[int(self.random.integers(len(within)))] for _ in range(self.random.integers(0, 2)) if within)]
        self.weights = [self.random.uniform(-1, 1, root.shape).astype(self.dtype) for root in self.roots]

    # ---- data ----

    def cuts(self) -> list[list[int]]:
        """Lengths of the sequences of each piece of the minibatch."""
        count = len(self.lengths)
        edges = sorted({0, count, *(int(edge) for edge in self.random.integers(0, count + 1, self.random.integers(1, 4)))})
        return [self.lengths[first:last] for first, last in pairwise(edges)]

    def fed(self, first: int, lengths: list[int]) -> dict[Any, Any]:
        """Rows from *first* on, as users feed them."""
        last = first + sum(lengths)
        found = {}
        for node in self.inputs:
            rows = self.data[self.nodes[node.number].compute.__closure__[0].cell_contents][first:last]  # type: ignore[index]
            found[node.ours] = np.split(rows, np.cumsum(lengths)[:-1]) if self.is_sequence else rows
        return found

    # ---- comparing ----

    def reference(self) -> tuple[list[Any], list[Any]]:
        """Values of the roots and gradients of the leaves, each with how far it may be off."""
        import torch

        torch.manual_seed(int(self.random.integers(2**31)))
        exact = Reference(self)
        values, gradients = self._results(exact)
        # At least so much: few runs may all round alike.
        spreads = [np.asarray(np.abs(array) * UNIT[self.dtype] / 4) for array in (*values, *gradients)]
        for _ in range(RUNS):
            changed = self._results(Reference(self, 2 * UNIT[self.dtype], exact))
            for spread, right, found in zip(spreads, (*values, *gradients), (*changed[0], *changed[1]), strict=True):
                np.maximum(spread, np.abs(found - right), out=spread)
        pairs = list(zip((*values, *gradients), spreads, strict=True))
        return pairs[: len(values)], pairs[len(values) :]

    def _results(self, run: Reference) -> tuple[list[Any], list[Any]]:
        total = 0
        for root, weight in zip(self.roots, self.weights, strict=True):
            total = total + (run.rounded(run[root] * run.torch.tensor(weight.astype(np.float64)))).sum()
        gradients = run.torch.autograd.grad(total, run.leaves, allow_unused=True)
        found = [run.torch.zeros_like(leaf) if slope is None else slope for leaf, slope in zip(run.leaves, gradients, strict=True)]
        return [run[root].detach().numpy() for root in self.roots], [slope.numpy() for slope in found]

    def compare(self, pieces: list[list[int]], values: list[Any], gradients: list[Any]) -> None:
        """Compute all pieces, and compare with the reference."""
        total = None
        for root, weight in zip(self.roots, self.weights, strict=True):
            part = root.ours * C.constant(weight, dtype=self.dtype)
            part = C.reduce_sum(part) if root.shape else part
            total = part if total is None else total + part
        used = {*total.arguments, *total.parameters}
        leaves = [node for node in self.nodes if node in self.inputs or node in self.parameters]
        wanted = [node for node in leaves if node.ours in used]
        outputs = list(dict.fromkeys(root.ours.output for root in self.roots))
        found: dict[Any, list[Any]] = {}
        first = 0
        for lengths in pieces:
            fed = {variable: rows for variable, rows in self.fed(first, lengths).items() if variable in used}
            slopes, shown = total.grad(fed, wrt=[node.ours for node in wanted], outputs=[*outputs, total.output])
            slopes = slopes if isinstance(slopes, dict) else {wanted[0].ours: slopes}
            for variable, rows in [*slopes.items(), *shown.items()]:
                found.setdefault(variable, []).append(rows)
            first += sum(lengths)
        what = f"{self} {np.dtype(self.dtype)} {len(pieces)} pieces"
        for root, (right, spread) in zip(self.roots, values, strict=True):
            check(f"{what}: value of {root.ours}", self._joined(found[root.ours.output], root), right, FACTOR * spread)
        for node, (right, spread) in zip(leaves, gradients, strict=True):
            if node.ours in found:
                check(f"{what}: gradient of {node.ours}", self._joined(found[node.ours], node), right, FACTOR * spread)

    def _joined(self, parts: list[Any], node: Node) -> Any:
        """Rows of all pieces, or the sum over them."""
        if not node.has_rows:
            return parts[0] if len(parts) == 1 else np.sum(parts, axis=0, dtype=np.float64).astype(self.dtype)
        return np.concatenate([np.concatenate(part) if isinstance(part, list) else part for part in parts])

    def __str__(self) -> str:
        names = [getattr(getattr(node.ours, "root_function", None), "op_name", "") for node in self.nodes]
        return " ".join(name for name in names if name)


# ---- kinds of nodes ----


SMOOTH: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "sigmoid": (C.sigmoid, lambda run, x: run.sigmoid(x)),
    "tanh": (C.tanh, lambda run, x: run.tanh(x)),
    "sin": (C.sin, lambda run, x: run.torch.sin(x)),
    "cos": (C.cos, lambda run, x: run.torch.cos(x)),
    "negate": (C.negate, lambda run, x: -x),
    "square": (C.square, lambda run, x: x * x),
    "softplus": (C.softplus, lambda run, x: run.torch.logaddexp(x, run.torch.zeros_like(x))),
    "softsign": (C.softsign, lambda run, x: x / (1 + x.abs())),
    "exp": (lambda x: C.exp(C.sin(x)), lambda run, x: run.rounded(run.torch.sin(x)).exp()),
    "log": (lambda x: C.log(C.square(x) + 0.5), lambda run, x: run.rounded(run.rounded(x * x) + 0.5).log()),
    "sqrt": (lambda x: C.sqrt(C.square(x) + 0.25), lambda run, x: run.rounded(run.rounded(x * x) + 0.25).sqrt()),
    "reciprocal": (lambda x: C.reciprocal(C.square(x) + 1), lambda run, x: 1 / run.rounded(run.rounded(x * x) + 1)),
}


def smooth(d: Drawing, x: Node | None = None) -> Node:
    x, (ours, right) = x or d.pick(), SMOOTH[str(d.random.choice(list(SMOOTH)))]
    return d.add(ours(x.ours), x.shape, x.has_rows, lambda run: right(run, run[x]))


def calm(d: Drawing, x: Node) -> Node:
    """What keeps numbers from growing."""
    return d.add(C.tanh(x.ours), x.shape, x.has_rows, lambda run: run.tanh(run[x]))


def moved(d: Drawing) -> Node:
    """A number added, multiplied or subtracted from: large ones let others cancel."""
    x, number = d.pick(), float(d.random.choice([0.5, 1, 2, 30, 1000]))
    if d.dtype is np.float16:
        number = min(number, 30.0)
    ours, right = (
        (lambda v: v + number, lambda v: v + number),
        (lambda v: number - v, lambda v: number - v),
        (lambda v: v * (1 / 8), lambda v: v * (1 / 8)),
        (lambda v: v / 4, lambda v: v / 4),
        (lambda v: (v + number) - number, None),
    )[d.random.integers(5)]
    if right is None:
        return d.add(ours(x.ours), x.shape, x.has_rows, lambda run: run.rounded(run[x] + number) - number)
    return d.add(ours(x.ours), x.shape, x.has_rows, lambda run: right(run[x]))


def kinked(d: Drawing) -> Node:
    x, kind = d.pick(), int(d.random.integers(6))
    last = (lambda v: C.clip(v, -0.75, 0.5), lambda v: C.element_select(C.greater(v, 0.25), v, v * v))
    ours = (C.relu, C.abs, C.leaky_relu, C.elu, *last)[kind]

    def right(run: Reference) -> Any:
        v, by, where = run[x], run.decider(x), run.torch.where
        if kind == 0:
            return where(by > 0, v, 0)
        if kind == 1:
            return v * run.torch.sign(by)
        if kind == 2:
            return where(by >= 0, v, 0.01 * v)
        if kind == 3:
            return where(by >= 0, v, run.torch.expm1(where(by >= 0, 0, v)))
        if kind == 4:
            return where(by > 0.5, 0.5, where(by < -0.75, -0.75, v))
        return where(by > 0.25, v, run.rounded(v * v))

    return d.add(ours(x.ours), x.shape, x.has_rows, right)


def combined(d: Drawing) -> Node:
    x = d.pick()
    y = d.pick(lambda node: node is x or _broadcasts(node.shape, x.shape))
    shape = np.broadcast_shapes(x.shape, y.shape)
    kind = int(d.random.integers(6))
    has_rows = x.has_rows or y.has_rows
    ours = (
        C.plus,
        C.minus,
        C.element_times,
        lambda a, b: a / (C.square(b) + 0.5),
        C.element_max,
        C.log_add_exp,
    )[kind](x.ours, y.ours)

    def right(run: Reference) -> Any:
        a, b = run.lined_up(x, y)
        if kind == 3:
            return a / run.rounded(run.rounded(b * b) + 0.5)
        if kind == 4:
            by = run.deciders(x, y)
            return run.torch.where(by[0] > by[1], a, b)
        return (run.torch.add, run.torch.sub, run.torch.mul, None, None, run.torch.logaddexp)[kind](a, b)

    return d.add(ours, shape, has_rows, right)


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return prod(np.broadcast_shapes(a, b)) <= 200
    except ValueError:
        return False


def product(d: Drawing) -> Node:
    x = d.pick(lambda node: len(node.shape) >= 1 and node.has_rows)
    w = d.parameter((x.shape[-1], int(d.random.choice([1, 2, 3, 16]))))
    return d.add(C.times(x.ours, w.ours), (*x.shape[:-1], w.shape[1]), True, lambda run: run.rounded(run[x]) @ run.rounded(run[w]))


def reduction(d: Drawing) -> Node:
    x = d.pick(lambda node: bool(node.shape))
    axis = int(d.random.integers(len(x.shape)))
    over, kind = axis - len(x.shape), int(d.random.integers(5))
    kinds = (C.reduce_sum, C.reduce_mean, C.reduce_log_sum_exp, C.reduce_sum_square, C.reduce_l2)
    ours = kinds[kind](x.ours + 2 if kind == 4 else x.ours, axis)

    def right(run: Reference) -> Any:
        v = run.rounded(run[x])
        if kind == 2:
            edge = v.detach().amax(over, keepdim=True)
            return run.rounded(run.total(run.rounded(run.rounded(v - edge).exp()), over)).log() + edge
        if kind >= 3:
            v = run.rounded(v + 2 * (kind == 4))
            total = run.rounded(run.total(run.rounded(v * v), over))
            return total if kind == 3 else _root(run, total)
        return run.total(v, over) / (1 if kind == 0 else v.shape[over])

    return d.add(ours, (*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.has_rows, right)


def normalised(d: Drawing) -> Node:
    """Softmax, its logarithm, or each row less its mean by its deviation."""
    x = d.pick(lambda node: bool(node.shape))
    axis = int(d.random.integers(len(x.shape)))
    over, kind = axis - len(x.shape), int(d.random.integers(3))
    if kind == 2:
        mean = C.reduce_mean(x.ours, axis)
        centred = x.ours - mean
        ours = centred / (C.sqrt(C.reduce_mean(centred * centred, axis)) + 0.25)
    else:
        ours = (C.softmax, C.log_softmax)[kind](x.ours, axis)

    def right(run: Reference) -> Any:
        v = run.rounded(run[x])
        if kind < 2:
            v = run.rounded(v - v.detach().amax(over, keepdim=True))
            powers = run.rounded(v).exp()
            total = run.rounded(run.total(powers, over))
            level = total if kind == 0 else run.rounded(total.log())
            level = run.rounded(level.expand(v.shape))
            return run.rounded(powers) / level if kind == 0 else run.rounded(v) - level
        v = run.rounded(v - run.rounded(run.total(v, over) / v.shape[over]))
        deviation = run.rounded(_root(run, run.rounded(run.total(run.rounded(v * v), over) / v.shape[over])))
        return v / run.rounded(deviation + 0.25)

    return d.add(ours, x.shape, x.has_rows, right)


def _root(run: Reference, x: Any) -> Any:
    """The square root, without gradient at 0."""
    return run.torch.where(x > 0, run.torch.where(x > 0, x, 1).sqrt(), 0)


def rearranged(d: Drawing) -> Node:
    x = d.pick(lambda node: bool(node.shape))
    size, kind = prod(x.shape), int(d.random.integers(4))
    lead = (slice(None),) * x.has_rows
    if kind == 0:
        shape = ((size,), (1, size), (size, 1), x.shape[::-1])[d.random.integers(4)]
        return d.add(C.reshape(x.ours, shape), shape, x.has_rows, lambda run: run[x].reshape((*run[x].shape[: x.has_rows], *shape)))
    if kind == 1 and len(x.shape) > 1:
        order = [int(axis) for axis in d.random.permutation(len(x.shape))]
        shape = tuple(x.shape[axis] for axis in order)
        moved = [*range(x.has_rows), *(axis + x.has_rows for axis in order)]
        return d.add(C.transpose(x.ours, order), shape, x.has_rows, lambda run: run[x].permute(moved))
    axis = int(d.random.integers(len(x.shape)))
    if kind == 2:
        y = d.pick(lambda node: node.has_rows == x.has_rows and node.shape[1:] == x.shape[1:] and bool(node.shape))
        if y.shape[1:] == x.shape[1:] and y.has_rows == x.has_rows and prod(x.shape) + prod(y.shape) <= 200:
            shape = (x.shape[0] + y.shape[0], *x.shape[1:])
            return d.add(C.splice(x.ours, y.ours, axis=0), shape, x.has_rows, lambda run: run.torch.cat([run[x], run[y]], int(x.has_rows)))
    first = int(d.random.integers(x.shape[axis]))
    last = int(d.random.integers(first + 1, x.shape[axis] + 1))
    where = (*lead, *(slice(None),) * axis, slice(first, last))
    shape = (*x.shape[:axis], last - first, *x.shape[axis + 1 :])
    return d.add(C.slice(x.ours, axis, first, last), shape, x.has_rows, lambda run: run[x][where])


def over_rows(d: Drawing) -> Node | None:
    """A number from all rows, that goes into each."""
    if d.random.random() < 0.7:
        return None
    x = d.pick(lambda node: node.has_rows)
    d.mixes_rows = True
    return d.add(C.reduce_mean(x.ours, C.Axis.all_axes()), (), False, lambda run: run.rounded(run[x]).mean())


def delayed(d: Drawing) -> Node:
    x, steps, initial = d.pick(lambda node: node.has_rows), int(d.random.integers(1, 4)), float(d.random.choice([0, 0.5]))
    is_future = bool(d.random.random() < 0.5)
    ours = (C.sequence.future_value if is_future else C.sequence.past_value)(x.ours, C.constant(initial, dtype=d.dtype), steps)

    def shifted(run: Reference, rows: Any) -> Any:
        fill = run.torch.full_like(rows[:steps], initial)
        return run.torch.cat([rows[steps:], fill] if is_future else [fill, rows[:-steps]])[-len(rows) :][: len(rows)]

    return d.add(ours, x.shape, True, lambda run: run.by_sequence(x, lambda rows: shifted(run, rows)))


def ends(d: Drawing) -> Node:
    """The first, the last or the sum of all steps, at each step."""
    x, kind = d.pick(lambda node: node.has_rows), int(d.random.integers(3))
    ours = C.sequence.broadcast_as((C.sequence.first, C.sequence.last, C.sequence.reduce_sum)[kind](x.ours), x.ours)

    def right(run: Reference, rows: Any) -> Any:
        one = rows[:1] if kind == 0 else rows[-1:] if kind == 1 else rows.sum(0, keepdim=True)
        return run.rounded(one.expand(rows.shape))

    return d.add(ours, x.shape, True, lambda run: run.by_sequence(x, lambda rows: right(run, rows)))


def recurrence(d: Drawing) -> Node:
    """A recurrent layer as users write it."""
    x = d.pick(lambda node: node.has_rows and len(node.shape) == 1)
    if len(x.shape) != 1:
        return delayed(d)
    w = d.parameter((x.shape[0], x.shape[0]))
    backwards, kind = bool(d.random.random() < 0.3), int(d.random.integers(2))

    def step(h: Any, v: Any) -> Any:
        inner = C.times(h, w.ours) * 0.25 + v
        return C.tanh(inner) if kind == 0 else C.sigmoid(v) * C.tanh(inner) + h * 0.5

    ours = C.layers.Recurrence(step, go_backwards=backwards, initial_state=0)(x.ours)

    def right(run: Reference, rows: Any) -> Any:
        torch, rounded = run.torch, run.rounded
        h, found = torch.zeros_like(rows[:1]), []
        for number in range(len(rows)):
            v = rows[len(rows) - 1 - number : len(rows) - number] if backwards else rows[number : number + 1]
            inner = rounded(rounded(rounded(h) @ rounded(run[w])) * 0.25 + v)
            if kind == 0:
                h = rounded(run.tanh(inner))
            else:
                h = rounded(rounded(rounded(run.sigmoid(v)) * rounded(run.tanh(inner))) + rounded(h * 0.5))
            found.append(h)
        return torch.cat(found[::-1] if backwards else found)

    return d.add(ours, x.shape, True, lambda run: run.by_sequence(x, lambda rows: right(run, rows)))


KINDS = (smooth, smooth, moved, kinked, combined, combined, combined, product, reduction, normalised, rearranged, over_rows)
SEQUENCE_KINDS = (delayed, ends, recurrence)
