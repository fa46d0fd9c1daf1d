"""Stacks of recurrent layers computed as one operator, with cuDNN's gates and its arrangement of the weights.

The products with the operand are made for all steps at once, those with the state for all sequences that are alive at a step, and the
gradients of the weights by one product over all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

from ...core.common.shape import Shape, format_shape, size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import ALL
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.spec import Spec
from .dense_product import multiply
from .recurrent_scan import Scan, Step, of_sequences

Weights = tuple[Any, Any, Any, Any]
"""Of one layer and direction: matrices for the operand and the state, and the bias of each."""


class Steps(Protocol):
    """What a kernel computes the steps of cells by."""

    def suit(self, cell: Cell) -> bool:
        """Whether it is the way to compute those of a cell."""

    def forward(self, cell: Cell) -> None:
        """Compute all states from the gates before activation, as far as the operand contributed to them."""

    def backward(self, cell: Cell) -> None:
        """Complete the gradients of the states and gates."""


class Cell:
    """One layer of a stack in one direction.  Subclasses know the gates.

    Args:
        ctx: surroundings of the instruction.
        scan: the steps.
        key: name of the arrays kept from forward to backward.
        weights: its weights.
        x: the operand of the layer, all rows.
        h: the states it computes, all rows.
    """

    vectors: ClassVar[int]
    """Gates: vectors of the size of the state that are computed at each step."""

    def __init__(self, ctx: Context, scan: Scan, key: str, weights: Weights, x: Any, h: Any) -> None:
        self.ctx, self.xp, self.scan, self.key = ctx, ctx.xp, scan, key
        self.of_x, self.of_h, self.bias_x, self.bias_h = weights
        self.x, self.h = x, h
        self.rows, self.size = h.shape
        self.widest = max(step.rows.stop - step.rows.start for step in scan.steps)
        self.gates = self.kept("gates", self.vectors)
        self.work = self.scratch("work", 1, self.widest)

    def kept(self, name: str, count: int = 1) -> Any:
        """Room for *count* vectors at each row, which stays for the backward pass where there is one."""
        shape = (self.rows, count * self.size)
        if self.ctx.training:
            return self.ctx.keep(name + self.key, shape, self.h.dtype)
        return self.ctx.scratch(name, shape, self.h.dtype)

    def scratch(self, name: str, count: int = 1, rows: int | None = None) -> Any:
        """Space for *count* vectors at each of all rows, or of the given number."""
        return self.ctx.scratch(name, (self.rows if rows is None else rows, count * self.size), self.h.dtype)

    def part(self, array: Any, first: int, last: int | None = None) -> Any:
        """Gate *first*, or all from it up to *last*, of an array of gates."""
        return array[:, first * self.size : (first + 1 if last is None else last) * self.size]

    def before(self, states: Any, name: str) -> Any:
        """The state that each row goes on from, 0 at beginnings."""
        found = self.scratch(name)
        self.scan.carry(self.xp, states, found)
        return found

    # ---- values ----

    def forward(self, steps: Steps | None) -> None:
        """Compute all states; *steps*, where they are given and suit, those of each step."""
        xp = self.xp
        xp.matmul(self.x, self.of_x.T, out=self.gates)
        self.add_biases()
        self.products = self.scratch("product", self.vectors, self.widest)
        if steps is not None and steps.suit(self):
            self.clear()
            steps.forward(self)
        else:
            for step in self.scan.steps:
                product = self.products[: step.carried]
                if step.carried:
                    xp.matmul(self.h[step.before], self.of_h.T, out=product)
                self.advance(step, self.gates[step.rows], product)

    def add_biases(self) -> None:
        """Add the biases to the products with the operand."""
        self.gates += self.bias_x
        self.gates += self.bias_h

    def clear(self) -> None:
        """Make room for what each row goes on from, 0 at beginnings."""
        self.earlier = self.scratch("before")
        self.earlier.fill(0)

    def advance(self, step: Step, gates: Any, product: Any) -> None:
        """Compute a step's states from its gates before activation and the products with the states before."""
        raise NotImplementedError(f"{type(self).__name__}.advance")

    # ---- gradients ----

    def backward(self, dh: Any, dx: Any, adds: bool, dweights: Weights | None, steps: Steps | None) -> None:
        """Work out gradients.

        Args:
            dh: gradient of all states, which is completed here.
            dx: where the gradient of the operand goes, or None; *adds* tells whether it is added there.
            dweights: where those of the weights go, or None.
            steps: computes the backward steps, if it supports them.
        """
        xp = self.xp
        self.dh, self.dgates = dh, self.scratch("gradients", self.vectors)
        before, products = self.before(self.h, "before"), self.scratch("product", 1, self.widest)
        self.differentiate(before)
        if steps is not None and steps.suit(self):
            steps.backward(self)
        else:
            for step in reversed(self.scan.steps):
                dgates = self.dgates[step.rows]
                self.retreat(step, dh, dgates)
                if step.carried:
                    product = products[: step.carried]
                    xp.matmul(dgates[: step.carried], self.of_h, out=product)
                    dh[step.before] += product
        if dweights is not None:
            dof_x, dof_h, dbias_x, dbias_h = dweights
            multiply(self.ctx, self.dgates.T, before, dof_h)
            self.ctx.sum_to(self.dgates, dbias_h)
        self.turn_outside(dh)
        if dweights is not None:
            multiply(self.ctx, self.dgates.T, self.x, dof_x)
            self.ctx.sum_to(self.dgates, dbias_x)
        if dx is not None:
            target = self.ctx.scratch("more", dx.shape, dx.dtype) if adds else dx
            xp.matmul(self.dgates, self.of_x, out=target)
            if adds:
                dx += target

    def differentiate(self, before: Any) -> None:
        """Write to ``dgates`` what gradients of the states, or of what else is carried, are to be multiplied by."""
        raise NotImplementedError(f"{type(self).__name__}.differentiate")

    def retreat(self, step: Step, dh: Any, dgates: Any) -> None:
        """Make *dgates* the gradients of a step's gates, as far as the state before contributed to them."""
        gates = dgates.reshape(len(dgates), self.vectors, self.size)
        self.xp.multiply(gates, dh[step.rows, None, :], out=gates)

    def turn_outside(self, dh: Any) -> None:
        """Make ``dgates`` the gradients of the gates as far as the operand contributed to them: the same mostly."""


class TanhCell(Cell):
    """h = tanh(W x + b + R h' + b'), with h' the state before."""

    vectors = 1

    def advance(self, step: Step, gates: Any, product: Any) -> None:
        gates[: step.carried] += product
        self.xp.tanh(gates, out=self.h[step.rows])

    def differentiate(self, before: Any) -> None:
        self.xp.multiply(self.h, self.h, out=self.dgates)
        self.xp.subtract(1, self.dgates, out=self.dgates)


class ReluCell(Cell):
    """h = max(0, W x + b + R h' + b')."""

    vectors = 1

    def advance(self, step: Step, gates: Any, product: Any) -> None:
        gates[: step.carried] += product
        self.xp.maximum(gates, 0, out=self.h[step.rows])

    def differentiate(self, before: Any) -> None:
        self.xp.greater(self.h, 0, out=self.dgates)


class LSTMCell(Cell):
    """Gates i, f, g and o are squashed; c = f c' + i g, h = o tanh c."""

    vectors = 4

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.cells = self.kept("cells")

    def clear(self) -> None:
        super().clear()
        self.cells_earlier = self.scratch("cells before")
        self.cells_earlier.fill(0)

    def advance(self, step: Step, gates: Any, product: Any) -> None:
        xp, carried = self.xp, step.carried
        gates[:carried] += product
        i, f, g, o = (self.part(gates, gate) for gate in range(4))
        _sigmoid(xp, self.part(gates, 0, 2))
        xp.tanh(g, out=g)
        _sigmoid(xp, o)
        cells, work = self.cells[step.rows], self.work[: len(gates)]
        xp.multiply(i, g, out=cells)
        if carried:
            xp.multiply(f[:carried], self.cells[step.before], out=work[:carried])
            cells[:carried] += work[:carried]
        xp.tanh(cells, out=work)
        xp.multiply(work, o, out=self.h[step.rows])

    def differentiate(self, before: Any) -> None:
        xp = self.xp
        i, _, g, o = (self.part(self.gates, gate) for gate in range(4))
        di, df, dg, do = (self.part(self.dgates, gate) for gate in range(4))
        xp.subtract(1, self.gates, out=self.dgates)
        xp.multiply(self.dgates, self.gates, out=self.dgates)
        xp.multiply(di, g, out=di)
        xp.multiply(df, self.before(self.cells, "cells before"), out=df)
        xp.multiply(g, g, out=dg)
        xp.subtract(1, dg, out=dg)
        xp.multiply(dg, i, out=dg)
        squashed, self.through = self.scratch("squashed"), self.scratch("through")
        xp.tanh(self.cells, out=squashed)
        xp.multiply(do, squashed, out=do)
        xp.multiply(squashed, squashed, out=squashed)
        xp.subtract(1, squashed, out=squashed)
        xp.multiply(squashed, o, out=self.through)
        self.dcells = self.scratch("cell gradients")
        self.dcells.fill(0)

    def retreat(self, step: Step, dh: Any, dgates: Any) -> None:
        xp, carried = self.xp, step.carried
        dcells, work = self.dcells[step.rows], self.work[: len(dgates)]
        xp.multiply(dh[step.rows], self.through[step.rows], out=work)
        dcells += work
        inner = dgates.reshape(len(dgates), 4, self.size)
        xp.multiply(inner[:, :3], dcells[:, None, :], out=inner[:, :3])
        xp.multiply(inner[:, 3], dh[step.rows], out=inner[:, 3])
        if carried:
            xp.multiply(dcells[:carried], self.part(self.gates[step.rows], 1)[:carried], out=self.dcells[step.before])


class GRUCell(Cell):
    """Gates r and z are squashed; n = tanh(W x + b + r (R h' + b')), h = (1 - z) n + z h'."""

    vectors = 3

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.inner = self.kept("inner")

    def add_biases(self) -> None:
        self.gates += self.bias_x
        reset = self.part(self.gates, 0, 2)
        reset += self.bias_h[: 2 * self.size]
        self.inner[...] = self.bias_h[2 * self.size :]

    def advance(self, step: Step, gates: Any, product: Any) -> None:
        xp, carried = self.xp, step.carried
        both, r, z, n = self.part(gates, 0, 2), *(self.part(gates, gate) for gate in range(3))
        inner, work = self.inner[step.rows], self.work[: len(gates)]
        if carried:
            both[:carried] += self.part(product, 0, 2)
            inner[:carried] += self.part(product, 2)
        _sigmoid(xp, both)
        xp.multiply(r, inner, out=work)
        xp.add(n, work, out=n)
        xp.tanh(n, out=n)
        xp.negative(n, out=work)
        work[:carried] += self.h[step.before]
        xp.multiply(work, z, out=work)
        xp.add(work, n, out=self.h[step.rows])

    def differentiate(self, before: Any) -> None:
        xp = self.xp
        r, z, n = (self.part(self.gates, gate) for gate in range(3))
        dr, dz, dinner = (self.part(self.dgates, gate) for gate in range(3))
        self.dn, work = self.scratch("outer"), self.scratch("slope")
        xp.subtract(1, z, out=self.dn)
        xp.multiply(n, n, out=work)
        xp.subtract(1, work, out=work)
        xp.multiply(self.dn, work, out=self.dn)
        xp.subtract(1, self.gates, out=self.dgates)
        xp.multiply(self.dgates, self.gates, out=self.dgates)
        xp.multiply(dr, self.dn, out=dr)
        xp.multiply(dr, self.inner, out=dr)
        xp.subtract(before, n, out=work)
        xp.multiply(dz, work, out=dz)
        xp.multiply(self.dn, r, out=dinner)

    def retreat(self, step: Step, dh: Any, dgates: Any) -> None:
        carried = step.carried
        if carried:
            work = self.work[:carried]
            self.xp.multiply(dh[step.rows][:carried], self.part(self.gates[step.rows], 1)[:carried], out=work)
            dh[step.before] += work
        super().retreat(step, dh, dgates)

    def turn_outside(self, dh: Any) -> None:
        self.xp.multiply(self.dn, dh, out=self.part(self.dgates, 2))


def _sigmoid(xp: Any, x: Any) -> None:
    """The logistic function in place, as a hyperbolic tangent, which does not overflow."""
    xp.multiply(x, 0.5, out=x)
    xp.tanh(x, out=x)
    xp.multiply(x, 0.5, out=x)
    xp.add(x, 0.5, out=x)


CELLS: dict[str, type[Cell]] = {"lstm": LSTMCell, "gru": GRUCell, "rnnReLU": ReluCell, "rnnTanh": TanhCell}


class OptimizedRNNStack(SequenceOp):
    """Recurrent layers on top of each other."""

    op_name = "OptimizedRNNStack"
    keep_inputs = ALL
    keep_output = True
    by_rows = False
    whole_sequences = True
    bidirectional: bool
    num_layers: int
    hidden_size: int
    recurrent_op: str

    # ---- types ----

    def infer(self, x: Spec, weights: Spec) -> Spec:
        self._check(x)
        if x.is_concrete and weights.is_concrete and size_of(weights.dims) != self._size(x.dims[0]):
            raise ValueError(
                f"the weights have the shape {format_shape(weights.shape)}, but {self._size(x.dims[0])} numbers are needed; "
                "let their shape be inferred: C.parameter((C.InferredDimension, C.InferredDimension))"
            )
        return self.common(x, weights).but(shape=(self._width,))

    def resolve(self, x: Spec, weights: Spec) -> Sequence[Shape]:
        self._check(x)
        if not x.is_concrete:
            return [x.dims, weights.dims]
        size = self._size(x.dims[0])
        return [x.dims, (size,) if weights.rank == 1 else (size // self.hidden_size, self.hidden_size)]

    def _check(self, x: Spec) -> None:
        if x.rank != 1:
            raise ValueError(f"the operand must be a vector at each step, got the shape {format_shape(x.shape)}")
        if x.axes == ():
            raise ValueError("the operand must be sequences; declare it with sequence.input_variable")

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _width(self) -> int:
        return self.hidden_size * self._directions

    # ---- the weights ----

    def _shapes(self, width: int) -> Iterator[Shape]:
        """Shapes of the parts of the weights: all matrices, then all biases, of each layer and direction."""
        gates = CELLS[self.recurrent_op].vectors * self.hidden_size
        for layer in range(self.num_layers):
            for _ in range(self._directions):
                yield gates, self._width if layer else width
                yield gates, self.hidden_size
        for _ in range(self.num_layers * self._directions * 2):
            yield (gates,)

    def places(self, width: int) -> Iterator[tuple[int, Shape]]:
        """Where each part of the weights begins, and its shape, for an operand of vectors of so many numbers."""
        begin = 0
        for shape in self._shapes(width):
            yield begin, shape
            begin += size_of(shape)

    def _size(self, width: int) -> int:
        """Number of weights, without a look at each layer: a file may claim any number of them."""
        gates = CELLS[self.recurrent_op].vectors * self.hidden_size
        inputs = width + (self.num_layers - 1) * self._width
        return self._directions * gates * (inputs + self.num_layers * (self.hidden_size + 2))

    def _parts(self, weights: Any, width: int) -> list[Weights]:
        """Weights of each layer and direction, layer by layer, as parts of an array of all."""
        flat = weights.reshape(-1)
        parts = [flat[begin : begin + size_of(shape)].reshape(shape) for begin, shape in self.places(width)]
        half = len(parts) // 2
        matrices, biases = parts[:half], parts[half:]
        return list(zip(matrices[::2], matrices[1::2], biases[::2], biases[1::2], strict=True))

    # ---- values ----

    def flop(self, ctx: Context, out: Any, x: Any, weights: Any) -> int:
        """At each row a multiplication and an addition for each weight of a matrix."""
        matrices = [shape for shape in self._shapes(x.shape[1]) if len(shape) == 2]
        return 2 * len(out) * sum(map(size_of, matrices))

    def forward(self, ctx: Context, out: Any, x: Any, weights: Any, steps: Steps | None = None) -> None:
        scans, parts = self._scans(ctx), self._parts(weights, x.shape[1])
        for layer, (below, above) in enumerate(self._levels(ctx, x, out)):
            for direction, scan in enumerate(scans):
                self._cell(ctx, scan, layer, direction, parts, below, above).forward(steps)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, weights: Any, steps: Steps | None = None) -> None:
        dx, dweights = grads
        scans, parts = self._scans(ctx), self._parts(weights, x.shape[1])
        dparts = None if dweights is None else self._parts(dweights, x.shape[1])
        dh = ctx.scratch("state gradients", (len(x), self.hidden_size), out.dtype)
        dabove = grad
        for layer, (below, above) in reversed(list(enumerate(self._levels(ctx, x, out)))):
            dbelow = ctx.scratch(f"gradients {layer % 2}", below.shape, out.dtype) if layer else dx
            for direction, scan in enumerate(scans):
                cell = self._cell(ctx, scan, layer, direction, parts, below, above)
                ctx.xp.copyto(dh, cell.part(dabove, direction))
                dpart = None if dparts is None else dparts[layer * len(scans) + direction]
                cell.backward(dh, dbelow, direction == 1, dpart, steps)
            dabove = dbelow

    def _scans(self, ctx: Context) -> list[Scan]:
        """A scan for each direction, made when a layout is first seen."""
        layout: Layout | None = ctx.layouts[0]
        assert layout is not None
        if ctx.state is None or ctx.state[0] is not layout:
            ctx.state = layout, [Scan(of_sequences(layout), backwards) for backwards in (False, True)[: self._directions]]
        scans: list[Scan] = ctx.state[1]
        return scans

    def _levels(self, ctx: Context, x: Any, out: Any) -> list[tuple[Any, Any]]:
        """Operand and result of each layer, all rows."""
        between = [self._between(ctx, layer, out) for layer in range(self.num_layers - 1)]
        return list(zip([x, *between], [*between, out], strict=True))

    def _between(self, ctx: Context, layer: int, out: Any) -> Any:
        """Where the result of a layer below the last goes."""
        if ctx.training:
            return ctx.keep(f"layer {layer}", out.shape, out.dtype)
        return ctx.scratch(f"layer {layer % 2}", out.shape, out.dtype)

    def _cell(self, ctx: Context, scan: Scan, layer: int, direction: int, parts: Sequence[Weights], below: Any, above: Any) -> Cell:
        number = layer * self._directions + direction
        states = above[:, direction * self.hidden_size : (direction + 1) * self.hidden_size]
        return CELLS[self.recurrent_op](ctx, scan, f" {number}", parts[number], below, states)


@operator(
    sample(Operand((2,), kind="sequence"), Operand((7, 3), kind="parameter"), hidden_size=3, num_layers=1, recurrent_op="rnnTanh"),
    sample(Operand((2,), kind="sequence"), Operand((48, 2), kind="parameter"), hidden_size=2, num_layers=2, recurrent_op="lstm"),
    sample(
        Operand((1,), kind="sequence"),
        Operand((78, 2), kind="parameter"),
        hidden_size=2,
        num_layers=2,
        bidirectional=True,
        recurrent_op="gru",
    ),
    sample(Operand((2,)), Operand((12, 2), kind="parameter"), hidden_size=2, num_layers=1, bidirectional=True, recurrent_op="rnnReLU"),
)
def optimized_rnnstack(
    operand: TensorLike,
    weights: TensorLike,
    hidden_size: int,
    num_layers: int,
    bidirectional: bool = False,
    recurrent_op: str = "lstm",
    name: str = "",
) -> Function:
    """Recurrent layers on top of each other, computed at once; with the arrangement of weights that cuDNN has.

    The weights hold, one after the other, for each layer (and direction) the matrix for the operand and that for the state, gate
    below gate, then for each layer (and direction) a bias for the operand and one for the state.  Gates of LSTMs come in the order
    input, forget, candidate, output; those of GRUs reset, update, candidate, and these reset the product with the state, not the
    state itself.

    Args:
        operand: sequences of vectors.
        weights: parameter with all weights.  Dimensions of its shape that are to be inferred make it ``(n, hidden_size)``.
        hidden_size: size of the state of each layer and direction.
        num_layers: number of layers.
        bidirectional: whether each layer consists of one that goes forwards and one that goes backwards, results side by side.
        recurrent_op: ``'lstm'``, ``'gru'``, ``'rnnReLU'`` or ``'rnnTanh'``.
        name: name of the Function.

    Returns:
        the states of the last layer at each step: vectors of *hidden_size* numbers, twice as many where *bidirectional*.

    Raises:
        ValueError: another *recurrent_op*; a size or number that is not positive; an operand that is not a sequence of vectors; weights
            of the wrong size.

    Source:
        NVIDIA, *cuDNN API reference*, ``cudnnRNNMode_t``; the recurrent layers of PyTorch compute the same.

    >>> x = C.sequence.input_variable(4)
    >>> W = C.parameter((C.InferredDimension, 4), init=C.glorot_uniform())
    >>> C.optimized_rnnstack(x, W, 8, 2, bidirectional=True).shape
    (16,)
    >>> W.shape
    (320, 8)
    """
    if recurrent_op not in CELLS:
        raise ValueError(f"optimized_rnnstack: unknown recurrent_op {recurrent_op!r}; it is one of {', '.join(CELLS)}")
    for what, number in (("hidden_size", hidden_size), ("num_layers", num_layers)):
        if number <= 0:
            raise ValueError(f"optimized_rnnstack: {what} must be positive, got {number}")
    op = OptimizedRNNStack(
        bidirectional=bool(bidirectional), num_layers=int(num_layers), hidden_size=int(hidden_size), recurrent_op=recurrent_op
    )
    return op(operand, weights, name=name)
