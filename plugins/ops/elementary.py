"""Elementary functions of one operand: exponential, logarithm, root, rounding, clipping."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formulas import formula as f
from ...core.graph.arguments import TensorLike
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import ALL
from ...core.operators.samples import Operand, operator, sample

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from ...core.types.context import Context


class Exp(Elementwise):
    """Exponential."""

    op_name = "Exp"
    in_place = (0,)
    gradient_in_place = ALL
    keep_output = True

    def formula(self, x: Any) -> Any:
        return f.exp(x)

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.exp(x, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.multiply(y, dy, out=dx)


class Log(Elementwise):
    """Natural logarithm, with the operand kept away from 0."""

    op_name = "Log"
    in_place = (0,)
    keep_inputs = ALL
    smallest = -85.1
    """The least value, near the logarithm of the least normal float32."""

    def formula(self, x: Any) -> Any:
        return f.maximum(f.log(x), self.smallest)

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        return dy / f.maximum(x, math.exp(self.smallest))

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.maximum(x, 0, out=y)
        ctx.xp.log(y, out=y)
        ctx.xp.maximum(y, self.smallest, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        least = 2.0**-24 if dx.dtype == np.float16 else math.exp(self.smallest)
        ctx.xp.maximum(inputs[0], least, out=dx)
        ctx.xp.divide(dy, dx, out=dx)


class Sqrt(Elementwise):
    """Square root, 0 for negative numbers; where no gradient comes none goes on, even from a root of 0."""

    op_name = "Sqrt"
    in_place = (0,)
    keep_output = True

    def formula(self, x: Any) -> Any:
        return f.sqrt(x)

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.maximum(x, 0, out=y)
        ctx.xp.sqrt(y, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        none = ctx.scratch("none", dx.shape, bool)
        ctx.xp.multiply(y, 2, out=dx)
        ctx.xp.divide(dy, dx, out=dx)
        ctx.xp.equal(dy, 0, out=none)
        ctx.xp.copyto(dx, 0, where=none)


class Floor(Elementwise):
    """Largest whole number that is not larger."""

    op_name = "Floor"
    in_place = (0,)
    gradient_inputs = ()

    def formula(self, x: Any) -> Any:
        return f.floor(x)

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.floor(x, out=y)


class Ceil(Elementwise):
    """Smallest whole number that is not smaller."""

    op_name = "Ceil"
    in_place = (0,)
    gradient_inputs = ()

    def formula(self, x: Any) -> Any:
        return -f.floor(-x)

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.ceil(x, out=y)


class Round(Elementwise):
    """Nearest whole number; halves go up."""

    op_name = "Round"
    in_place = (0,)
    gradient_inputs = ()

    def formula(self, x: Any) -> Any:
        return f.floor(x + 0.5)

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.add(x, 0.5, out=y)
        ctx.xp.floor(y, out=y)


class Clip(Elementwise):
    """The operand kept between two bounds, which get no gradient."""

    op_name = "Clip"
    in_place = (0,)
    keep_inputs = ALL
    gradient_inputs = (0,)

    def formula(self, x: Any, low: Any, high: Any) -> Any:
        return f.minimum(f.maximum(x, low), high)

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any, low: Any, high: Any) -> Any:
        return (x >= low) * (x <= high) * dy

    def forward(self, ctx: Context, y: Any, x: Any, low: Any, high: Any) -> None:
        ctx.xp.maximum(x, low, out=y)
        ctx.xp.minimum(y, high, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        x, low, high = inputs
        below_high = ctx.scratch("below_high", dx.shape, dx.dtype)
        ctx.xp.greater_equal(x, low, out=dx)
        ctx.xp.less_equal(x, high, out=below_high)
        ctx.xp.multiply(dx, below_high, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


# ---- public operators ----------------------------------------------------------------------------


@operator(sample((2, 3), expected=np.exp), sample((), expected=np.exp), sample(Operand((3,), kind="parameter"), expected=np.exp))
def exp(x: TensorLike, name: str = "") -> Function:
    """Exponential of each element; shape and dynamic axes are those of *x*.

    Example:
        >>> C.exp([0, 1]).eval().round(4)
        array([1.    , 2.7183], dtype=float32)
    """
    return Exp()(x, name=name)


@operator(sample(Operand((2, 3), 0.2, 3), expected=np.log), sample(Operand((), 0.2, 3), expected=np.log))
def log(x: TensorLike, name: str = "") -> Function:
    """Natural logarithm of each element; shape and dynamic axes are those of *x*.

    Numbers that are not positive are taken for exp(-85.1), about 1.1e-37: the value there is -85.1 and the gradient finite
    (9.09e36), not -inf or nan.  In float16, which holds no such numbers, the gradient there is inf.

    Example:
        >>> C.log([1, 2, 0]).eval().round(4)
        array([  0.    ,   0.6931, -85.1   ], dtype=float32)
    """
    return Log()(x, name=name)


@operator(sample(Operand((2, 3), 0.2, 3), expected=np.sqrt), sample(Operand((), 0.2, 3), expected=np.sqrt))
def sqrt(x: TensorLike, name: str = "") -> Function:
    """Square root of each element, 0 for negative ones; shape and dynamic axes are those of *x*.

    The gradient is inf where the root is 0, but 0 where none comes from what follows: layer normalisation of equal numbers has one.

    Example:
        >>> C.sqrt([4, 2, -1]).eval().round(4)
        array([2.    , 1.4142, 0.    ], dtype=float32)
    """
    return Sqrt()(x, name=name)


@operator(sample(Operand((2, 3), 0.1, 0.9), expected=np.floor), sample(Operand((3,), -2.9, -2.1), expected=np.floor))
def floor(arg: TensorLike, name: str = "") -> Function:
    """Largest whole number not above each element; shape and dynamic axes are those of *arg*.  The gradient is 0.

    Example:
        >>> C.floor([0.2, 1.9, -0.5]).eval()
        array([ 0.,  1., -1.], dtype=float32)
    """
    return Floor()(arg, name=name)


@operator(sample(Operand((2, 3), 0.1, 0.9), expected=np.ceil), sample(Operand((3,), -2.9, -2.1), expected=np.ceil))
def ceil(arg: TensorLike, name: str = "") -> Function:
    """Smallest whole number not below each element; shape and dynamic axes are those of *arg*.  The gradient is 0.

    Example:
        >>> C.ceil([0.2, 1.9, -1.5]).eval()
        array([ 1.,  2., -1.], dtype=float32)
    """
    return Ceil()(arg, name=name)


@operator(
    sample(Operand((2, 3), 0.6, 1.4), expected=np.round),
    sample(Operand(np.array([-2.5, -0.5, 0.5, 2.5]), gradient=False), expected=lambda x: np.floor(x + 0.5)),
)
def round(arg: TensorLike, name: str = "") -> Function:
    """Nearest whole number of each element; shape and dynamic axes are those of *arg*.  The gradient is 0.

    Halves go up, to ``floor(arg + 0.5)``, unlike in NumPy where they go to the even neighbour.

    Example:
        >>> C.round([0.5, 1.4, 2.5, -1.5]).eval()
        array([ 1.,  1.,  3., -1.], dtype=float32)
    """
    return Round()(arg, name=name)


@operator(
    sample(Operand((2, 3), -0.9, 0.9), call=lambda f, x: f(x, -1, 1), expected=lambda x: x),
    sample(Operand((2, 3), 1.1, 2), min_value=-1, max_value=1, expected=np.ones_like),
    sample(
        Operand((2, 3), 0.6, 0.9),
        Operand((3,), -1, 0.5, kind="parameter", gradient=False),
        Operand((2, 1), 1, 2, kind="parameter", gradient=False),
        expected=np.clip,
    ),
)
def clip(x: TensorLike, min_value: TensorLike, max_value: TensorLike, name: str = "") -> Function:
    """Each element of *x*, or the bound that it is beyond.

    Args:
        x: operand.
        min_value, max_value: the bounds: numbers, arrays or operands; shapes broadcast with that of *x*.  Where the lower
            one is larger the result is the upper one.
        name: name of the Function.

    Returns:
        Function of the broadcast shape.  The gradient goes to *x* alone, where it is inside the bounds or on them.

    Example:
        >>> C.clip([-3, 0.5, 3], -1, [2]).eval()
        array([-1. ,  0.5,  2. ], dtype=float32)
    """
    return Clip()(x, min_value, max_value, name=name)
