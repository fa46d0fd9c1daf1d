"""Cosine similarity of samples with one another, and with samples further along the minibatch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.common.shape import Shape, format_shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.elementwise import lined_up_shapes
from ...core.operators.op import ALL, Op
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.axis import Axis
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.spec import Spec
from .arithmetic import element_times
from .reduction import reduce_sum


class CosDistance(Op):
    """Product of the two unit vectors that have the directions of the operands."""

    op_name = "CosDistance"
    by_rows = False
    keep_inputs = ALL
    keep_output = True

    def infer(self, x: Spec, y: Spec) -> Spec:
        _check_shapes(x.dims, y.dims)
        return self.common(x, y)

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
        return lined_up_shapes(inputs)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        x, y = _vectors(ctx, inputs)
        lengths = _kept_lengths(ctx, x, y)
        _measure(ctx, x, lengths[0])
        _measure(ctx, y, lengths[1])
        products = ctx.scratch("products", (max(len(x), len(y)), x.shape[1]), x.dtype)
        xp.divide(x, lengths[0], out=products)
        xp.multiply(products, y, out=products)
        xp.divide(products, lengths[1], out=products)
        ctx.sum_to(products, out.reshape(-1, 1))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        vectors = _vectors(ctx, inputs)
        lengths = _kept_lengths(ctx, *vectors)
        cosine, dy = out.reshape(-1, 1), grad.reshape(-1, 1)
        for i, slope in enumerate(_vectors(ctx, grads)):
            if slope is None:
                continue
            shape = (len(dy), slope.shape[1])
            partner, along = ctx.scratch("partner", shape, slope.dtype), ctx.scratch("along", shape, slope.dtype)
            xp.divide(vectors[1 - i], lengths[1 - i], out=partner)
            xp.divide(vectors[i], lengths[i], out=along)
            xp.multiply(along, cosine, out=along)
            xp.subtract(partner, along, out=partner)
            xp.multiply(partner, dy, out=partner)
            xp.divide(partner, lengths[i], out=partner)
            ctx.sum_to(partner, slope)


class CosDistanceWithNegativeSamples(SequenceOp):
    """Cosine similarities of each row of the first operand with its row of the second one, and with rows further on."""

    op_name = "CosDistanceWithNegativeSamples"
    whole_sequences = True
    keep_inputs = ALL
    keep_output = True

    def __init__(self, shift: int, num_negative_samples: int) -> None:
        super().__init__()
        self.shift, self.num_negative_samples = shift, num_negative_samples

    def infer(self, x: Spec, y: Spec) -> Spec:
        _check_shapes(x.dims, y.dims)
        if () in (x.axes, y.axes):
            raise ValueError("both operands must have a batch axis: negative samples are other samples of the minibatch")
        return self.common(x, y).but(shape=(1 + self.num_negative_samples,))

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        x, y = _vectors(ctx, inputs)
        lengths = _kept_lengths(ctx, x, y)
        _measure(ctx, x, lengths[0])
        _measure(ctx, y, lengths[1])
        left = xp.divide(x, lengths[0], out=ctx.scratch("left", x.shape, x.dtype))
        right = xp.divide(y, lengths[1], out=ctx.scratch("right", y.shape, y.dtype))
        products = ctx.scratch("products", x.shape, x.dtype)
        for column, partner in enumerate(self._partners(ctx)):
            xp.take(right, partner, axis=0, out=products, mode="clip")
            xp.multiply(products, left, out=products)
            products.sum(axis=1, out=out[:, column])

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        vectors = _vectors(ctx, inputs)
        lengths = _kept_lengths(ctx, *vectors)
        for i, slope in enumerate(_vectors(ctx, grads)):
            if slope is None:
                continue
            others = xp.divide(vectors[1 - i], lengths[1 - i], out=ctx.scratch("others", slope.shape, slope.dtype))
            term = ctx.scratch("term", slope.shape, slope.dtype)
            cosine = ctx.scratch("cosine", (len(slope), 1), slope.dtype)
            slope[...] = 0
            cosine[...] = 0
            for column, partner in enumerate(self._partners(ctx)):
                weight = grad[:, column, None]
                if i == 0:
                    xp.multiply(others[partner], weight, out=term)
                    xp.add(slope, term, out=slope)
                    xp.add(cosine, weight * out[:, column, None], out=cosine)
                else:  # each row is the partner of one row: no two terms go to one place
                    xp.multiply(others, weight, out=term)
                    slope[partner] += term
                    cosine[partner] += weight * out[:, column, None]
            xp.divide(vectors[i], lengths[i], out=term)
            xp.multiply(term, cosine, out=term)
            xp.subtract(slope, term, out=slope)
            xp.divide(slope, lengths[i], out=slope)

    def _partners(self, ctx: Context) -> list[Any]:
        """For each element of the result the rows of the second operand that the rows of the first are compared with."""
        layout = ctx.layout
        assert layout is not None
        if ctx.state is None or ctx.state[0] != layout:
            order = _in_users_order(layout)
            shifts = (0, *range(self.shift, self.shift + self.num_negative_samples))
            partners = np.empty((len(shifts), layout.rows), np.intp)
            for partner, shift in zip(partners, shifts, strict=True):
                partner[order] = np.roll(order, -shift)
            ctx.state = layout, list(ctx.brought(partners))
        return ctx.state[1]


def _in_users_order(layout: Layout) -> Any:
    """Rows step by step, and of one step in the user's order of sequences."""
    if not layout.is_sequence:
        return np.arange(layout.rows)
    return np.lexsort((layout.sequence_of_row, layout.step_of_row))


def _check_shapes(x: Shape, y: Shape) -> None:
    """Require shapes that are equal but for axes of length 1 in front."""
    rank = max(len(x), len(y))
    left, right = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    if any(a != b and a >= 0 and b >= 0 for a, b in zip(left, right, strict=True)):
        raise ValueError(f"the operands have the shapes {format_shape(x)} and {format_shape(y)}, but must have the same shape")


def _vectors(ctx: Context, arrays: Sequence[Any]) -> list[Any]:
    """Each operand as rows of numbers; one row where it has no dynamic axes."""
    return [
        None if array is None else array.reshape(1 if layout is None else len(array), -1)
        for array, layout in zip(arrays, ctx.layouts, strict=True)
    ]


def _kept_lengths(ctx: Context, x: Any, y: Any) -> tuple[Any, Any]:
    """Length of each vector, which backward reads."""
    return ctx.keep("x", (len(x), 1), computing_type(x.dtype)), ctx.keep("y", (len(y), 1), computing_type(y.dtype))


def _measure(ctx: Context, vectors: Any, out: Any) -> None:
    """Write the length of each row, 1 for a row of zeros; rows are scaled first so that squares neither overflow nor vanish."""
    xp = ctx.xp
    largest = ctx.scratch("largest", out.shape, out.dtype)
    squares = ctx.scratch("squares", vectors.shape, vectors.dtype)
    xp.abs(vectors, out=squares)
    squares.max(axis=1, out=largest, keepdims=True)
    empty = largest == 0
    largest[empty] = 1
    xp.divide(vectors, largest, out=squares)
    xp.multiply(squares, squares, out=squares)
    ctx.sum_to(squares, out)
    xp.sqrt(out, out=out)
    xp.multiply(out, largest, out=out)
    out[empty] = 1


def _cosine(x: Any, y: Any) -> Any:
    x, y = x.ravel(), y.ravel()
    return x @ y / np.sqrt((x @ x) * (y @ y))


@operator(
    sample((3,), (3,), expected=_cosine),
    sample((2, 3), (2, 3), expected=_cosine),
    sample((3,), (1, 3), expected=_cosine),
    sample(Operand((), 0.5, 1), Operand((), -1, -0.5), expected=_cosine),
    sample((3,), Operand((3,), kind="parameter"), expected=_cosine),
    sample(Operand((2, 2), kind="parameter"), Operand((2, 2), kind="parameter"), expected=_cosine),
)
def cosine_distance(x: TensorLike, y: TensorLike, name: str = "") -> Function:
    r"""Cosine of the angle between two vectors, :math:`x \cdot y / (|x| |y|)`: a similarity, in spite of its name.

    Args:
        x: operand of any shape, whose elements are taken as one vector.
        y: operand of the same shape, but for axes of length 1 in front.
        name: name of the Function.

    Returns:
        one number in [-1, 1], shape (), for each sample (and step): 1 for vectors of one direction, -1 for opposite ones, 0 where
        a vector is all zeros.

    Raises:
        ValueError: the operands differ in shape.

    >>> round(float(C.cosine_distance([3, 4], [4, 3]).eval()), 4)
    0.96
    """
    return CosDistance()(x, y, name=name)


def _all_pairs(function: Any, x: Any, y: Any) -> Any:
    """A weighted sum of all similarities in the minibatch, for rows have a part in one another's result."""
    return reduce_sum(element_times(function(x, y, shift=1, num_negative_samples=2), [1, 2, 4]), Axis.all_axes())


@operator(
    sample((3,), (3,), shift=1, num_negative_samples=0, expected=lambda x, y: _cosine(x, y)[None]),
    sample((3,), (3,), call=_all_pairs),
    sample((2, 2), (1, 2, 2), call=_all_pairs),
)
def cosine_distance_with_negative_samples(x: TensorLike, y: TensorLike, shift: int, num_negative_samples: int, name: str = "") -> Function:
    """Cosine similarity of each sample of x with that of y, and with samples of y further along the minibatch.

    Sample i is compared with the samples i, i + shift, i + shift + 1 …, counted round the minibatch.  With a sequence axis the steps
    are counted in place of the samples: the first step of every sequence, then the second of all that have one, and so on.

    Args:
        x: operand of any shape with a batch axis, whose elements are taken as one vector.
        y: operand of the same shape, but for axes of length 1 in front.
        shift: how far away the first negative sample is.
        num_negative_samples: how many negative samples there are.
        name: name of the Function.

    Returns:
        for each sample (and step) ``1 + num_negative_samples`` numbers in [-1, 1], the similarity to its own sample of y first.

    Raises:
        ValueError: the operands differ in shape or have no batch axis, or a number is negative.

    Source: P.-S. Huang, X. He, J. Gao, L. Deng, A. Acero, L. Heck, "Learning deep structured semantic models for web search using
    clickthrough data", CIKM 2013.

    >>> x, y = C.input_variable(2), C.input_variable(2)
    >>> samples = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32)
    >>> C.cosine_distance_with_negative_samples(x, y, shift=1, num_negative_samples=1).eval({x: samples, y: samples}).round(4)
    array([[1.    , 0.    ],
           [1.    , 0.7071],
           [1.    , 0.7071]], dtype=float32)
    """
    if shift < 0 or num_negative_samples < 0:
        raise ValueError(
            "cosine_distance_with_negative_samples: expected a shift and a number of negative samples of 0 or more, "
            f"got {shift} and {num_negative_samples}"
        )
    return CosDistanceWithNegativeSamples(int(shift), int(num_negative_samples))(x, y, name=name)
