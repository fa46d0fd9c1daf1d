"""The larger or smaller of elements, sharp (maximum, minimum) and smooth (logarithm of summed exponentials)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formulas.formula import exp, log1p, maximum, minimum
from ...core.graph.arguments import TensorLike
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import ALL
from ...core.operators.samples import Operand, operator, sample
from .tree import tree

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from ...core.types.context import Context


class ElementMax(Elementwise):
    """The larger of two operands; of equal ones the right gets the gradient."""

    op_name = "ElementMax"
    in_place = (0, 1)
    keep_inputs = ALL

    def formula(self, x: Any, y: Any) -> Any:
        return maximum(x, y)

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.maximum(x, y, out=z)

    def gradient(self, i: int, ctx: Context, dx: Any, dz: Any, z: Any, *inputs: Any) -> None:
        chosen = ctx.xp.greater if i == 0 else ctx.xp.less_equal
        chosen(inputs[0], inputs[1], out=dx)
        ctx.xp.multiply(dx, dz, out=dx)


class ElementMin(Elementwise):
    """The smaller of two operands; of equal ones the right gets the gradient."""

    op_name = "ElementMin"
    in_place = (0, 1)
    keep_inputs = ALL

    def formula(self, x: Any, y: Any) -> Any:
        return minimum(x, y)

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.minimum(x, y, out=z)

    def gradient(self, i: int, ctx: Context, dx: Any, dz: Any, z: Any, *inputs: Any) -> None:
        chosen = ctx.xp.less if i == 0 else ctx.xp.greater_equal
        chosen(inputs[0], inputs[1], out=dx)
        ctx.xp.multiply(dx, dz, out=dx)


class LogPlus(Elementwise):
    """``log(exp(x) + exp(y))`` as ``max(x, y) + log(1 + exp(-|x - y|))``, which cannot overflow."""

    op_name = "LogPlus"
    keep_inputs = ALL

    def formula(self, x: Any, y: Any) -> Any:
        return log1p(exp(-abs(x - y))) + maximum(x, y)

    def gradient_formula(self, i: int, dz: Any, z: Any, *inputs: Any) -> Any:
        return dz / (exp(inputs[1 - i] - inputs[i]) + 1)

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        xp = ctx.xp
        larger = ctx.scratch("larger", z.shape, z.dtype)
        xp.maximum(x, y, out=larger)
        xp.subtract(x, y, out=z)
        xp.absolute(z, out=z)
        xp.negative(z, out=z)
        xp.exp(z, out=z)
        xp.log1p(z, out=z)
        xp.add(z, larger, out=z)

    def gradient(self, i: int, ctx: Context, dx: Any, dz: Any, z: Any, *inputs: Any) -> None:
        xp = ctx.xp
        # Not exp(inputs[i] - z): z has lost the share of the smaller operand where both are large.
        xp.subtract(inputs[1 - i], inputs[i], out=dx)
        xp.exp(dx, out=dx)
        xp.add(dx, 1, out=dx)
        xp.divide(dz, dx, out=dx)


# ---- public operators ----------------------------------------------------------------------------


@operator(
    sample(Operand((2, 3), 0.5, 1), Operand((2, 3), -1, 0), expected=np.maximum),
    sample(Operand((2, 3), -1, 0), Operand((3,), 0.5, 1, kind="parameter"), expected=np.maximum),
    sample(Operand((), 0, 1), Operand((2, 1), 2, 3), Operand((3,), -2, -1), expected=lambda x, y, z: np.maximum(np.maximum(x, y), z)),
)
def element_max(left: TensorLike, right: TensorLike, *more: TensorLike, name: str = "") -> Function:
    """The largest of two or more operands, element by element, broadcast as in :func:`plus`.

    The gradient goes to the operand that is largest, of two equal ones to the right.

    Example:
        >>> C.element_max([1, 5, 3], [4, 2, 3]).eval()
        array([4., 5., 3.], dtype=float32)
    """
    return tree(ElementMax, (left, right, *more), name)


@operator(
    sample(Operand((2, 3), 0.5, 1), Operand((2, 3), -1, 0), expected=np.minimum),
    sample(Operand((2, 3), -1, 0), Operand((3,), 0.5, 1, kind="parameter"), expected=np.minimum),
    sample(Operand((), 0, 1), Operand((2, 1), 2, 3), Operand((3,), -2, -1), expected=lambda x, y, z: np.minimum(np.minimum(x, y), z)),
)
def element_min(left: TensorLike, right: TensorLike, *more: TensorLike, name: str = "") -> Function:
    """The smallest of two or more operands, element by element, broadcast as in :func:`plus`.

    The gradient goes to the operand that is smallest, of two equal ones to the right.

    Example:
        >>> C.element_min([1, 5, 3], [4, 2, 3]).eval()
        array([1., 2., 3.], dtype=float32)
    """
    return tree(ElementMin, (left, right, *more), name)


@operator(
    sample((2, 3), (2, 3), expected=np.logaddexp),
    sample((2, 3), Operand((3,), kind="parameter"), expected=np.logaddexp),
    sample(Operand((2,), 50, 90), Operand((2,), 50, 90), (), expected=lambda x, y, z: np.logaddexp(np.logaddexp(x, y), z)),
)
def log_add_exp(left: TensorLike, right: TensorLike, *more: TensorLike, name: str = "") -> Function:
    """Logarithm of the sum of the exponentials of two or more operands, broadcast as in :func:`plus`; it does not overflow.

    Example:
        >>> C.log_add_exp([0, 1], [0, 1]).eval().round(4)
        array([0.6931, 1.6931], dtype=float32)
    """
    return tree(LogPlus, (left, right, *more), name)
