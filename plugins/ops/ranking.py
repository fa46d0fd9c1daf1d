"""Rankings of samples in groups: LambdaRank, and the gain at the top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core.common.shape import format_shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import ALL, Op
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec


class Ranking(Op):
    """Base of ops that rank the rows of a group by their scores and compare that with the best ranking by gain."""

    def infer(self, *inputs: Spec) -> Spec:
        for what, spec in zip(("output", "gain", "group"), inputs, strict=True):
            if any(dim > 1 for dim in spec.dims):
                raise ValueError(f"{what} has the shape {format_shape(spec.dims)}; expected one number for each sample, such as shape [1]")
            if spec.axes == ():
                raise ValueError(f"{what} has no batch axis; there is nothing to rank without samples")
        return self.common(*inputs).but(axes=())


class LambdaRank(Ranking):
    """One minus the discounted gain of a ranking over the largest possible one, with gradients that say which rows to exchange."""

    op_name = "LambdaRank"
    keep_inputs = ALL
    gradient_inputs = (0,)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        loss, groups = 0.0, 0
        for rows in _groups(ctx, inputs):
            scores, gains = _columns(inputs, rows)
            discounts = 1 / ctx.xp.log(2.0 + ctx.xp.arange(len(rows)))
            best = _best(ctx, gains, discounts)
            got = float((gains[_ranked(ctx, scores, gains)] * discounts).sum())
            loss += 1 - got / best if best else 1.0
            groups += 1
        out[...] = 100 * loss / groups * len(inputs[0])

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        """Each pair of a group pushes its rows apart by what their exchange changes, times the chance that the scores have it wrong."""
        xp = ctx.xp
        slopes = grads[0].reshape(-1)
        for rows in _groups(ctx, inputs):
            scores, gains = _columns(inputs, rows)
            order = _ranked(ctx, scores, gains)
            discounts = 1 / xp.log(2.0 + xp.arange(len(rows)))
            best = _best(ctx, gains, discounts)
            if not best:
                slopes[rows] = 0
                continue
            own = xp.empty_like(discounts)
            own[order] = discounts
            change = xp.maximum(gains[:, None] - gains, 0) * xp.abs(own[:, None] - own) / best
            doubt = xp.exp(-xp.logaddexp(0, scores[:, None] - scores))
            push = change * doubt
            slopes[rows] = (push.sum(axis=0) - push.sum(axis=1)) * grad


class Ndcg(Ranking):
    """Gain of the first row of a ranking over the largest gain of its group."""

    op_name = "NDCG"
    gradient_inputs = ()

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        total, groups = 0.0, 0
        for rows in _groups(ctx, inputs):
            scores, gains = _columns(inputs, rows)
            best = float(gains.max())
            total += float(gains[_ranked(ctx, scores, gains)[0]]) / best if best else 0.0
            groups += 1
        out[...] = 100 * total / groups * len(inputs[0])


def _groups(ctx: Context, inputs: Sequence[Any]) -> Iterator[Any]:
    """The rows of each group."""
    xp = ctx.xp
    names = inputs[2].reshape(-1)
    order = xp.argsort(names, kind="stable")
    ordered = names[order]
    starts = xp.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return iter(xp.split(order, starts))


def _columns(inputs: Sequence[Any], rows: Any) -> tuple[Any, Any]:
    """Scores and gains of some rows, in double precision."""
    scores, gains = (array.reshape(-1)[rows].astype(np.float64) for array in inputs[:2])
    return scores, gains


def _ranked(ctx: Context, scores: Any, gains: Any) -> Any:
    """Rows by score, the highest first; of rows with equal scores the one with the lowest gain, so that a tie is no merit."""
    return ctx.xp.lexsort(ctx.xp.stack((gains, -scores)))


def _best(ctx: Context, gains: Any, discounts: Any) -> float:
    """The largest discounted gain that a ranking can have."""
    return float((ctx.xp.sort(gains)[::-1] * discounts).sum())


_score, _gain = Operand((1,), gradient=False), Operand((1,), 0, 5, gradient=False)
_group = Operand(np.array([1.0]), gradient=False)


@operator(sample(_score, _gain, _group), sample(Operand((), gradient=False), Operand((), 0, 5, gradient=False), _group))
def lambda_rank(output: TensorLike, gain: TensorLike, group: TensorLike, name: str = "") -> Function:
    r"""Loss for learning to rank: how far the scores' ranking of each group falls short of the best one.

    A ranking has the discounted cumulative gain :math:`\sum_{i \ge 0} g_{(i)} / \log(i + 2)`, where :math:`g_{(i)}` is the gain of the
    sample in place i; divided by the largest possible one that is the NDCG.  Samples of equal scores count as ranked in the worst
    way, and a group without any gain as one of NDCG 0.

    The gradient is LambdaRank's, not that of the value, which is flat: each pair of a group with gains :math:`g_i > g_j` moves the
    scores :math:`s_i` and :math:`s_j` apart by :math:`|\Delta\mathrm{NDCG}_{ij}| / (1 + e^{s_i - s_j})`, where :math:`\Delta` is what
    their exchange would change.  It flows to the scores only.

    Args:
        output: score of each sample (or step), of shape (1,) or ().
        gain: gain of each sample, 0 or more.
        group: number of the group that each sample belongs to.
        name: name of the Function.

    Returns:
        100 times 1 minus the mean NDCG of the groups, times the number of samples: shape () without dynamic axes.

    Raises:
        ValueError: an operand has more than one number for each sample, or no batch axis.

    Source: C. J. C. Burges, "From RankNet to LambdaRank to LambdaMART: an overview", Microsoft Research MSR-TR-2010-82.

    >>> score, gain, group = C.input_variable(1), C.input_variable(1), C.input_variable(1)
    >>> loss = C.lambda_rank(score, gain, group)
    >>> feed = {score: [[1], [2], [3], [4]], gain: [[7], [1], [3], [1]], group: [[1], [1], [2], [2]]}
    >>> round(float(loss.eval({v: np.array(x, dtype=np.float32) for v, x in feed.items()})), 2)
    98.7
    """
    return LambdaRank()(output, gain, group, name=name)


@operator(sample(_score, _gain, _group), sample(Operand((), gradient=False), Operand((), 0, 5, gradient=False), _group))
def ndcg_at_1(output: TensorLike, gain: TensorLike, group: TensorLike, name: str = "") -> Function:
    """Gain of the sample with the highest score over the largest gain of its group.  No gradient flows through it.

    Of several samples with the highest score the one with the lowest gain counts, and a group without any gain counts as 0.

    Args:
        output: score of each sample (or step), of shape (1,) or ().
        gain: gain of each sample, 0 or more.
        group: number of the group that each sample belongs to.
        name: name of the Function.

    Returns:
        100 times the mean over the groups, times the number of samples: shape () without dynamic axes.

    Raises:
        ValueError: an operand has more than one number for each sample, or no batch axis.

    >>> score, gain, group = C.input_variable(1), C.input_variable(1), C.input_variable(1)
    >>> metric = C.ndcg_at_1(score, gain, group)
    >>> feed = {score: [[2], [1], [3], [1]], gain: [[7], [1], [3], [1]], group: [[1], [1], [2], [2]]}
    >>> metric.eval({v: np.array(x, dtype=np.float32) for v, x in feed.items()})
    array(400., dtype=float32)
    """
    return Ndcg()(output, gain, group, name=name)
