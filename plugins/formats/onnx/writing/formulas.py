"""Writes element-wise operators by their formulas, whatever these are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.common.dtypes import is_half
from .....core.formulas.formula import Primitive as P
from .....core.formulas.formula import Symbol, operands, symbols_in, value_of
from .....core.operators.elementwise import Elementwise
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter

NODES: dict[P, str] = {
    P.ADD: "Add",
    P.SUBTRACT: "Sub",
    P.MULTIPLY: "Mul",
    P.QUOTIENT: "Div",
    P.MAXIMUM: "Max",
    P.MINIMUM: "Min",
    P.NEGATE: "Neg",
    P.ABS: "Abs",
    P.SIGN: "Sign",
    P.FLOOR: "Floor",
    P.EXP: "Exp",
    P.SIGMOID: "Sigmoid",
    P.TANH: "Tanh",
    P.SIN: "Sin",
    P.COS: "Cos",
    P.TAN: "Tan",
    P.ARCSIN: "Asin",
    P.ARCCOS: "Acos",
    P.ARCTAN: "Atan",
    P.SINH: "Sinh",
    P.COSH: "Cosh",
    P.ARCSINH: "Asinh",
    P.ARCTANH: "Atanh",
}
"""Primitives that are one operator of ONNX."""
_SINGLE = (P.TAN, P.ARCSIN, P.ARCCOS, P.ARCTAN, P.SINH, P.COSH, P.ARCSINH, P.ARCTANH)
"""Those of them that ONNX Runtime has for float32 alone."""
_COMPARISONS = {P.GREATER: "Greater", P.GREATER_EQUAL: "GreaterOrEqual", P.EQUAL: "Equal"}


def write_formula(op: Elementwise, to: ModelWriter, *inputs: Value) -> str:
    """Write an element-wise operator as the primitives of its formula."""
    symbols = operands(len(inputs))
    terms = Terms(to, dict(zip(map(id, symbols), to.lined_up(*inputs), strict=True)))
    found = value_of(op, symbols)
    made = terms.name(found)
    if isinstance(found, Symbol) and found.primitive is not None and symbols_reach(found, symbols):
        return made
    return str(to.node("Expand", made, to.shape(to.sizes(to.result.called(to.lined_up(*inputs)[0])))))


def symbols_reach(found: Symbol, symbols: tuple[Symbol, ...]) -> bool:
    """Whether a formula reads all operands, so that its result has the shape that they broadcast to."""
    read = {id(symbol) for symbol in symbols_in(found)}
    return all(id(symbol) in read for symbol in symbols)


class Terms:
    """Terms of a formula, and the names of their values.

    Args:
        to: the model.
        names: the names of the operands, by the identities of their symbols.
    """

    def __init__(self, to: ModelWriter, names: dict[int, str]) -> None:
        self.to, self.names, self.dtype = to, names, to.result.dtype

    def name(self, term: Any) -> str:
        """The name of a term's value, written now with all that it is made of."""
        if not isinstance(term, Symbol):
            return self.to.constant(term, self.dtype)
        for symbol in symbols_in(term):
            if id(symbol) not in self.names:
                self.names[id(symbol)] = self._written(symbol)
        return self.names[id(term)]

    def _written(self, symbol: Symbol) -> str:
        to, primitive = self.to, symbol.primitive
        assert primitive is not None
        names = [self.names[id(x)] if isinstance(x, Symbol) else to.constant(x, self.dtype) for x in symbol.operands]
        if primitive in _SINGLE:
            return to.single(NODES[primitive], self.dtype, *names)
        if primitive in NODES:
            return str(to.node(NODES[primitive], *names))
        if primitive in _COMPARISONS:
            return to.cast(to.node(_COMPARISONS[primitive], *names), self.dtype)
        return str(_SPECIAL[primitive](self, *names))

    def divide(self, x: str, y: str) -> str:
        """x / y, and 0 where y is 0."""
        to, zero = self.to, self.to.constant(0, self.dtype)
        is_zero = to.node("Equal", y, zero)
        quotient = to.node("Div", x, to.node("Where", is_zero, to.constant(1, self.dtype), y))
        return str(to.node("Where", is_zero, zero, quotient))

    def power(self, x: str, y: str) -> str:
        """x to the power of y, and 0 where that would divide by 0."""
        to, zero = self.to, self.to.constant(0, self.dtype)
        divides = to.node("And", to.node("Equal", x, zero), to.node("Less", y, zero))
        return str(to.node("Where", divides, zero, to.node("Pow", x, y)))

    def where(self, condition: str, x: str, y: str) -> str:
        """x where the condition is not 0, else y."""
        to = self.to
        is_zero = to.node("Equal", condition, to.constant(0, self.dtype))
        return str(to.node("Where", is_zero, y, x))

    def log(self, x: str) -> str:
        """The logarithm, with negative numbers as 0."""
        return str(self.to.node("Log", self.to.node("Max", x, self.to.constant(0, self.dtype))))

    def sqrt(self, x: str) -> str:
        """The square root, with negative numbers as 0."""
        return str(self.to.node("Sqrt", self.to.node("Max", x, self.to.constant(0, self.dtype))))

    def log1p(self, x: str) -> str:
        """log(1 + x), as accurate near 0 as ``log(u) * x / (u - 1)`` with ``u = 1 + x`` is; x where u is 1."""
        to, one = self.to, self.to.constant(1, self.dtype)
        u = to.node("Add", x, one)
        is_one, infinite = to.node("Equal", u, one), to.node("IsInf", self._single(u))
        below = to.node("Where", to.node("Or", is_one, infinite), one, to.node("Sub", u, one))
        made = to.node("Mul", to.node("Log", u), to.node("Div", x, below))
        return str(to.node("Where", is_one, x, to.node("Where", infinite, u, made)))

    def expm1(self, x: str) -> str:
        """exp(x) - 1, as accurate near 0 as ``tanh(x / 2) * (exp(x) + 1)`` is; infinite where exp is."""
        to, one = self.to, self.to.constant(1, self.dtype)
        whole = to.node("Exp", x)
        half = to.node("Tanh", to.node("Mul", x, to.constant(0.5, self.dtype)))
        return str(to.node("Mul", half, to.node("Add", whole, one)))

    def hypot(self, x: str, y: str) -> str:
        """The square root of the sum of squares."""
        to = self.to
        larger = to.node("Max", to.node("Abs", x), to.node("Abs", y))
        smaller = to.node("Min", to.node("Abs", x), to.node("Abs", y))
        ratio = self.divide(smaller, larger)
        squared = to.node("Add", to.node("Mul", ratio, ratio), to.constant(1, self.dtype))
        return str(to.node("Mul", larger, to.node("Sqrt", squared)))

    def _single(self, x: str) -> str:
        """As float32, for operators that take no float16."""
        return self.to.cast(x, np.float32) if is_half(self.dtype) else x


_SPECIAL: dict[P, Any] = {
    P.DIVIDE: Terms.divide,
    P.POWER: Terms.power,
    P.WHERE: Terms.where,
    P.LOG: Terms.log,
    P.SQRT: Terms.sqrt,
    P.LOG1P: Terms.log1p,
    P.EXPM1: Terms.expm1,
    P.HYPOT: Terms.hypot,
}
