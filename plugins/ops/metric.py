"""Metrics that count misclassified samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.types.axis import Axis
from ...core.types.context import Context
from ...core.types.spec import Spec
from .targets import Rows, class_axis, common_rank, dense, lined_up, loss_shape

_LAST = -1


class ClassificationError(Op):
    """One minus the target at the largest output; the target may be sparse."""

    op_name = "ClassificationError"
    traits = Traits(compares=True)
    by_rows = False
    gradient_inputs = (1,)
    sparse_inputs = (1,)

    def infer(self, output: Spec, target: Spec) -> Spec:
        return self.common(output, target).but(shape=loss_shape(output, target, _LAST, self.op_name))

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp, rows = ctx.xp, ctx.state
        if rows is None or rows.out is not out:
            rows = ctx.state = _GuessRows(ctx, out, inputs)
        z, y, largest = rows.z, rows.y, rows.largest
        z.argmax(axis=_LAST, out=largest)
        if rows.look() and y.is_of_ones:
            xp.not_equal(rows.guess, y.indices, out=rows.hit)
            xp.copyto(rows.flat, rows.hit)
            return
        if rows.is_one_hot:
            xp.equal(rows.guess, y.indices, out=rows.hit)
            xp.multiply(rows.hit, y.data, out=rows.flat)
        else:
            products = ctx.scratch("products", rows.full, z.dtype)
            chosen = rows.chosen = ctx.keep("chosen", z.shape, np.bool_)
            xp.equal(xp.arange(z.shape[_LAST]), largest[..., None], out=chosen)
            xp.multiply(chosen, dense(ctx, y, rows.rank), out=products)
            ctx.sum_to(products, out)
        xp.subtract(1, out, out=out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        rows = ctx.state
        dy = rows.lined_up(grads)[1]
        products = ctx.scratch("products", rows.full, grad.dtype)
        ctx.xp.multiply(rows.chosen, grad, out=products)
        ctx.xp.negative(products, out=products)
        ctx.sum_to(products, dy)


class _GuessRows(Rows):
    """Where the error keeps its numbers.

    Attributes:
        flat, guess: the errors, and the classes with the largest outputs, in one row.
        hit: for a one-hot target, whether the guess is right, or with ones alone whether it is wrong.
        chosen: for others, whether each class has the largest output: what backward needs.
    """

    def __init__(self, ctx: Context, out: Any, inputs: Sequence[Any]) -> None:
        super().__init__(ctx, out, inputs, _LAST)
        self.chosen: Any = None
        self.flat, self.guess = out.reshape(-1), self.largest.reshape(-1)
        self.hit = ctx.scratch("hit", self.guess.shape, np.bool_)


class MeanClassificationError(Op):
    """Share of the places on the other axes where output and target are largest in different classes."""

    op_name = "ClassificationError"
    traits = Traits(compares=True)
    gradient_inputs = ()

    def infer(self, output: Spec, target: Spec) -> Spec:
        loss_shape(output, target, self.axis, self.op_name)
        return self.common(output, target)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        axis = class_axis(ctx, inputs[0], self.axis)
        z, y = lined_up(inputs, ctx.layouts, common_rank(ctx, inputs))
        wrong = z.argmax(axis=axis) != y.argmax(axis=axis)
        wrong.reshape((*out.shape, -1)).mean(axis=-1, out=out)


class TopNClassificationError(Op):
    """Number of samples in the minibatch whose class is not among the n largest outputs."""

    op_name = "ClassificationError"
    traits = Traits(compares=True)
    gradient_inputs = ()

    def infer(self, output: Spec, target: Spec) -> Spec:
        loss_shape(output, target, _LAST, self.op_name)
        classes = output.dims[_LAST]
        if 0 <= classes < self.top_n:
            raise ValueError(f"cannot look among the {self.top_n} largest of {classes} outputs; lower topN")
        return self.common(output, target).but(axes=())

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        z, y = xp.broadcast_arrays(*lined_up(inputs, ctx.layouts, common_rank(ctx, inputs)))
        label = y.argmax(axis=_LAST, keepdims=True)
        at_label = xp.take_along_axis(z, label, _LAST)
        ahead = (z > at_label) | ((z == at_label) & (xp.arange(z.shape[_LAST]) < label))
        out[...] = (ahead.sum(axis=_LAST) >= self.top_n).sum()


def _error(z: Any, y: Any) -> Any:
    z, y = np.broadcast_arrays(z, y)
    return 1 - np.take_along_axis(y, z.argmax(-1, keepdims=True), -1)


def _mean_error(axis: int) -> Any:
    def expected(z: Any, y: Any) -> Any:
        z, y = np.broadcast_arrays(z, y)
        return np.mean(z.argmax(axis) != y.argmax(axis), dtype=z.dtype)

    return expected


_flat = Operand((3,), gradient=False)
_square = Operand((2, 3), gradient=False)
_target = Operand((3,), 0, 1, gradient=False)
_classes = Operand((3,), sparse=True, gradient=False)


@operator(
    sample(_flat, _target, expected=_error),
    sample(_flat, _classes, expected=_error),
    sample(_square, _square, expected=_error),
    sample(_square, Operand((2, 3), sparse=True, gradient=False), expected=_error),
    sample(_flat, Operand((3,), kind="parameter", gradient=False), expected=_error),
    sample(Operand((3,), kind="parameter", gradient=False), _classes, expected=_error),
    sample(_square, _square, axis=0, expected=_mean_error(0)),
    sample(_square, _square, axis=1, expected=_mean_error(1)),
    sample(_flat, _classes, axis=0, expected=_mean_error(0)),
    sample(_flat, Operand((3,), 0, 1), expected=_error),
    sample(_square, Operand((3,), 0, 1), expected=_error),
    sample(_square, _classes, expected=_error),
    sample(Operand((1, 3), gradient=False), _classes, expected=_error),
    sample(_flat, Operand((2, 3), 0, 1), expected=_error),
    sample(_flat, Operand((1, 3), 0, 1), expected=lambda z, y: _error(z, y[0])),
    sample(_square, _target, axis=1, expected=_mean_error(1)),
    sample(_flat, _classes, topN=2),
    sample(_square, _target, topN=2),
    sample(_flat, _target, topN=3),
)
def classification_error(
    output_vector: TensorLike, target_vector: TensorLike, axis: int | Axis = -1, topN: int = 1, name: str = ""
) -> Function:
    """Whether the largest output is not at the target's class.

    No gradient flows to the output; the target's is that of 1 minus the target at the largest output, with the default axis.

    Args:
        output_vector: one number for each class; the first of equal ones counts as the largest.
        target_vector: target with a 1 at the right class, dense or sparse, of the same static shape; it may broadcast with the output
            on other axes than that of the classes.
        axis: static axis of the classes.  For the default, -1, the result is 1 minus the target at the largest output; for
            any other number, 0 included, the share of wrong places on the remaining axes.
        topN: if more than 1, the class counts as found when it is among so many largest outputs; only with ``axis=-1``.
        name: name of the Function.

    Returns:
        for each sample (and step) 1 or 0 with the last axis kept as 1, so shape (1,) for vectors; with another *axis* a share,
        shape (); with *topN* above 1 the number of wrong samples in the minibatch, shape () without dynamic axes.

    Raises:
        ValueError: the static shapes do not broadcast, the numbers of classes differ, or *axis* or *topN* is outside its range.

    >>> C.classification_error([[1, 2, 3], [3, 3, 0]], [[0, 0, 1], [0, 1, 0]]).eval()
    array([[0.],
           [1.]], dtype=float32)
    >>> C.classification_error([[1, 2, 3], [3, 3, 0]], [[0, 0, 1], [0, 1, 0]], topN=2).eval()
    array(0., dtype=float32)
    """
    if topN < 1:
        raise ValueError(f"classification_error: expected topN of 1 or more, got {topN}")
    if axis in (_LAST, Axis(_LAST)):
        op: Op = ClassificationError() if topN == 1 else TopNClassificationError(top_n=int(topN))
    elif topN == 1:
        op = MeanClassificationError(axis=axis)
    else:
        raise ValueError(f"classification_error: topN={topN} goes with axis=-1 only, got axis={axis!r}")
    return op(output_vector, target_vector, name=name)
