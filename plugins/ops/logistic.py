"""Weighted cross entropy of yes-or-no answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import limits_of
from ...core.common.shape import Shape, broadcast
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.elementwise import lined_up_shapes
from ...core.operators.op import ALL, Op
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec
from .targets import common_rank, lined_up

_LEAST = 1e-37
"""Least number that a logarithm is taken of, where the element type holds it."""


class Logistic(Op):
    """Mean of binary cross entropies weighted by the third operand, over a whole minibatch, times their number."""

    op_name = "Logistic"
    keep_inputs = ALL

    def infer(self, *inputs: Spec) -> Spec:
        if broadcast(*(spec.dims for spec in inputs)) is None:
            raise ValueError("shapes do not broadcast; aligned on the last axis, dimensions must be equal or 1")
        return self.common(*inputs).but(axes=())

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
        return lined_up_shapes(inputs)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        w, losses = self._losses(ctx, inputs)
        out[...] = _average(ctx, losses, w) * losses.size

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        rank = common_rank(ctx, inputs)
        p, y, _ = lined_up(inputs, ctx.layouts, rank)
        w, losses = self._losses(ctx, inputs)
        scale = grad * losses.size / _total(ctx, losses, w)
        slope = ctx.scratch("slope", losses.shape, losses.dtype)
        for i, target in enumerate(lined_up(grads, ctx.layouts, rank)):
            if target is None:
                continue
            yes, no = _chances(ctx, p)
            if i == 0:
                slope[...] = w * ((1 - y) / no - y / yes)
            elif i == 1:
                slope[...] = w * (xp.log(no) - xp.log(yes))
            else:
                slope[...] = losses - _average(ctx, losses, w)
            xp.multiply(slope, scale, out=slope, casting="same_kind")
            ctx.sum_to(slope, target)

    def _losses(self, ctx: Context, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """The weights with static axes lined up, and the cross entropies at the operands' common shape."""
        xp = ctx.xp
        p, y, w = lined_up(inputs, ctx.layouts, common_rank(ctx, inputs))
        yes, no = _chances(ctx, p)
        losses = ctx.scratch("losses", np.broadcast_shapes(p.shape, y.shape, w.shape), p.dtype)
        losses[...] = -(y * xp.log(yes) + (1 - y) * xp.log(no))
        return w, losses


def _chances(ctx: Context, p: Any) -> tuple[Any, Any]:
    """p and 1 − p, kept off zero."""
    least = max(_LEAST, float(limits_of(p.dtype).tiny))
    yes, no = ctx.scratch("yes", p.shape, p.dtype), ctx.scratch("no", p.shape, p.dtype)
    ctx.xp.maximum(p, least, out=yes)
    ctx.xp.subtract(1, p, out=no)
    ctx.xp.maximum(no, least, out=no)
    return yes, no


def _total(ctx: Context, losses: Any, w: Any) -> Any:
    """Sum of the weights of all cross entropies; 1 in place of 0."""
    total = ctx.xp.broadcast_to(w, losses.shape).sum(dtype=np.float64)
    return ctx.xp.where(total == 0, 1, total)


def _average(ctx: Context, losses: Any, w: Any) -> Any:
    """Weighted mean of the cross entropies."""
    return (losses * w).sum(dtype=np.float64) / _total(ctx, losses, w)


_chance, _answer, _weight = Operand((1,), 0.1, 0.9), Operand((1,), 0, 1), Operand((1,), 0.5, 2)


@operator(
    sample(_chance, _answer, _weight),
    sample(Operand((2, 3), 0.1, 0.9), Operand((3,), 0, 1), Operand((2, 1), 0.5, 2, kind="parameter")),
    sample(Operand((), 0.1, 0.9), Operand((), 0, 1), Operand((2,), 0.5, 2)),
)
def weighted_binary_cross_entropy(output: TensorLike, target: TensorLike, weight: TensorLike, name: str = "") -> Function:
    r"""Binary cross entropy of a minibatch in which samples have weights: :math:`n \sum_i w_i b_i / \sum_i w_i`.

    Here :math:`b_i = -y_i \log p_i - (1 - y_i) \log(1 - p_i)` and n is the number of all :math:`b_i`, so that equal weights, of
    whatever size, give the plain sum.  Logarithms of 0 are taken of the smallest number that the element type holds, or of
    :math:`10^{-37}` if that is larger.

    Args:
        output: probability p in [0, 1], as a sigmoid gives it.
        target: target y in [0, 1].
        weight: weight w of each loss, 0 or more.  The static shapes of the three operands broadcast.
        name: name of the Function.

    Returns:
        one number for the minibatch in nats, shape () without dynamic axes; 0 where all weights are 0.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> p, y, w = C.input_variable(1), C.input_variable(1), C.input_variable(1)
    >>> loss = C.weighted_binary_cross_entropy(p, y, w)
    >>> feed = {p: [[0.8], [0.1]], y: [[1], [0]], w: [[3], [2]]}
    >>> round(float(loss.eval({v: np.array(x, dtype=np.float32) for v, x in feed.items()})), 4)
    0.3521
    """
    return Logistic()(output, target, weight, name=name)
