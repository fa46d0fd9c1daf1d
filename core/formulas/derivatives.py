"""Gradients of formulas, as formulas.

A rule gives the gradient of a primitive's operand i, from i, the gradient of the primitive's result, the result and the operands; None
if no gradient flows.  Where a result's derivative is cheaper or more exact than the operands', the rule uses the result.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

from .formula import Primitive as P
from .formula import (
    Symbol,
    Term,
    arity,
    as_term,
    cos,
    cosh,
    exp,
    function_of,
    hypot,
    log,
    maximum,
    operands,
    power,
    quotient,
    remembered,
    sign,
    sin,
    sinh,
    sqrt,
    symbols_in,
    value_of,
    where,
)

if TYPE_CHECKING:
    from ..operators.elementwise import Elementwise

Rule = Callable[..., Any]


def _of_quotient(i: int, dz: Any, z: Any, x: Any, y: Any) -> Any:
    dx = dz / y
    return -(dx * z) if i else dx


def _of_exact_quotient(i: int, dz: Any, z: Any, x: Any, y: Any) -> Any:
    dx = quotient(dz, y)
    return -(dx * z) if i else dx


def _of_power(i: int, dz: Any, z: Any, x: Any, y: Any) -> Any:
    return where(x <= 0, 0, z * log(x)) * dz if i else power(x, y - 1) * y * dz


def _of_where(i: int, dz: Any, z: Any, condition: Any, x: Any, y: Any) -> Any:
    return (None, dz * (condition != 0), dz * (condition == 0))[i]


def _of_arcsin(x: Any) -> Any:
    """√(1 - x²), and NaN where there is no inverse sine."""
    return where(abs(x) <= 1, sqrt(1 - x * x), nan)


def _none(*given: Any) -> None:
    return None


RULES: dict[P, Rule] = {
    P.ADD: lambda i, dz, z, x, y: dz,
    P.SUBTRACT: lambda i, dz, z, x, y: -dz if i else dz,
    P.MULTIPLY: lambda i, dz, z, x, y: dz * (x if i else y),
    P.DIVIDE: _of_quotient,
    P.QUOTIENT: _of_exact_quotient,
    P.POWER: _of_power,
    P.HYPOT: lambda i, dz, z, x, y: dz * ((y if i else x) / z),
    P.MAXIMUM: lambda i, dz, z, x, y: dz * (y >= x if i else x > y),
    P.MINIMUM: lambda i, dz, z, x, y: dz * (x >= y if i else y > x),
    P.GREATER: _none,
    P.GREATER_EQUAL: _none,
    P.EQUAL: _none,
    P.WHERE: _of_where,
    P.NEGATE: lambda i, dy, y, x: -dy,
    P.ABS: lambda i, dy, y, x: dy * sign(x),
    P.SIGN: _none,
    P.FLOOR: _none,
    P.EXP: lambda i, dy, y, x: dy * y,
    P.EXPM1: lambda i, dy, y, x: dy * exp(x),
    P.LOG: lambda i, dy, y, x: dy / maximum(x, 0),
    P.LOG1P: lambda i, dy, y, x: dy / (x + 1),
    P.SQRT: lambda i, dy, y, x: where(dy, quotient(dy, y * 2), -0.0),
    P.SIGMOID: lambda i, dy, y, x: (1 - y) * y * dy,
    P.TANH: lambda i, dy, y, x: (1 - y * y) * dy,
    P.SIN: lambda i, dy, y, x: cos(x) * dy,
    P.COS: lambda i, dy, y, x: -sin(x) * dy,
    P.TAN: lambda i, dy, y, x: (y * y + 1) * dy,
    P.ARCSIN: lambda i, dy, y, x: quotient(dy, _of_arcsin(x)),
    P.ARCCOS: lambda i, dy, y, x: -quotient(dy, _of_arcsin(x)),
    P.ARCTAN: lambda i, dy, y, x: dy / (x * x + 1),
    P.SINH: lambda i, dy, y, x: cosh(x) * dy,
    P.COSH: lambda i, dy, y, x: sinh(x) * dy,
    P.ARCSINH: lambda i, dy, y, x: dy / hypot(x, 1),
    P.ARCTANH: lambda i, dy, y, x: quotient(dy, 1 - x * x),
}


def gradient_of(op: Elementwise, i: int, dy: Symbol, y: Symbol, inputs: tuple[Symbol, ...]) -> Term:
    """The gradient of an operand: the one that the operator states, or the derivative of its formula.

    Args:
        op: the operator.
        i: which operand.
        dy, y: symbols for the result's gradient and the result.
        inputs: symbols for the operands.

    Raises:
        NotImplementedError: it has no formula.
        TypeError: the result of a formula is neither a symbol nor a number.
    """
    own = function_of(op, "gradient_formula")
    if own is not None:
        return as_term(op, own(i, dy, y, *inputs))
    return differentiated(value_of(op, inputs), inputs[i], dy, y)


def differentiated(result: Term, x: Symbol, dy: Symbol, y: Symbol) -> Term:
    """The gradient of *x* where *dy* is that of *result*, which is available as *y*.

    >>> from cntk.core.formulas.derivatives import differentiated
    >>> from cntk.core.formulas.formula import operands, tanh
    >>> x, dy, y = operands(3)
    >>> differentiated(tanh(2 * x), x, dy, y)
    multiply(multiply(subtract(1.0, multiply(x2, x2)), x1), 2.0)
    """
    depends = {id(x)}
    order = [x]
    for one in symbols_in(result):
        if any(id(operand) in depends for operand in one.operands):
            depends.add(id(one))
            order.append(one)
    gradients: dict[int, Any] = {id(result): dy} if id(result) in depends else {}
    for one in reversed(order[1:]):
        if one.primitive is None or id(one) not in gradients:
            continue
        value = y if one is result else one
        for i, operand in enumerate(one.operands):
            term = RULES[one.primitive](i, gradients[id(one)], value, *one.operands) if id(operand) in depends else None
            if term is not None:
                gradients[id(operand)] = gradients[id(operand)] + term if id(operand) in gradients else term
    found: Term = gradients.get(id(x), 0.0)
    return found


class Reads(NamedTuple):
    """The values that the gradients of an operator read.

    Attributes:
        inputs: the operands.
        output: whether they read the result.
    """

    inputs: tuple[int, ...] | str
    output: bool


def reads(op: Elementwise) -> Reads:
    """The values that an operator's gradients read, by its formulas; all if it takes any number of operands."""
    return remembered(op, "reads", lambda: _reads(op))


def _reads(op: Elementwise) -> Reads:
    formula = function_of(op, "formula")
    count = None if formula is None else arity(formula)
    if count is None:
        return Reads("all", True)
    dy, y, *inputs = operands(2 + count)
    wanted = [i for i in range(count) if op.gradient_inputs == "all" or i in op.gradient_inputs]
    gradients = [gradient_of(op, i, dy, y, tuple(inputs)) for i in wanted if i not in op.passes_gradient]
    used = {id(symbol) for gradient in gradients for symbol in symbols_in(gradient)}
    return Reads(tuple(i for i, x in enumerate(inputs) if id(x) in used), id(y) in used)
