"""Losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.common.shape import broadcast, size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.cost import numbers_in
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import ALL, Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.types.axis import Axis
from ...core.types.context import Context
from ...core.types.spec import Spec
from .axes import with_dim
from .targets import Rows, common_rank, dense, lined_up, loss_shape


class CrossEntropyWithSoftmax(Op):
    """log Σ exp(z) − Σ z·y along an axis, for logits z and a target y that may be sparse."""

    op_name = "CrossEntropyWithSoftmax"
    traits = Traits(compares=True)
    by_rows = False
    keep_inputs = ALL
    sparse_inputs = (1,)

    def infer(self, output: Spec, target: Spec) -> Spec:
        return self.common(output, target).but(shape=loss_shape(output, target, self.axis, self.op_name))

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """For each logit a maximum, a difference, an exponential and a sum, for each number of the target a product and a sum."""
        logits, target = inputs
        return 4 * size_of(logits.shape) + 2 * numbers_in(target)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp, rows = ctx.xp, ctx.state
        if rows is None or rows.out is not out:
            rows = ctx.state = _SoftmaxRows(ctx, out, inputs, self.axis)
        z, y, powers, total, edge, level = rows.z, rows.y, rows.powers, rows.total, rows.edge, rows.level
        rows.find_edge(ctx)
        xp.subtract(z, edge, out=powers)
        xp.exp(powers, out=powers)
        ctx.sum_to(powers, total)
        xp.log(total, out=level)
        if rows.look():
            picked, places = rows.picked, rows.places
            xp.add(rows.starts, y.indices, out=places)
            ctx.backend.take(z, places, None, picked, "clip")  # other modes copy
            if not y.is_of_ones:
                xp.multiply(picked, y.data, out=picked)
        else:
            products = ctx.scratch("products", rows.full, z.dtype)
            xp.multiply(z, dense(ctx, y, rows.rank), out=products)
            ctx.sum_to(products, out)
        xp.subtract(edge, out, out=out)  # first what is large: the logarithm would be lost in it
        xp.add(out, level, out=out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp, rows = ctx.xp, ctx.state
        z, y = rows.z, rows.y
        dz, dy = rows.lined_up(grads)
        if dz is not None:
            slope = dz if dz.shape == rows.full else ctx.scratch("slope", rows.full, z.dtype)
            xp.divide(grad, rows.total, out=rows.scale)
            xp.multiply(rows.powers, rows.scale, out=slope)
            if rows.is_one_hot:
                share = grad.reshape(-1)
                slope.reshape(-1)[rows.places] -= share if y.is_of_ones else y.data * share
            else:
                products = ctx.scratch("products", rows.full, z.dtype)
                xp.multiply(dense(ctx, y, rows.rank), grad, out=products)
                xp.subtract(slope, products, out=slope)
            if slope is not dz:
                ctx.sum_to(slope, dz)
        if dy is not None:
            products = ctx.scratch("products", rows.full, z.dtype)
            xp.multiply(z, grad, out=products)
            xp.negative(products, out=products)
            ctx.sum_to(products, dy)


class _SoftmaxRows(Rows):
    """Where the cross entropy keeps its numbers.

    Attributes:
        powers, total: exponentials of the logits and their sum, whose ratio is the softmax: forward's numbers that backward needs.
        edge, level: the largest logits, and the logarithms of the sums.
        scale: backward's factor of the exponentials.
        picked, starts, places: for a one-hot target, the losses in one row, where each row of classes begins in the flattened logits, and
            where its right class lies.
    """

    def __init__(self, ctx: Context, out: Any, inputs: Sequence[Any], axis: int | Axis) -> None:
        super().__init__(ctx, out, inputs, axis)
        z = self.z
        sums, wide = with_dim(z.shape, self.axis, 1), computing_type(z.dtype)
        self.powers, self.total = ctx.keep("powers", z.shape, z.dtype), ctx.keep("total", sums, wide)
        self.edge, self.level = ctx.scratch("edge", sums, z.dtype), ctx.scratch("level", sums, wide)
        self.scale = ctx.scratch("scale", out.shape, wide)
        if self.axis == -1:
            self._starts = ctx.xp.arange(0, z.size, z.shape[-1]).reshape(z.shape[:-1])
            self._edges = self.edge.reshape(z.shape[:-1])
            self.places = ctx.keep("places", (self._starts.size,), np.intp)
            self.starts, self.picked = self._starts.reshape(-1), out.reshape(-1)

    def find_edge(self, ctx: Context) -> None:
        """Find the largest logits; of a few classes the largest is found faster by its place."""
        if self.axis == -1:
            self.z.argmax(axis=-1, out=self.largest)
            ctx.xp.add(self.largest, self._starts, out=self.largest)
            ctx.backend.take(self.z, self.largest, None, self._edges, "clip")
        else:
            ctx.xp.maximum.reduce(self.z, self.axis, None, self.edge, True)


class SquaredError(Op):
    """Sum of the squared differences over all static axes."""

    op_name = "SquaredError"
    traits = Traits(compares=True, recordable=True)
    keep_inputs = ALL

    def infer(self, output: Spec, target: Spec) -> Spec:
        if broadcast(output.dims, target.dims) is None:
            raise ValueError("shapes do not broadcast; aligned on the last axis, dimensions must be equal or 1")
        return self.common(output, target)

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """For each element a difference, a square and a sum."""
        return 3 * max(size_of(operand.shape) for operand in inputs)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        difference = self._difference(ctx, inputs)
        ctx.xp.multiply(difference, difference, out=difference)
        ctx.sum_to(difference, out.reshape(out.shape + (1,) * (difference.ndim - out.ndim)))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        difference = self._difference(ctx, inputs)
        rank = difference.ndim - grad.ndim
        ctx.xp.multiply(difference, 2, out=difference)
        ctx.xp.multiply(difference, grad.reshape(grad.shape + (1,) * rank), out=difference)
        for i, dx in enumerate(grads):
            if i == 1:
                ctx.xp.negative(difference, out=difference)
            if dx is not None:
                ctx.sum_to(difference, lined_up((dx,), (ctx.layouts[i],), rank)[0])

    def _difference(self, ctx: Context, inputs: Sequence[Any]) -> Any:
        left, right = lined_up(inputs, ctx.layouts, common_rank(ctx, inputs))
        shape = left.shape if left.shape == right.shape else np.broadcast_shapes(left.shape, right.shape)
        difference = ctx.scratch("difference", shape, left.dtype)
        return ctx.xp.subtract(left, right, out=difference)


_EPSILON = 1e-6
"""Keeps logarithms of the binary cross entropy finite."""


class BinaryCrossEntropy(Elementwise):
    """−y log p − (1 − y) log(1 − p), with a small number added under the logarithms."""

    op_name = "BinaryCrossEntropy"
    traits = Traits(compares=True, recordable=True)
    keep_inputs = ALL

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        p, y = inputs
        yes, no = self._chances(ctx, out, p)
        xp.log(yes, out=yes)
        xp.log(no, out=no)
        xp.multiply(yes, y, out=yes)
        xp.subtract(y, 1, out=out)
        xp.multiply(no, out, out=no)
        xp.subtract(no, yes, out=out)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        xp = ctx.xp
        p, target = inputs
        yes, no = self._chances(ctx, dx, p)
        if i == 0:
            xp.divide(target, yes, out=yes)
            xp.subtract(1, target, out=dx)
            xp.divide(dx, no, out=dx)
            xp.subtract(dx, yes, out=dx)
        else:
            xp.log(yes, out=yes)
            xp.log(no, out=no)
            xp.subtract(no, yes, out=dx)
        xp.multiply(dx, dy, out=dx)

    def _chances(self, ctx: Context, like: Any, p: Any) -> tuple[Any, Any]:
        """p and 1 − p at the result's shape, kept off zero."""
        yes = ctx.scratch("yes", like.shape, like.dtype)
        no = ctx.scratch("no", like.shape, like.dtype)
        ctx.xp.add(p, _EPSILON, out=yes)
        ctx.xp.subtract(1, p, out=no)
        ctx.xp.add(no, _EPSILON, out=no)
        ctx.xp.maximum(yes, _EPSILON, out=yes)
        ctx.xp.maximum(no, _EPSILON, out=no)
        return yes, no


def _cross_entropy(axis: int = -1) -> Any:
    def expected(z: Any, y: Any) -> Any:
        return np.log(np.exp(z).sum(axis=axis, keepdims=True)) - (z * y).sum(axis=axis, keepdims=True)

    return expected


def _squared_error(a: Any, b: Any) -> Any:
    return ((a - b) ** 2).sum()


def _binary_cross_entropy(p: Any, y: Any) -> Any:
    return -y * np.log(p + _EPSILON) - (1 - y) * np.log(1 - p + _EPSILON)


@operator(
    sample((3,), Operand((3,), 0, 1), expected=_cross_entropy()),
    sample((3,), Operand((3,), sparse=True, gradient=False), expected=_cross_entropy()),
    sample((2, 3), Operand((2, 3), sparse=True, gradient=False), expected=_cross_entropy()),
    sample((2, 3), Operand((2, 3), sparse=True, gradient=False), axis=0, expected=_cross_entropy(0)),
    sample((2, 3), Operand((2, 3), 0, 1), axis=-2, expected=_cross_entropy(0)),
    sample((2, 3), (2, 3), axis=Axis(1), expected=_cross_entropy()),
    sample((3,), Operand((3,), kind="parameter"), expected=_cross_entropy()),
    sample(Operand((3,), kind="parameter"), Operand((3,), 0, 1), expected=_cross_entropy()),
    sample(Operand((3,), kind="parameter"), Operand((3,), sparse=True, gradient=False), expected=_cross_entropy()),
    sample((2, 3), (3,), expected=_cross_entropy()),
    sample((2, 3), Operand((3,), sparse=True, gradient=False), expected=_cross_entropy()),
    sample((1, 3), (3,), expected=_cross_entropy()),
    sample((1, 3), Operand((3,), sparse=True, gradient=False), expected=_cross_entropy()),
    sample((3,), (2, 3), expected=_cross_entropy()),
    sample((3,), (1, 3), expected=lambda z, y: _cross_entropy()(z, y[0])),
    sample((3,), Operand((1, 3), sparse=True, gradient=False), expected=lambda z, y: _cross_entropy()(z, y[0])),
    sample((2, 1), (2, 3), axis=0, expected=_cross_entropy(0)),
    sample((2, 3), Operand((2, 1), kind="parameter"), axis=0, expected=_cross_entropy(0)),
    sample(Operand((2, 3), kind="parameter"), (3,), axis=1, expected=_cross_entropy()),
)
def cross_entropy_with_softmax(output_vector: TensorLike, target_vector: TensorLike, axis: int | Axis = -1, name: str = "") -> Function:
    r"""Cross entropy between a target distribution y and the softmax of logits z: :math:`\log\sum_i e^{z_i} - \sum_i z_i y_i`.

    The target is best given sparse, one class a row: then no row of zeros is looked at.  A target that does not sum to 1 is
    not normalised, and weights only the second term.

    Args:
        output_vector: logits z; not probabilities.
        target_vector: target y of the same static shape, dense or sparse; it may broadcast with the output on other axes than
            that of the classes.
        axis: static axis of the classes in the output; by default the last one.
        name: name of the Function.

    Returns:
        the loss in nats of each sample (and step), with *axis* kept as 1: shape (1,) for vectors, (1, n) for (m, n) with
        ``axis=0``.  Axes of length 1 in front that only the target has make no axes of the result.

    Raises:
        ValueError: the static shapes do not broadcast, the numbers of classes differ, or the axis is outside the output.

    >>> C.cross_entropy_with_softmax([[1, 2, 3], [3, 3, 0]], [[0, 0, 1], [0, 1, 0]]).eval().round(4)
    array([[0.4076],
           [0.7177]], dtype=float32)
    """
    return CrossEntropyWithSoftmax(axis=axis)(output_vector, target_vector, name=name)


@operator(
    sample((3,), (3,), expected=_squared_error),
    sample((2, 3), (2, 3), expected=_squared_error),
    sample((), (), expected=_squared_error),
    sample((2, 3), (3,), expected=_squared_error),
    sample((2, 1), (2, 3), expected=_squared_error),
    sample((3,), Operand((2, 3), kind="parameter"), expected=_squared_error),
    sample(Operand((3,), kind="parameter"), Operand((1,), kind="parameter"), expected=_squared_error),
)
def squared_error(output: TensorLike, target: TensorLike, name: str = "") -> Function:
    r"""Sum of squared differences, :math:`\sum_i (o_i - t_i)^2` over all static axes; there is no factor 1/2.

    Args:
        output: prediction o.
        target: target t, of a static shape that broadcasts with the output's.
        name: name of the Function.

    Returns:
        one number, shape (), for each sample (and step), in the square of the operands' unit.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> C.squared_error([1, 2, 3], [3, 2, 0]).eval()
    array(13., dtype=float32)
    """
    return SquaredError()(output, target, name=name)


@operator(
    sample(Operand((3,), 0.1, 0.9), Operand((3,), 0, 1), expected=_binary_cross_entropy),
    sample(Operand((2, 3), 0.1, 0.9), Operand((3,), 0, 1, kind="parameter"), expected=_binary_cross_entropy),
    sample(Operand((), 0.1, 0.9), Operand((2,), 0, 1), expected=_binary_cross_entropy),
)
def binary_cross_entropy(output: TensorLike, target: TensorLike, name: str = "") -> Function:
    r"""Cross entropy of yes-or-no answers, :math:`-y \log(p + \epsilon) - (1 - y) \log(1 - p + \epsilon)`, each on its own.

    Here :math:`\epsilon = 10^{-6}` keeps certain but wrong answers at 13.8 instead of infinity.

    Args:
        output: probability p in [0, 1], as a sigmoid gives it.
        target: target y in [0, 1], of a static shape that broadcasts with the output's.
        name: name of the Function.

    Returns:
        losses in nats at the operands' common shape: nothing is summed.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> C.binary_cross_entropy([0.9, 0.5, 0.1], [1, 1, 1]).eval().round(4)
    array([0.1054, 0.6931, 2.3026], dtype=float32)
    """
    return BinaryCrossEntropy()(output, target, name=name)
