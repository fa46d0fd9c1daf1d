"""Comparisons and logic: results are 1 for true and 0 for false, in the operands' element type, and have no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formulas.formula import maximum, where
from ...core.graph.arguments import TensorLike
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import Traits
from ...core.operators.samples import Operand, operator, sample

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from ...core.types.context import Context


class Less(Elementwise):
    """Whether the left operand is smaller."""

    op_name = "Less"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any, y: Any) -> Any:
        return x < y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.less(x, y, out=z)


class LessEqual(Elementwise):
    """Whether the left operand is not larger."""

    op_name = "LessEqual"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any, y: Any) -> Any:
        return x <= y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.less_equal(x, y, out=z)


class Equal(Elementwise):
    """Whether the operands are equal."""

    op_name = "Equal"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any, y: Any) -> Any:
        return x == y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.equal(x, y, out=z)


class NotEqual(Elementwise):
    """Whether the operands differ."""

    op_name = "NotEqual"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any, y: Any) -> Any:
        return x != y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.not_equal(x, y, out=z)


class Greater(Elementwise):
    """Whether the left operand is larger."""

    op_name = "Greater"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any, y: Any) -> Any:
        return x > y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.greater(x, y, out=z)


class GreaterEqual(Elementwise):
    """Whether the left operand is not smaller."""

    op_name = "GreaterEqual"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any, y: Any) -> Any:
        return x >= y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.greater_equal(x, y, out=z)


class And(Elementwise):
    """Whether both operands are positive."""

    op_name = "And"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any, y: Any) -> Any:
        return (x > 0) * (y > 0)

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.minimum(x, y, out=z)
        ctx.xp.greater(z, 0, out=z)


class Or(Elementwise):
    """Whether an operand is positive."""

    op_name = "Or"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any, y: Any) -> Any:
        return maximum(x > 0, y > 0)

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.fmax(x, y, out=z)
        ctx.xp.greater(z, 0, out=z)


class Xor(Elementwise):
    """Whether exactly one operand is positive."""

    op_name = "Xor"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any, y: Any) -> Any:
        return (x > 0) != (y > 0)

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        left = ctx.scratch("left", x.shape, bool)
        right = ctx.scratch("right", y.shape, bool)
        ctx.xp.greater(x, 0, out=left)
        ctx.xp.greater(y, 0, out=right)
        ctx.xp.not_equal(left, right, out=z)


class Not(Elementwise):
    """Whether the operand is not positive."""

    op_name = "Not"
    traits = Traits(recordable=True, is_condition=True)
    gradient_inputs = ()

    def formula(self, x: Any) -> Any:
        return x <= 0

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.less_equal(x, 0, out=y)


class Select(Elementwise):
    """The second operand where the first is not 0, the third elsewhere."""

    op_name = "Select"
    keep_inputs = (0,)
    gradient_inputs = (1, 2)

    def formula(self, flag: Any, if_true: Any, if_false: Any) -> Any:
        return where(flag, if_true, if_false)

    def forward(self, ctx: Context, y: Any, flag: Any, if_true: Any, if_false: Any) -> None:
        chosen = ctx.scratch("chosen", flag.shape, bool)
        ctx.xp.not_equal(flag, 0, out=chosen)
        ctx.xp.copyto(y, if_false)
        ctx.xp.copyto(y, if_true, where=chosen)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        chosen = ctx.xp.not_equal if i == 1 else ctx.xp.equal
        chosen(inputs[0], 0, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


# ---- public operators ----------------------------------------------------------------------------

ONE = Operand((2, 3), 0.5, 1)
TWO = Operand((3,), 1.5, 2, kind="parameter")
NEGATIVE = Operand((3,), -2, -0.5, kind="parameter")


@operator(sample(ONE, ONE, expected=np.less), sample(ONE, TWO, expected=np.less))
def less(left: TensorLike, right: TensorLike, name: str = "") -> Function:
    """1 where *left* < *right*, else 0; broadcast as in :func:`plus`, without gradient.

    Example:
        >>> C.less([41, 42, 43], [42]).eval()
        array([1., 0., 0.], dtype=float32)
    """
    return Less()(left, right, name=name)


@operator(sample(ONE, ONE, expected=np.less_equal), sample(ONE, TWO, expected=np.less_equal))
def less_equal(left: TensorLike, right: TensorLike, name: str = "") -> Function:
    """1 where *left* <= *right*, else 0; broadcast as in :func:`plus`, without gradient.

    Example:
        >>> C.less_equal([41, 42, 43], [42]).eval()
        array([1., 1., 0.], dtype=float32)
    """
    return LessEqual()(left, right, name=name)


@operator(sample(ONE, TWO, expected=np.equal), sample(ONE, call=lambda f, x: f(x, x), expected=np.ones_like))
def equal(left: TensorLike, right: TensorLike, name: str = "") -> Function:
    """1 where *left* == *right*, else 0; broadcast as in :func:`plus`, without gradient.

    Example:
        >>> C.equal([41, 42, 43], [42]).eval()
        array([0., 1., 0.], dtype=float32)
    """
    return Equal()(left, right, name=name)


@operator(sample(ONE, TWO, expected=np.not_equal), sample(ONE, call=lambda f, x: f(x, x), expected=np.zeros_like))
def not_equal(left: TensorLike, right: TensorLike, name: str = "") -> Function:
    """1 where *left* != *right*, else 0; broadcast as in :func:`plus`, without gradient.

    Example:
        >>> C.not_equal([41, 42, 43], [42]).eval()
        array([1., 0., 1.], dtype=float32)
    """
    return NotEqual()(left, right, name=name)


@operator(sample(ONE, ONE, expected=np.greater), sample(ONE, TWO, expected=np.greater))
def greater(left: TensorLike, right: TensorLike, name: str = "") -> Function:
    """1 where *left* > *right*, else 0; broadcast as in :func:`plus`, without gradient.

    Example:
        >>> C.greater([41, 42, 43], [42]).eval()
        array([0., 0., 1.], dtype=float32)
    """
    return Greater()(left, right, name=name)


@operator(sample(ONE, ONE, expected=np.greater_equal), sample(ONE, TWO, expected=np.greater_equal))
def greater_equal(left: TensorLike, right: TensorLike, name: str = "") -> Function:
    """1 where *left* >= *right*, else 0; broadcast as in :func:`plus`, without gradient.

    Example:
        >>> C.greater_equal([41, 42, 43], [42]).eval()
        array([0., 1., 1.], dtype=float32)
    """
    return GreaterEqual()(left, right, name=name)


@operator(
    sample((2, 3), (2, 3), expected=lambda x, y: (x > 0) & (y > 0)),
    sample((2, 3), TWO, expected=lambda x, y: x > 0),
    sample((2, 3), NEGATIVE, expected=lambda x, y: 0 * x),
)
def element_and(x: TensorLike, y: TensorLike, name: str = "") -> Function:
    """1 where both operands are true, that is larger than 0, else 0; broadcast as in :func:`plus`, without gradient.

    Example:
        >>> C.element_and([1, 1, 0, -1], [1, 0, 0, 1]).eval()
        array([1., 0., 0., 0.], dtype=float32)
    """
    return And()(x, y, name=name)


@operator(
    sample((2, 3), (2, 3), expected=lambda x, y: (x > 0) | (y > 0)),
    sample((2, 3), TWO, expected=lambda x, y: np.ones_like(x)),
    sample((2, 3), NEGATIVE, expected=lambda x, y: x > 0),
)
def element_or(x: TensorLike, y: TensorLike, name: str = "") -> Function:
    """1 where an operand is true, that is larger than 0, else 0; broadcast as in :func:`plus`, without gradient.

    Example:
        >>> C.element_or([1, 1, 0, -1], [1, 0, 0, 1]).eval()
        array([1., 1., 0., 1.], dtype=float32)
    """
    return Or()(x, y, name=name)


@operator(
    sample((2, 3), (2, 3), expected=lambda x, y: (x > 0) ^ (y > 0)),
    sample((2, 3), TWO, expected=lambda x, y: x <= 0),
    sample((2, 3), NEGATIVE, expected=lambda x, y: x > 0),
)
def element_xor(x: TensorLike, y: TensorLike, name: str = "") -> Function:
    """1 where one operand is true, that is larger than 0, and the other not; broadcast as in :func:`plus`, without gradient.

    Example:
        >>> C.element_xor([1, 1, 0, -1], [1, 0, 0, 1]).eval()
        array([0., 1., 0., 1.], dtype=float32)
    """
    return Xor()(x, y, name=name)


@operator(sample((2, 3), expected=lambda x: x <= 0), sample((), expected=lambda x: x <= 0))
def element_not(x: TensorLike, name: str = "") -> Function:
    """1 where the operand is not true, that is not larger than 0, else 0; without gradient.

    The shape and dynamic axes are those of *x*.

    Example:
        >>> C.element_not([1, 0, -1]).eval()
        array([0., 1., 1.], dtype=float32)
    """
    return Not()(x, name=name)


@operator(
    sample(Operand((2, 3), gradient=False), (2, 3), (2, 3), expected=lambda flag, x, y: np.where(flag != 0, x, y)),
    sample(Operand((3,), 0.5, 1, gradient=False), (2, 1), Operand((3,), kind="parameter"), expected=lambda flag, x, y: x + 0 * y),
    sample(
        (2, 3),
        Operand((3,), kind="parameter"),
        call=lambda f, x, y: f([0, 1, -1], x, y),
        expected=lambda x, y: np.where([False, True, True], x, y),
    ),
)
def element_select(flag: TensorLike, value_if_true: TensorLike, value_if_false: TensorLike, name: str = "") -> Function:
    """Elements of *value_if_true* where *flag* is not 0 (negative numbers included), of *value_if_false* elsewhere.

    Args:
        flag: the condition, which gets no gradient.
        value_if_true, value_if_false: what to choose from; the gradient goes to the one that is chosen.
        name: name of the Function.

    Returns:
        Function of the three operands' shapes, broadcast as in :func:`plus`.

    Example:
        >>> C.element_select([-10, -1, 0, 0.3], [1, 10, 100, 1000], [2, 20, 200, 2000]).eval()
        array([   1.,   10.,  200., 1000.], dtype=float32)
    """
    return Select()(flag, value_if_true, value_if_false, name=name)
