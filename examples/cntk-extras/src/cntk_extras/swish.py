"""Swish: an operator of our own."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntk.extend import Context, Elementwise, Operand, operator, sample


class Swish(Elementwise):
    """``x * sigmoid(beta * x)``."""

    op_name = "Swish"
    keep_inputs = (0,)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        (x,) = inputs
        self._one_over_sigmoid(ctx, out, x)
        ctx.xp.divide(x, out, out=out)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        """With s = sigmoid(beta x): dx = dy * s * (1 + beta * x * (1 - s))."""
        xp, (x,) = ctx.xp, inputs
        s = ctx.scratch("sigmoid", x.shape, x.dtype)
        self._one_over_sigmoid(ctx, s, x)
        xp.reciprocal(s, out=s)
        xp.subtract(1, s, out=dx)
        xp.multiply(dx, x, out=dx)
        xp.multiply(dx, self.beta, out=dx)
        xp.add(dx, 1, out=dx)
        xp.multiply(dx, s, out=dx)
        xp.multiply(dx, dy, out=dx)

    def _one_over_sigmoid(self, ctx: Context, out: Any, x: Any) -> None:
        ctx.xp.multiply(x, -self.beta, out=out)
        ctx.xp.exp(out, out=out)
        ctx.xp.add(out, 1, out=out)


def _expected(x: Any, beta: float = 1.0) -> Any:
    return x / (1 + np.exp(-beta * x))


@operator(
    sample((3, 2), expected=_expected),
    sample(Operand((4,), low=-6, high=6), beta=2.0, expected=lambda x: _expected(x, 2.0)),
    sample(Operand((2,), kind="parameter"), expected=_expected),
)
def swish(x: Any, beta: float = 1.0, name: str = "") -> Any:
    """Swish activation, ``x * sigmoid(beta * x)``, element by element.

    Source: Ramachandran, Zoph, Le: Searching for Activation Functions, 2017.

    Args:
        x: any value.
        beta: steepness of the sigmoid.
        name: name of the function in the network.

    Returns:
        A Function with the shape and dynamic axes of *x*.

    >>> C.swish([0., 1.]).eval()
    array([0.      , 0.731059], dtype=float32)
    """
    return Swish(beta=float(beta))(x, name=name)
