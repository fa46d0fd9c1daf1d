"""Circular and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.formulas import formula as f
from ...core.graph.arguments import TensorLike
from ...core.operators.elementwise import Elementwise
from ...core.operators.samples import Operand, operator, sample

if TYPE_CHECKING:
    from ...core.graph.function import Function


class Sin(Elementwise):
    """Sine."""

    op_name = "Sin"

    def formula(self, x: Any) -> Any:
        return f.sin(x)


class Cos(Elementwise):
    """Cosine."""

    op_name = "Cos"

    def formula(self, x: Any) -> Any:
        return f.cos(x)


class Tan(Elementwise):
    """Tangent; its derivative is 1 + tan²."""

    op_name = "Tan"

    def formula(self, x: Any) -> Any:
        return f.tan(x)


class Asin(Elementwise):
    """Inverse sine; its derivative is 1 / √(1 - x²)."""

    op_name = "Asin"

    def formula(self, x: Any) -> Any:
        return f.arcsin(x)


class Acos(Elementwise):
    """Inverse cosine; its derivative is that of the inverse sine, negated."""

    op_name = "Acos"

    def formula(self, x: Any) -> Any:
        return f.arccos(x)


class Atan(Elementwise):
    """Inverse tangent; its derivative is 1 / (1 + x²)."""

    op_name = "Atan"

    def formula(self, x: Any) -> Any:
        return f.arctan(x)


class Sinh(Elementwise):
    """Hyperbolic sine."""

    op_name = "Sinh"

    def formula(self, x: Any) -> Any:
        return f.sinh(x)


class Cosh(Elementwise):
    """Hyperbolic cosine."""

    op_name = "Cosh"

    def formula(self, x: Any) -> Any:
        return f.cosh(x)


class Asinh(Elementwise):
    """Inverse hyperbolic sine; its derivative is 1 / √(1 + x²)."""

    op_name = "Asinh"

    def formula(self, x: Any) -> Any:
        return f.arcsinh(x)


class Atanh(Elementwise):
    """Inverse hyperbolic tangent; its derivative is 1 / (1 - x²)."""

    op_name = "Atanh"

    def formula(self, x: Any) -> Any:
        return f.arctanh(x)


# ---- public operators ----------------------------------------------------------------------------


@operator(sample((2, 3), expected=np.sin), sample((), expected=np.sin))
def sin(x: TensorLike, name: str = "") -> Function:
    """Sine of each element, in radians; shape and dynamic axes are those of *x*.

    Example:
        >>> C.sin([0, 1]).eval().round(4)
        array([0.    , 0.8415], dtype=float32)
    """
    return Sin()(x, name=name)


@operator(sample((2, 3), expected=np.cos), sample((), expected=np.cos))
def cos(x: TensorLike, name: str = "") -> Function:
    """Cosine of each element, in radians; shape and dynamic axes are those of *x*.

    Example:
        >>> C.cos([0, 1]).eval().round(4)
        array([1.    , 0.5403], dtype=float32)
    """
    return Cos()(x, name=name)


@operator(sample((2, 3), expected=np.tan), sample((), expected=np.tan))
def tan(x: TensorLike, name: str = "") -> Function:
    """Tangent of each element, in radians; shape and dynamic axes are those of *x*.

    Example:
        >>> C.tan([0, 1]).eval().round(4)
        array([0.    , 1.5574], dtype=float32)
    """
    return Tan()(x, name=name)


@operator(sample(Operand((2, 3), -0.9, 0.9), expected=np.arcsin), sample(Operand((), -0.9, 0.9), expected=np.arcsin))
def asin(x: TensorLike, name: str = "") -> Function:
    """Inverse sine of each element, in radians; shape and dynamic axes are those of *x*.

    The value is nan outside [-1, 1]; the gradient is inf at the ends.

    Example:
        >>> C.asin([0, 1]).eval().round(4)
        array([0.    , 1.5708], dtype=float32)
    """
    return Asin()(x, name=name)


@operator(sample(Operand((2, 3), -0.9, 0.9), expected=np.arccos), sample(Operand((), -0.9, 0.9), expected=np.arccos))
def acos(x: TensorLike, name: str = "") -> Function:
    """Inverse cosine of each element, in radians; shape and dynamic axes are those of *x*.

    The value is nan outside [-1, 1]; the gradient is -inf at the ends.

    Example:
        >>> C.acos([0, 1]).eval().round(4)
        array([1.5708, 0.    ], dtype=float32)
    """
    return Acos()(x, name=name)


@operator(sample((2, 3), expected=np.arctan), sample((), expected=np.arctan))
def atan(x: TensorLike, name: str = "") -> Function:
    """Inverse tangent of each element, in radians; shape and dynamic axes are those of *x*.

    Example:
        >>> C.atan([0, 1]).eval().round(4)
        array([0.    , 0.7854], dtype=float32)
    """
    return Atan()(x, name=name)


@operator(sample((2, 3), expected=np.sinh), sample((), expected=np.sinh))
def sinh(x: TensorLike, name: str = "") -> Function:
    """Hyperbolic sine of each element; shape and dynamic axes are those of *x*.

    Example:
        >>> C.sinh([0, 1]).eval().round(4)
        array([0.    , 1.1752], dtype=float32)
    """
    return Sinh()(x, name=name)


@operator(sample((2, 3), expected=np.cosh), sample((), expected=np.cosh))
def cosh(x: TensorLike, name: str = "") -> Function:
    """Hyperbolic cosine of each element; shape and dynamic axes are those of *x*.

    Example:
        >>> C.cosh([0, 1]).eval().round(4)
        array([1.    , 1.5431], dtype=float32)
    """
    return Cosh()(x, name=name)


@operator(sample((2, 3), expected=np.arcsinh), sample((), expected=np.arcsinh))
def asinh(x: TensorLike, name: str = "") -> Function:
    """Inverse hyperbolic sine of each element; shape and dynamic axes are those of *x*.

    Example:
        >>> C.asinh([0, 1]).eval().round(4)
        array([0.    , 0.8814], dtype=float32)
    """
    return Asinh()(x, name=name)


@operator(sample(Operand((2, 3), -0.9, 0.9), expected=np.arctanh), sample(Operand((), -0.9, 0.9), expected=np.arctanh))
def atanh(x: TensorLike, name: str = "") -> Function:
    """Inverse hyperbolic tangent of each element; shape and dynamic axes are those of *x*.

    The value is nan outside [-1, 1] and ±inf at the ends, where the gradient is inf.

    Example:
        >>> C.atanh([0, 0.5]).eval().round(4)
        array([0.    , 0.5493], dtype=float32)
    """
    return Atanh()(x, name=name)
