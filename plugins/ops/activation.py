"""Activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formulas import formula as f
from ...core.formulas.formula import exp, expm1, log1p, maximum, minimum, where
from ...core.graph.arguments import TensorLike
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import ALL
from ...core.operators.samples import Operand, operator, sample

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from ...core.types.context import Context


class Sigmoid(Elementwise):
    """Logistic function, as ``e / (1 + e)`` with ``e = exp(x)``: exact far into the left tail."""

    op_name = "StableSigmoid"
    in_place = (0,)
    keep_output = True

    def formula(self, x: Any) -> Any:
        return f.sigmoid(x)

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        xp = ctx.xp
        saturated = 11 if y.dtype == np.float16 else 80  # from here the value rounds to 1 and exp(x) is not yet infinite
        below = ctx.scratch("below", y.shape, y.dtype)
        xp.minimum(x, saturated, out=y)
        xp.exp(y, out=y)
        xp.add(y, 1, out=below)
        xp.divide(y, below, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.subtract(1, y, out=dx)
        ctx.xp.multiply(dx, y, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


class Tanh(Elementwise):
    """Hyperbolic tangent."""

    op_name = "Tanh"
    in_place = (0,)
    keep_output = True

    def formula(self, x: Any) -> Any:
        return f.tanh(x)

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.tanh(x, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.multiply(y, y, out=dx)
        ctx.xp.subtract(1, dx, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


class ReLU(Elementwise):
    """Rectifier, 0 for -0; its gradient is 0 at 0."""

    op_name = "ReLU"
    keeps_order = True
    in_place = (0,)
    gradient_in_place = (0,)
    keep_output = True

    def formula(self, x: Any) -> Any:
        return where(x <= 0, 0, x)

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        return (y > 0) * dy

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.maximum(x, 0, out=y)
        if y.dtype == np.float16:  # NumPy's maximum leaves -0 as it is
            ctx.xp.add(y, 0, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        positive = ctx.scratch("positive", y.shape, bool)
        ctx.xp.greater(y, 0, out=positive)
        ctx.xp.multiply(dy, positive, out=dx)


class LeakyReLU(Elementwise):
    """Rectifier with slope ``alpha`` below 0; its gradient is 1 at 0."""

    op_name = "LeakyReLU"
    alpha: float
    keep_inputs = ALL

    def formula(self, x: Any) -> Any:
        return x * _slope(x, self.alpha)

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        return _slope(x, self.alpha) * dy

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        outer = ctx.xp.maximum if self.alpha <= 1 else ctx.xp.minimum
        ctx.xp.multiply(x, self.alpha, out=y)
        outer(x, y, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        _write_slope(ctx, dx, inputs[0], self.alpha)
        ctx.xp.multiply(dx, dy, out=dx)


class PReLU(Elementwise):
    """Rectifier with a learned slope for each element below 0."""

    op_name = "PReLU"
    keep_inputs = ALL

    def formula(self, alpha: Any, x: Any) -> Any:
        return alpha * minimum(x, 0) + maximum(x, 0)

    def gradient_formula(self, i: int, dy: Any, y: Any, alpha: Any, x: Any) -> Any:
        return (_slope(x, alpha) if i else minimum(x, 0)) * dy

    def forward(self, ctx: Context, y: Any, alpha: Any, x: Any) -> None:
        positive = ctx.scratch("positive", x.shape, x.dtype)
        negative = ctx.scratch("negative", x.shape, x.dtype)
        ctx.xp.maximum(x, 0, out=positive)
        ctx.xp.minimum(x, 0, out=negative)
        ctx.xp.multiply(alpha, negative, out=y)
        ctx.xp.add(y, positive, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        alpha, x = inputs
        if i == 0:
            ctx.xp.minimum(x, 0, out=dx)
        else:
            _write_slope(ctx, dx, x, alpha)
        ctx.xp.multiply(dx, dy, out=dx)


class ELU(Elementwise):
    """Exponential linear unit: ``alpha * (exp(x) - 1)`` below 0."""

    op_name = "ELU"
    in_place = (0,)
    alpha: float
    keep_inputs = ALL

    def formula(self, x: Any) -> Any:
        return expm1(minimum(x, 0)) * self.alpha + maximum(x, 0)

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        return _slope(x, exp(minimum(x, 0)) * self.alpha) * dy

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        positive = ctx.scratch("positive", x.shape, x.dtype)
        ctx.xp.maximum(x, 0, out=positive)
        ctx.xp.minimum(x, 0, out=y)
        ctx.xp.expm1(y, out=y)
        ctx.xp.multiply(y, self.alpha, out=y)
        ctx.xp.add(y, positive, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.minimum(inputs[0], 0, out=dx)
        ctx.xp.exp(dx, out=dx)
        ctx.xp.multiply(dx, self.alpha, out=dx)
        _write_slope(ctx, dx, inputs[0], dx)
        ctx.xp.multiply(dx, dy, out=dx)


class SELU(ELU):
    """Exponential linear unit scaled by ``gamma``."""

    op_name = "SELU"
    gamma: float

    def formula(self, x: Any) -> Any:
        return super().formula(x) * self.gamma

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        return super().gradient_formula(i, dy, y, x) * self.gamma

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        super().forward(ctx, y, x)
        ctx.xp.multiply(y, self.gamma, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        super().gradient(i, ctx, dx, dy, y, *inputs)
        ctx.xp.multiply(dx, self.gamma, out=dx)


def _slope(x: Any, below: Any) -> Any:
    """*below* where *x* < 0, and 1 elsewhere."""
    return (x < 0) * below + (x >= 0)


def _write_slope(ctx: Context, dx: Any, x: Any, below: Any) -> None:
    """Write *below*, which may be *dx* itself, where *x* < 0 and 1 elsewhere into *dx*."""
    side = ctx.scratch("side", dx.shape, dx.dtype)
    ctx.xp.less(x, 0, out=side)
    ctx.xp.multiply(side, below, out=dx)
    ctx.xp.greater_equal(x, 0, out=side)
    ctx.xp.add(dx, side, out=dx)


class Softplus(Elementwise):
    """``log(1 + exp(s x)) / s`` as ``(max(s x, 0) + log(1 + exp(-|s x|))) / s``, which cannot overflow."""

    op_name = "Softplus"
    in_place = (0,)
    steepness: float
    keep_output = True

    def formula(self, x: Any) -> Any:
        scaled = x * self.steepness
        return (log1p(exp(-abs(scaled))) + maximum(scaled, 0)) * (1 / self.steepness)

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        return -expm1(y * -self.steepness) * dy

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        xp = ctx.xp
        positive = ctx.scratch("positive", x.shape, x.dtype)
        xp.multiply(x, self.steepness, out=y)
        xp.maximum(y, 0, out=positive)
        xp.absolute(y, out=y)
        xp.negative(y, out=y)
        xp.exp(y, out=y)
        xp.log1p(y, out=y)
        xp.add(y, positive, out=y)
        xp.divide(y, self.steepness, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.multiply(y, -self.steepness, out=dx)
        ctx.xp.expm1(dx, out=dx)
        ctx.xp.negative(dx, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


class Softsign(Elementwise):
    """``s x / (1 + |s x|)``; its derivative is ``s / (1 + |s x|)²``."""

    op_name = "Softsign"
    in_place = (0,)
    steepness: float
    keep_inputs = ALL

    def formula(self, x: Any) -> Any:
        scaled = x * self.steepness
        return scaled / (abs(scaled) + 1)

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        below = 1 / (abs(x * self.steepness) + 1)
        return below * below * self.steepness * dy

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        scaled = ctx.scratch("scaled", x.shape, x.dtype)
        ctx.xp.multiply(x, self.steepness, out=scaled)
        ctx.xp.absolute(scaled, out=y)
        ctx.xp.add(y, 1, out=y)
        ctx.xp.divide(scaled, y, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        xp = ctx.xp
        xp.multiply(inputs[0], self.steepness, out=dx)
        xp.absolute(dx, out=dx)
        xp.add(dx, 1, out=dx)
        xp.reciprocal(dx, out=dx)
        xp.multiply(dx, dx, out=dx)
        xp.multiply(dx, self.steepness, out=dx)
        xp.multiply(dx, dy, out=dx)


class HardSigmoid(Elementwise):
    """``alpha * x + beta`` clipped to [0, 1]; its gradient is 0 at 0 and 1."""

    op_name = "HardSigmoid"
    in_place = (0,)
    alpha: float
    beta: float
    keep_output = True

    def formula(self, x: Any) -> Any:
        return minimum(maximum(x * self.alpha + self.beta, 0), 1)

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        return (y > 0) * (y < 1) * self.alpha * dy

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.multiply(x, self.alpha, out=y)
        ctx.xp.add(y, self.beta, out=y)
        ctx.xp.clip(y, 0, 1, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        below_one = ctx.scratch("below_one", dx.shape, dx.dtype)
        ctx.xp.greater(y, 0, out=dx)
        ctx.xp.less(y, 1, out=below_one)
        ctx.xp.multiply(dx, below_one, out=dx)
        ctx.xp.multiply(dx, self.alpha, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


class StraightThrough(Elementwise):
    """Sign, with the gradient of the identity between -1 and 1."""

    op_name = "StraightThrough"
    in_place = (0,)
    keep_inputs = ALL

    def formula(self, x: Any) -> Any:
        return (x > 0) * 2 - 1

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        return (abs(x) <= 1) * dy

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.greater(x, 0, out=y)
        ctx.xp.multiply(y, 2, out=y)
        ctx.xp.subtract(y, 1, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.absolute(inputs[0], out=dx)
        ctx.xp.less_equal(dx, 1, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


# ---- public operators ----------------------------------------------------------------------------

ABOVE = Operand((2, 3), 0.1, 2)
BELOW = Operand((3,), -2, -0.1)


@operator(
    sample(Operand((2, 3), -5, 5), expected=lambda x: 1 / (1 + np.exp(-x))),
    sample((), expected=lambda x: 1 / (1 + np.exp(-x))),
    sample(Operand((3,), kind="parameter"), expected=lambda x: 1 / (1 + np.exp(-x))),
)
def sigmoid(x: TensorLike, name: str = "") -> Function:
    """Logistic function ``1 / (1 + exp(-x))`` of each element; shape and dynamic axes are those of *x*.

    The gradient is made of the result: it is 0 where that has rounded to 1.

    Example:
        >>> C.sigmoid([-2, 0, 2]).eval().round(4)
        array([0.1192, 0.5   , 0.8808], dtype=float32)
    """
    return Sigmoid()(x, name=name)


@operator(sample((2, 3), expected=np.tanh), sample((), expected=np.tanh), sample(Operand((3,), kind="parameter"), expected=np.tanh))
def tanh(x: TensorLike, name: str = "") -> Function:
    """Hyperbolic tangent of each element; shape and dynamic axes are those of *x*.

    The gradient is made of the result: it is 0 where that has rounded to 1 or -1.

    Example:
        >>> C.tanh([0, 1]).eval().round(4)
        array([0.    , 0.7616], dtype=float32)
    """
    return Tanh()(x, name=name)


@operator(sample(ABOVE, expected=lambda x: x), sample(BELOW, expected=np.zeros_like), sample(Operand((), 0.1, 1), expected=lambda x: x))
def relu(x: TensorLike, name: str = "") -> Function:
    """Rectifier ``max(x, 0)`` of each element; shape and dynamic axes are those of *x*.  The gradient at 0 is 0.

    Example:
        >>> C.relu([-1, 0, 2]).eval()
        array([0., 0., 2.], dtype=float32)
    """
    return ReLU()(x, name=name)


@operator(
    sample(ABOVE, expected=lambda x: x),
    sample(BELOW, expected=lambda x: 0.01 * x),
    sample(BELOW, alpha=0.3, expected=lambda x: 0.3 * x),
    sample(BELOW, alpha=2.0, expected=lambda x: 2 * x),
)
def leaky_relu(x: TensorLike, alpha: float = 0.01, name: str = "") -> Function:
    """Rectifier that lets a little through: *x* where it is not negative, ``alpha * x`` elsewhere.

    Args:
        x: operand; the result's shape and dynamic axes are the same.
        alpha: slope below 0.
        name: name of the Function.

    Example:
        >>> C.leaky_relu([-1, 0, 2], alpha=0.1).eval()
        array([-0.1,  0. ,  2. ], dtype=float32)
    """
    return LeakyReLU(alpha=alpha)(x, name=name)


@operator(
    sample(Operand((3,), kind="parameter"), Operand((2, 3), 0.1, 2), expected=lambda alpha, x: x + 0 * alpha),
    sample(Operand((3,), kind="parameter"), Operand((2, 3), -2, -0.1), expected=np.multiply),
    sample((2, 3), BELOW, expected=np.multiply),
)
def param_relu(alpha: TensorLike, x: TensorLike, name: str = "") -> Function:
    """Rectifier with learned slopes: *x* where it is not negative, ``alpha * x`` elsewhere.

    Args:
        alpha: slope below 0 for each element, usually a parameter; note that it comes first.
        x: operand; shapes broadcast as in :func:`plus`.
        name: name of the Function.

    Source:
        He, Zhang, Ren and Sun, *Delving Deep into Rectifiers*, 2015.

    Example:
        >>> C.param_relu([0.5, 0.1], [[-1, -1], [2, 2]]).eval()
        array([[-0.5, -0.1],
               [ 2. ,  2. ]], dtype=float32)
    """
    return PReLU()(alpha, x, name=name)


@operator(
    sample(ABOVE, expected=lambda x: x),
    sample(BELOW, expected=np.expm1),
    sample(BELOW, alpha=0.5, expected=lambda x: 0.5 * np.expm1(x)),
)
def elu(x: TensorLike, alpha: float = 1.0, name: str = "") -> Function:
    """Exponential linear unit: *x* where it is not negative, ``alpha * (exp(x) - 1)`` elsewhere.

    Args:
        x: operand; the result's shape and dynamic axes are the same.
        alpha: negated limit for small *x*.
        name: name of the Function.

    Source:
        Clevert, Unterthiner and Hochreiter, *Fast and Accurate Deep Network Learning by Exponential Linear Units*, 2016.

    Example:
        >>> C.elu([-1, 0, 2]).eval().round(4)
        array([-0.6321,  0.    ,  2.    ], dtype=float32)
    """
    return ELU(alpha=alpha)(x, name=name)


@operator(
    sample(ABOVE, expected=lambda x: 1.0507009873554805 * x),
    sample(BELOW, expected=lambda x: 1.0507009873554805 * 1.6732632423543772 * np.expm1(x)),
    sample(BELOW, scale=2.0, alpha=0.5, expected=np.expm1),
)
def selu(x: TensorLike, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772, name: str = "") -> Function:
    """Scaled exponential linear unit, :func:`elu` times *scale*; the default numbers keep mean 0 and variance 1.

    Args:
        x: operand; the result's shape and dynamic axes are the same.
        scale: factor.
        alpha: negated limit of the unit before scaling, for small *x*.
        name: name of the Function.

    Source:
        Klambauer, Unterthiner, Mayr and Hochreiter, *Self-Normalizing Neural Networks*, 2017.

    Example:
        >>> C.selu([-1, 0, 2]).eval().round(4)
        array([-1.1113,  0.    ,  2.1014], dtype=float32)
    """
    return SELU(gamma=scale, alpha=alpha)(x, name=name)


@operator(
    sample(Operand((2, 3), -5, 5), expected=lambda x: np.logaddexp(x, 0)),
    sample((), expected=lambda x: np.logaddexp(x, 0)),
    sample((3,), steepness=4, expected=lambda x: np.logaddexp(4 * x, 0) / 4),
)
def softplus(x: TensorLike, steepness: float = 1, name: str = "") -> Function:
    """Smooth rectifier ``log(1 + exp(s x)) / s`` of each element; it does not overflow.

    Args:
        x: operand; the result's shape and dynamic axes are the same.
        steepness: the *s* above; the larger, the nearer to :func:`relu`.
        name: name of the Function.

    Example:
        >>> C.softplus([-1, 0, 100]).eval().round(4)
        array([  0.3133,   0.6931, 100.    ], dtype=float32)
    """
    return Softplus(steepness=steepness)(x, name=name)


@operator(
    sample(ABOVE, expected=lambda x: x / (1 + np.abs(x))),
    sample(BELOW, steepness=3, expected=lambda x: 3 * x / (1 + np.abs(3 * x))),
)
def softsign(x: TensorLike, steepness: float = 1, name: str = "") -> Function:
    """``s x / (1 + |s x|)`` of each element, between -1 and 1.

    Args:
        x: operand; the result's shape and dynamic axes are the same.
        steepness: the *s* above, which is the slope at 0.  (CNTK 2.7 accepts it but computes with 1.)
        name: name of the Function.

    Example:
        >>> C.softsign([-1, 0, 3]).eval()
        array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    return Softsign(steepness=steepness)(x, name=name)


@operator(
    sample(Operand((2, 3), -2, 2), alpha=0.2, beta=0.5, expected=lambda x: 0.2 * x + 0.5),
    sample(Operand((3,), 3, 5), alpha=0.2, beta=0.5, expected=np.ones_like),
)
def hard_sigmoid(x: TensorLike, alpha: float, beta: float, name: str = "") -> Function:
    """``alpha * x + beta`` of each element, clipped to [0, 1].  The gradient is 0 where the value is 0 or 1.

    Args:
        x: operand; the result's shape and dynamic axes are the same.
        alpha: slope.
        beta: value at 0.
        name: name of the Function.

    Example:
        >>> C.hard_sigmoid([-2.5, -1.5, 1], 1, 2).eval()
        array([0. , 0.5, 1. ], dtype=float32)
    """
    return HardSigmoid(alpha=alpha, beta=beta)(x, name=name)


@operator(
    sample(Operand((2, 3), 0.1, 0.9, gradient=False), expected=np.sign),
    sample(Operand((3,), -0.9, -0.1, gradient=False), expected=np.sign),
)
def straight_through_impl(x: TensorLike, name: str = "") -> Function:
    """1 where an element is positive and -1 elsewhere, with the gradient passed on as if it were the identity.

    The gradient goes through where *x* lies in [-1, 1]; shape and dynamic axes are those of *x*.

    Source:
        Courbariaux et al., *Binarized Neural Networks*, 2016.

    Example:
        >>> C.straight_through_impl([-3, 0.5, 0]).eval()
        array([-1.,  1., -1.], dtype=float32)
    """
    return StraightThrough()(x, name=name)
