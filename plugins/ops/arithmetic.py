"""Arithmetic on elements: sums, products, quotients, powers."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formulas.formula import power
from ...core.graph.arguments import TensorLike
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import ALL
from ...core.operators.samples import Operand, operator, sample
from .tree import tree

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from ...core.types.context import Context


class Plus(Elementwise):
    """Sum of two operands."""

    op_name = "Plus"
    in_place = (0, 1)
    passes_gradient = (0, 1)

    def formula(self, x: Any, y: Any) -> Any:
        return x + y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.add(x, y, out=z)


class Minus(Elementwise):
    """Difference of two operands."""

    op_name = "Minus"
    in_place = (0, 1)
    gradient_in_place = ALL
    passes_gradient = (0,)

    def formula(self, x: Any, y: Any) -> Any:
        return x - y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.subtract(x, y, out=z)

    def gradient(self, i: int, ctx: Context, dx: Any, dz: Any, z: Any, *inputs: Any) -> None:
        ctx.xp.negative(dz, out=dx)


class ElementTimes(Elementwise):
    """Product of two operands."""

    op_name = "ElementTimes"
    in_place = (0, 1)
    gradient_in_place = ALL
    keep_inputs = ALL

    def formula(self, x: Any, y: Any) -> Any:
        return x * y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.multiply(x, y, out=z)

    def gradient(self, i: int, ctx: Context, dx: Any, dz: Any, z: Any, *inputs: Any) -> None:
        ctx.xp.multiply(dz, inputs[1 - i], out=dx)


class ElementDivide(Elementwise):
    """Quotient of two operands, 0 where the divisor is 0."""

    op_name = "ElementDivide"
    in_place = (0, 1)
    gradient_in_place = ALL
    keep_inputs = (1,)
    keep_output = True

    def formula(self, x: Any, y: Any) -> Any:
        return x / y

    def forward(self, ctx: Context, z: Any, x: Any, y: Any) -> None:
        ctx.xp.divide(x, _divisor(ctx, y), out=z)

    def gradient(self, i: int, ctx: Context, dx: Any, dz: Any, z: Any, *inputs: Any) -> None:
        ctx.xp.divide(dz, _divisor(ctx, inputs[1]), out=dx)
        if i == 1:
            ctx.xp.multiply(dx, z, out=dx)
            ctx.xp.negative(dx, out=dx)


class Reciprocal(Elementwise):
    """One over the operand, 0 where that is 0."""

    op_name = "Reciprocal"
    in_place = (0,)
    keep_output = True

    def formula(self, x: Any) -> Any:
        return 1 / x

    def gradient_formula(self, i: int, dy: Any, y: Any, x: Any) -> Any:
        return -(y * y) * dy

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.divide(1, _divisor(ctx, x), out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.multiply(y, y, out=dx)
        ctx.xp.negative(dx, out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


def _divisor(ctx: Context, x: Any) -> Any:
    """A copy of *x* with infinity for 0, so that dividing by it gives 0 there."""
    zero = ctx.scratch("zero", x.shape, bool)
    divisor = ctx.scratch("divisor", x.shape, x.dtype)
    ctx.xp.equal(x, 0, out=zero)
    ctx.xp.copyto(divisor, x)
    ctx.xp.copyto(divisor, np.inf, where=zero)
    return divisor


class Pow(Elementwise):
    """Power of a base, 0 for a base of 0 under a negative exponent."""

    op_name = "Pow"
    keep_inputs = ALL
    keep_output = True

    def formula(self, base: Any, exponent: Any) -> Any:
        return power(base, exponent)

    def forward(self, ctx: Context, z: Any, base: Any, exponent: Any) -> None:
        self._power(ctx, z, base, exponent)

    def gradient(self, i: int, ctx: Context, dx: Any, dz: Any, z: Any, *inputs: Any) -> None:
        base, exponent = inputs
        if i == 0:
            reduced = ctx.scratch("reduced", exponent.shape, exponent.dtype)
            ctx.xp.subtract(exponent, 1, out=reduced)
            self._power(ctx, dx, base, reduced)
            ctx.xp.multiply(dx, exponent, out=dx)
        else:
            flat = ctx.scratch("flat", base.shape, bool)
            logarithm = ctx.scratch("logarithm", base.shape, base.dtype)
            ctx.xp.less_equal(base, 0, out=flat)
            ctx.xp.log(base, out=logarithm)
            ctx.xp.multiply(z, logarithm, out=dx)
            ctx.xp.copyto(dx, 0, where=flat)
        ctx.xp.multiply(dx, dz, out=dx)

    @staticmethod
    def _power(ctx: Context, z: Any, base: Any, exponent: Any) -> None:
        xp = ctx.xp
        zero = ctx.scratch("zero", base.shape, bool)
        negative = ctx.scratch("negative", exponent.shape, bool)
        both = ctx.scratch("both", z.shape, bool)
        xp.power(base, exponent, out=z)
        xp.equal(base, 0, out=zero)
        xp.less(exponent, 0, out=negative)
        xp.logical_and(zero, negative, out=both)
        xp.copyto(z, 0, where=both)


class Negate(Elementwise):
    """The operand with its sign changed."""

    op_name = "Negate"
    in_place = (0,)
    gradient_in_place = ALL

    def formula(self, x: Any) -> Any:
        return -x

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.negative(x, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.negative(dy, out=dx)


class Abs(Elementwise):
    """Absolute value; its gradient is 0 at 0."""

    op_name = "Abs"
    in_place = (0,)
    keep_inputs = ALL

    def formula(self, x: Any) -> Any:
        return builtins.abs(x)

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.absolute(x, out=y)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        ctx.xp.sign(inputs[0], out=dx)
        ctx.xp.multiply(dx, dy, out=dx)


class Sum(Elementwise):
    """Sum of any number of operands."""

    op_name = "Sum"

    def formula(self, *inputs: Any) -> Any:
        return reduce(add, inputs)

    def forward(self, ctx: Context, z: Any, *inputs: Any) -> None:
        ctx.xp.copyto(z, inputs[0])
        for x in inputs[1:]:
            ctx.xp.add(z, x, out=z)

    def gradient(self, i: int, ctx: Context, dx: Any, dz: Any, z: Any, *inputs: Any) -> None:
        ctx.xp.copyto(dx, dz)


class Mean(Sum):
    """Mean of any number of operands."""

    op_name = "Mean"

    def formula(self, *inputs: Any) -> Any:
        return super().formula(*inputs) * (1 / len(inputs))

    def forward(self, ctx: Context, z: Any, *inputs: Any) -> None:
        super().forward(ctx, z, *inputs)
        ctx.xp.divide(z, len(inputs), out=z)

    def gradient(self, i: int, ctx: Context, dx: Any, dz: Any, z: Any, *inputs: Any) -> None:
        ctx.xp.divide(dz, len(inputs), out=dx)


# ---- public operators ----------------------------------------------------------------------------


def _listed(operands: Sequence[Any], op: str) -> list[Any]:
    """Operands given one by one or as one list, each output of a function with several on its own."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise ValueError(f"{op}: expected at least one operand, got none")
    return [output for operand in operands for output in (getattr(operand, "outputs", None) or [operand])]


@operator(
    sample((2, 3), (2, 3), expected=np.add),
    sample((2, 3), Operand((3,), kind="parameter"), expected=np.add),
    sample((4, 1, 3), Operand((2, 1), kind="parameter"), expected=np.add),
    sample((3,), (2, 3), (), expected=lambda x, y, z: x + y + z),
    sample(Operand((4,), sparse=True), (4,), expected=np.add),
)
def plus(left: TensorLike, right: TensorLike, *more: TensorLike, name: str = "") -> Function:
    """Sum of two or more operands, element by element.

    Args:
        left, right, more: operands; shapes broadcast as in NumPy, and operands without dynamic axes, or with the batch
            axis alone, extend over those of the others.
        name: name of the Function; may also come last by position.

    Returns:
        Function of the broadcast shape, over all dynamic axes of the operands.

    Example:
        >>> C.plus([1, 2, 3], [10], [[100], [200]]).eval()
        array([[111., 112., 113.],
               [211., 212., 213.]], dtype=float32)
    """
    return tree(Plus, (left, right, *more), name)


@operator(
    sample((2, 3), (2, 3), expected=np.subtract),
    sample(Operand((2, 1), kind="parameter"), (3,), expected=np.subtract),
)
def minus(left: TensorLike, right: TensorLike, name: str = "") -> Function:
    """Difference of two operands, element by element, broadcast as in :func:`plus`.

    Example:
        >>> C.minus([1, 2, 3], [4, 5, 7]).eval()
        array([-3., -3., -4.], dtype=float32)
    """
    return Minus()(left, right, name=name)


@operator(
    sample((2, 3), (2, 3), expected=np.multiply),
    sample((2, 3), Operand((3,), kind="parameter"), expected=np.multiply),
    sample((), (2, 1), (3,), expected=lambda x, y, z: x * y * z),
    sample(Operand((4,), sparse=True), (4,), expected=np.multiply),
)
def element_times(left: TensorLike, right: TensorLike, *more: TensorLike, name: str = "") -> Function:
    """Product of two or more operands, element by element, broadcast as in :func:`plus`.

    Example:
        >>> C.element_times([5, 10, 15], [2], [1, 2, 1]).eval()
        array([10., 40., 30.], dtype=float32)
    """
    return tree(ElementTimes, (left, right, *more), name)


@operator(
    sample((2, 3), Operand((2, 3), 0.5, 2), expected=np.divide),
    sample((2, 3), Operand((3,), -2, -0.5, kind="parameter"), expected=np.divide),
    sample(Operand((), kind="parameter"), Operand((2, 3), 0.5, 2), expected=np.divide),
)
def element_divide(left: TensorLike, right: TensorLike, name: str = "") -> Function:
    """Quotient of two operands, element by element, broadcast as in :func:`plus`.

    Where the divisor is 0 the quotient and its gradients are 0.

    Example:
        >>> C.element_divide([1, 3, 5], [2, 0, 4]).eval()
        array([0.5 , 0.  , 1.25], dtype=float32)
    """
    return ElementDivide()(left, right, name=name)


@operator(
    sample(Operand((2, 3), 0.5, 2), expected=np.reciprocal),
    sample(Operand((), -2, -0.5), expected=np.reciprocal),
)
def reciprocal(x: TensorLike, name: str = "") -> Function:
    """``1 / x`` of each element; shape and dynamic axes are those of *x*.  The value and the gradient at 0 are 0.

    Example:
        >>> C.reciprocal([2, -4, 0]).eval()
        array([ 0.5 , -0.25,  0.  ], dtype=float32)
    """
    return Reciprocal()(x, name=name)


@operator(
    sample(Operand((2, 3), 0.5, 2), (2, 3), expected=np.power),
    sample(Operand((2, 3), 0.5, 2), Operand((3,), kind="parameter"), expected=np.power),
    sample((2, 3), call=lambda f, x: f(x, 2), expected=lambda x: x**2),
)
def pow(base: TensorLike, exponent: TensorLike, name: str = "") -> Function:
    """Power of *base* to *exponent*, element by element, broadcast as in :func:`plus`.

    ``0 ** 0`` is 1, ``0`` to a negative exponent is 0, and a negative base to a fractional exponent is nan.  The exponent
    gets no gradient where the base is not positive.

    Example:
        >>> C.pow([1, 2, 3], [3, 2, -1]).eval().round(4)
        array([1.    , 4.    , 0.3333], dtype=float32)
    """
    return Pow()(base, exponent, name=name)


@operator(sample((2, 3), expected=np.square), sample(Operand((), kind="parameter"), expected=np.square))
def square(x: TensorLike, name: str = "") -> Function:
    """Square of each element; shape and dynamic axes are those of *x*.

    Example:
        >>> C.square([1, -3]).eval()
        array([1., 9.], dtype=float32)
    """
    return ElementTimes()(x, x, name=name)


@operator(sample((2, 3), expected=np.negative), sample((), expected=np.negative))
def negate(x: TensorLike, name: str = "") -> Function:
    """*x* with its sign changed; shape and dynamic axes are those of *x*.

    Example:
        >>> C.negate([1, -2]).eval()
        array([-1.,  2.], dtype=float32)
    """
    return Negate()(x, name=name)


@operator(
    sample(Operand((2, 3), 0.1, 1), expected=np.abs),
    sample(Operand((3,), -1, -0.1), expected=np.abs),
)
def abs(x: TensorLike, name: str = "") -> Function:
    """Absolute value of each element; shape and dynamic axes are those of *x*.  The gradient at 0 is 0.

    Example:
        >>> C.abs([-1, 2]).eval()
        array([1., 2.], dtype=float32)
    """
    return Abs()(x, name=name)


@operator(
    sample((2, 3), expected=lambda x: x),
    sample((2, 3), (2, 3), expected=np.add),
    sample((2, 1), (3,), Operand((), kind="parameter"), call=lambda f, *xs: f(list(xs)), expected=lambda x, y, z: x + y + z),
)
def sum(*operands: TensorLike, name: str = "") -> Function:
    """Sum of the operands (no reduction; see :func:`reduce_sum` for that), broadcast as in :func:`plus`.

    Args:
        operands: one or more operands, or one list of them; of a function with several outputs each counts.
        name: name of the Function.

    Raises:
        ValueError: there is no operand.

    Example:
        >>> C.sum([[1, 2], [3, 4], [5, 6]]).eval()
        array([ 9., 12.], dtype=float32)
    """
    return Sum()(*_listed(operands, "sum"), name=name)


@operator(
    sample((2, 3), expected=lambda x: x),
    sample((2, 3), (2, 3), expected=lambda x, y: (x + y) / 2),
    sample((2, 1), (3,), Operand((), kind="parameter"), call=lambda f, *xs: f(list(xs)), expected=lambda x, y, z: (x + y + z) / 3),
)
def mean(*operands: TensorLike, name: str = "") -> Function:
    """Mean of the operands (no reduction; see :func:`reduce_mean` for that), broadcast as in :func:`plus`.

    Args:
        operands: one or more operands, or one list of them; of a function with several outputs each counts.
        name: name of the Function.

    Raises:
        ValueError: there is no operand.

    Example:
        >>> C.mean([[1, 2], [3, 4], [5, 9]]).eval()
        array([3., 5.], dtype=float32)
    """
    return Mean()(*_listed(operands, "mean"), name=name)
