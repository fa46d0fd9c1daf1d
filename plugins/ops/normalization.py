"""Local response normalisation, and normalisation of each sample to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import limits_of
from ...core.common.shape import Shape, size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec
from .axes import mean_over
from .norm import measure


class LocalResponseNormalization(Op):
    """x divided by a power of the mean square over the neighbouring channels."""

    op_name = "LocalResponseNormalization"
    by_rows = False
    keep_inputs = (0,)

    def infer(self, x: Spec) -> Spec:
        if x.rank == 0:
            raise ValueError("the operand needs a channel axis in front, got a scalar")
        return self.common(x).but(shape=x.shape)

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """For each element a sum for each neighbour, and its square, a factor, a bias, a power and a product."""
        return (2 * self.depth_radius + 5) * size_of(out.shape)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        (x,) = inputs
        shape = _by_channel(ctx, x)
        squares = ctx.scratch("terms", shape, x.dtype)
        divisor = ctx.keep("divisor", shape, x.dtype)
        xp.multiply(x.reshape(shape), x.reshape(shape), out=squares)
        self._sum_neighbours(xp, squares, divisor)
        xp.multiply(divisor, self.alpha / (2 * self.depth_radius + 1), out=divisor)
        xp.add(divisor, self.bias, out=divisor)
        xp.power(divisor, -self.beta, out=squares)
        xp.multiply(x.reshape(shape), squares, out=out.reshape(shape))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        shape = _by_channel(ctx, inputs[0])
        x, dy, dx = (array.reshape(shape) for array in (inputs[0], grad, grads[0]))
        divisor = ctx.keep("divisor", shape, x.dtype)
        direct = ctx.scratch("direct", shape, x.dtype)
        terms = ctx.scratch("terms", shape, x.dtype)
        xp.power(divisor, -self.beta, out=direct)
        xp.multiply(direct, dy, out=direct)
        xp.multiply(direct, x, out=terms)
        xp.divide(terms, divisor, out=terms)
        self._sum_neighbours(xp, terms, dx)
        xp.multiply(dx, x, out=dx)
        xp.multiply(dx, -2 * self.beta * self.alpha / (2 * self.depth_radius + 1), out=dx)
        xp.add(dx, direct, out=dx)

    def _sum_neighbours(self, xp: Any, terms: Any, out: Any) -> None:
        """Sum *terms* over the channels within the radius of each."""
        xp.copyto(out, terms)
        for distance in range(1, min(self.depth_radius, terms.shape[1] - 1) + 1):
            out[:, distance:] += terms[:, :-distance]
            out[:, :-distance] += terms[:, distance:]


class MeanVarianceNormalization(Op):
    """Each sample, or each channel of it, less its mean and divided by its standard deviation."""

    op_name = "MeanVarianceNormalization"
    by_rows = False
    keep_output = True

    def infer(self, x: Spec) -> Spec:
        return self.common(x).but(shape=x.shape)

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """For each element a sum and a difference; a square, a sum and a quotient for the variance."""
        return (5 if self.do_variance_scaling else 2) * size_of(out.shape)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        x, y = (array.reshape(self._groups(ctx, array)) for array in (inputs[0], out))
        mean = ctx.scratch("mean", (*x.shape[:2], 1), x.dtype)
        mean_over(ctx, x, (2,), mean)
        xp.subtract(x, mean, out=y)
        if self.do_variance_scaling:
            deviation = ctx.keep("deviation", mean.shape, x.dtype)
            measure(ctx, y, (2,), deviation, x.shape[2] ** -0.5)
            xp.maximum(deviation, limits_of(x.dtype).tiny, out=deviation)
            xp.add(deviation, self.epsilon, out=mean)
            xp.divide(y, mean, out=y)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        # With d the deviation and y = (x - mean) / (d + epsilon):
        # dx = (dy - mean(dy) - y mean(dy y) (d + epsilon) / d) / (d + epsilon)
        xp = ctx.xp
        dx, dy, y = (array.reshape(self._groups(ctx, array)) for array in (grads[0], grad, out))
        mean = ctx.scratch("mean", (*dx.shape[:2], 1), dx.dtype)
        mean_over(ctx, dy, (2,), mean)
        xp.subtract(dy, mean, out=dx)
        if self.do_variance_scaling:
            deviation = ctx.keep("deviation", mean.shape, dx.dtype)
            divisor = ctx.scratch("divisor", mean.shape, dx.dtype)
            products = ctx.scratch("squares", dx.shape, dx.dtype)
            xp.multiply(dy, y, out=products)
            mean_over(ctx, products, (2,), mean)
            xp.add(deviation, self.epsilon, out=divisor)
            xp.multiply(mean, divisor, out=mean)
            xp.divide(mean, deviation, out=mean)
            xp.multiply(y, mean, out=products)
            xp.subtract(dx, products, out=dx)
            xp.divide(dx, divisor, out=dx)

    def _groups(self, ctx: Context, array: Any) -> Shape:
        """``(rows, groups, elements)``, a group being what is normalised together."""
        rows, channels, places = _by_channel(ctx, array)
        rank = array.ndim - (ctx.layouts[0] is not None)
        return (rows, 1, channels * places) if self.use_stats_across_channels or rank < 2 else (rows, channels, places)


def _by_channel(ctx: Context, array: Any) -> Shape:
    """``(rows, channels, places)``: a shape for *array* in which channels are one axis."""
    rows = 0 if ctx.layouts[0] is None else 1
    static = array.shape[rows:]
    return (array.shape[0] if rows else 1, static[0] if static else 1, size_of(static[1:]))


def _local_response(radius: int, bias: float, alpha: float, beta: float) -> Any:
    def expected(x: Any) -> Any:
        windows = [x[max(0, c - radius) : c + radius + 1] for c in range(len(x))]
        divisor = bias + alpha / (2 * radius + 1) * np.stack([(window**2).sum(axis=0) for window in windows])
        return x / divisor**beta

    return expected


def _mean_variance(axes: tuple[int, ...], epsilon: float = 1e-5, scale: bool = True) -> Any:
    def expected(x: Any) -> Any:
        centred = x - x.mean(axis=axes, keepdims=True)
        return centred / (x.std(axis=axes, keepdims=True) + epsilon) if scale else centred

    return expected


@operator(
    sample((4, 2, 3), depth_radius=1, bias=1.0, alpha=2.0, beta=0.5, expected=_local_response(1, 1.0, 2.0, 0.5)),
    sample((5, 2), depth_radius=2, bias=2.0, alpha=0.5, beta=0.75, expected=_local_response(2, 2.0, 0.5, 0.75)),
    sample((3,), depth_radius=4, bias=1.0, alpha=1.0, beta=1.0, expected=_local_response(4, 1.0, 1.0, 1.0)),
    sample((3, 2), depth_radius=0, bias=1.0, alpha=1.0, beta=2.0, expected=_local_response(0, 1.0, 1.0, 2.0)),
    sample(Operand((4, 2), kind="parameter"), depth_radius=1, bias=1.0, alpha=1.0, beta=1.0, expected=_local_response(1, 1.0, 1.0, 1.0)),
)
def local_response_normalization(
    operand: TensorLike, depth_radius: int, bias: float, alpha: float, beta: float, name: str = ""
) -> Function:
    r"""Dampen each channel by the activity of its neighbours: :math:`x_c / (b + \frac{\alpha}{2r+1} \sum_{|d-c| \le r} x_d^2)^\beta`.

    The sum always counts as one over 2r+1 channels, also at the first and last ones, where some are missing (Krizhevsky et al.,
    "ImageNet Classification with Deep Convolutional Neural Networks", 2012).

    Args:
        operand: values of static shape (channels, ...).
        depth_radius: how many channels r on either side count as neighbours.
        bias: b, above 0.
        alpha: scale of the mean square.
        beta: exponent.
        name: name of the Function.

    Returns:
        values of the operand's shape and dynamic axes.

    Raises:
        ValueError: the operand is a scalar, or the radius is negative.

    >>> C.local_response_normalization([[1.0], [2.0]], 1, bias=1, alpha=3, beta=1).eval().round(4)
    array([[0.1667],
           [0.3333]], dtype=float32)
    """
    if depth_radius < 0:
        raise ValueError(f"local_response_normalization: expected a depth_radius of 0 or more, got {depth_radius}")
    op = LocalResponseNormalization(depth_radius=int(depth_radius), bias=float(bias), alpha=float(alpha), beta=float(beta))
    return op(operand, name=name)


@operator(
    sample((2, 2, 3), expected=_mean_variance((1, 2))),
    sample((2, 2, 3), use_stats_across_channels=True, expected=_mean_variance((0, 1, 2))),
    sample((2, 3), do_variance_scaling=False, expected=_mean_variance((1,), scale=False)),
    sample((4,), epsilon=0.5, expected=_mean_variance((0,), 0.5)),
    sample(Operand((3, 4), kind="parameter"), epsilon=0, expected=_mean_variance((1,), 0.0)),
)
def mean_variance_normalization(
    operand: TensorLike,
    epsilon: float = 0.00001,
    use_stats_across_channels: bool = False,
    do_variance_scaling: bool = True,
    name: str = "",
) -> Function:
    """Bring each sample, channel by channel, to mean 0 and standard deviation 1.

    Args:
        operand: values of static shape (channels, ...); a vector is taken as one channel.
        epsilon: added to the (biased) standard deviation before dividing by it.
        use_stats_across_channels: normalise all channels of a sample together.
        do_variance_scaling: divide by the standard deviation; if not, only the mean is taken away.
        name: name of the Function.

    Returns:
        values of the operand's shape and dynamic axes.  Gradients flow through mean and deviation too.

    Raises:
        ValueError: *epsilon* is negative.

    >>> C.mean_variance_normalization([[1, 2, 3], [0, 0, 6]], do_variance_scaling=False).eval()
    array([[-1.,  0.,  1.],
           [-2., -2.,  4.]], dtype=float32)
    """
    if epsilon < 0:
        raise ValueError(f"mean_variance_normalization: expected an epsilon of 0 or more, got {epsilon}")
    op = MeanVarianceNormalization(
        epsilon=float(epsilon),
        use_stats_across_channels=bool(use_stats_across_channels),
        do_variance_scaling=bool(do_variance_scaling),
    )
    return op(operand, name=name)
