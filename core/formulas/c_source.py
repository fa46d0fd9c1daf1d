"""Formulas in C, for backends that compile it, or C++ and CUDA, which have these functions too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf, isnan

from .formula import Primitive as P
from .formula import Symbol, Term
from .source import Language, values_in

EXPRESSIONS: dict[P, str] = {
    P.ADD: "{0} + {1}",
    P.SUBTRACT: "{0} - {1}",
    P.MULTIPLY: "{0} * {1}",
    P.DIVIDE: "{1} != {zero} ? {0} / {1} : {0} * {zero}",
    P.QUOTIENT: "{0} / {1}",
    P.POWER: "{0} == {zero} && {1} < {zero} ? {zero} : pow{f}({0}, {1})",
    P.HYPOT: "hypot{f}({0}, {1})",
    P.MAXIMUM: "{0} >= {1} || {0} != {0} ? {0} : {1}",
    P.MINIMUM: "{0} <= {1} || {0} != {0} ? {0} : {1}",
    P.GREATER: "{0} > {1} ? {one} : {zero}",
    P.GREATER_EQUAL: "{0} >= {1} ? {one} : {zero}",
    P.EQUAL: "{0} == {1} ? {one} : {zero}",
    P.WHERE: "{0} != {zero} ? {1} : {2}",
    P.NEGATE: "-{0}",
    P.ABS: "fabs{f}({0})",
    P.SIGN: "{0} > {zero} ? {one} : {0} < {zero} ? -{one} : {0} * {zero}",
    P.FLOOR: "floor{f}({0})",
    P.EXP: "exp{f}({0})",
    P.EXPM1: "expm1{f}({0})",
    P.LOG: "log{f}({0} < {zero} ? {zero} : {0})",
    P.LOG1P: "log1p{f}({0})",
    P.SQRT: "sqrt{f}({0} < {zero} ? {zero} : {0})",
    P.SIGMOID: "{0} > 80 ? {one} : exp{f}({0}) / (exp{f}({0}) + {one})",
    P.TANH: "tanh{f}({0})",
    P.SIN: "sin{f}({0})",
    P.COS: "cos{f}({0})",
    P.TAN: "tan{f}({0})",
    P.ARCSIN: "asin{f}({0})",
    P.ARCCOS: "acos{f}({0})",
    P.ARCTAN: "atan{f}({0})",
    P.SINH: "sinh{f}({0})",
    P.COSH: "cosh{f}({0})",
    P.ARCSINH: "asinh{f}({0})",
    P.ARCTANH: "atanh{f}({0})",
}
"""For each primitive an expression of names and numbers; *f* ends the names of functions for float."""


def to_c(formula: Term, names: Mapping[Symbol, str], result: str, real: str = "float") -> str:
    """Statements that compute a formula of elements; subexpressions are computed once.

    The source needs ``math.h``; names of intermediate values are t0, t1, ...

    Args:
        formula: the formula.
        names: names of the operands.
        result: the variable that the value is assigned to.
        real: ``'float'`` or ``'double'``.

    Raises:
        ValueError: *real* is something else.
        KeyError: an operand has no name.

    Example:
        >>> from cntk.core.formulas.c_source import to_c
        >>> from cntk.core.formulas.formula import operands
        >>> (x,) = operands(1)
        >>> print(to_c(x / (1 + abs(x)), {x: "x[i]"}, "y[i]"))
        const float t0 = fabsf(x[i]);
        const float t1 = 1.0f + t0;
        y[i] = t1 != 0.0f ? x[i] / t1 : x[i] * 0.0f;
    """
    statements, (value,) = values_in_c((formula,), names, real)
    return "\n".join([*statements, f"{result} = {value};"])


def values_in_c(formulas: Sequence[Term], names: Mapping[Symbol, str], real: str = "float") -> tuple[list[str], list[str]]:
    """As :func:`to_c`, for several formulas that may have parts in common.

    Returns:
        statements that compute what the formulas are made of, and an expression for the value of each formula.

    Raises:
        ValueError: *real* is something else.
        KeyError: an operand has no name.

    Example:
        >>> from cntk.core.formulas.c_source import values_in_c
        >>> from cntk.core.formulas.formula import exp, operands
        >>> (x,) = operands(1)
        >>> y = exp(x)
        >>> values_in_c((y, 1 - y), {x: "x"}, "double")
        (['const double t0 = exp(x);'], ['t0', '1.0 - t0'])
    """
    if real not in ("float", "double"):
        raise ValueError(f"expected 'float' or 'double' for the element type in C, got {real!r}")
    f = "f" if real == "float" else ""

    def expression(primitive: P, parts: Sequence[str]) -> str:
        return EXPRESSIONS[primitive].format(*parts, f=f, zero=_number(0.0, f), one=_number(1.0, f))

    language = Language(expression, lambda value: _number(value, f), lambda name, value: f"const {real} {name} = {value};")
    return values_in(language, formulas, names)


def _number(value: float, f: str) -> str:
    """A number in C; one below 0 is in brackets, since it may come after a sign."""
    if isnan(value):
        return "NAN"
    text = "INFINITY" if isinf(value) else f"{abs(value)!r}{f}"
    return f"(-{text})" if str(value).startswith("-") else text
