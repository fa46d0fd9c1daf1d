"""Formulas of element-wise operators: written once, and used by everything that computes them.

A formula is a Python function of symbols.  Called with them it gives a tree of primitives::

    >>> from cntk.core.formulas.formula import operands, where
    >>> (x,) = operands(1)
    >>> where(x > 0, x, 0.1 * x)
    where(greater(x0, 0.0), x0, multiply(0.1, x0))

From such trees are derived gradients (:mod:`~cntk.core.formulas.derivatives`), steps on arrays
(:mod:`~cntk.core.formulas.evaluation`), source in C (:mod:`~cntk.core.formulas.c_source`) and what backends compile.

Functions have NumPy's names and take symbols and numbers.  They mean the same as NumPy's, except as CNTK defines: ``x / y`` and ``power``
are 0 where they divide by 0, ``log`` and ``sqrt`` treat negative numbers as 0.  Comparisons give 1 and 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from inspect import Parameter, getattr_static, signature
from typing import TYPE_CHECKING, Any, TypeVar

from ..extension.identity import what_computes

if TYPE_CHECKING:
    from ..operators.elementwise import Elementwise
    from ..operators.op import Op

T = TypeVar("T")


class Primitive(Enum):
    """The primitives of formulas."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    QUOTIENT = "quotient"
    POWER = "power"
    HYPOT = "hypot"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    GREATER = "greater"
    GREATER_EQUAL = "greater_equal"
    EQUAL = "equal"
    WHERE = "where"
    NEGATE = "negate"
    ABS = "abs"
    SIGN = "sign"
    FLOOR = "floor"
    EXP = "exp"
    EXPM1 = "expm1"
    LOG = "log"
    LOG1P = "log1p"
    SQRT = "sqrt"
    SIGMOID = "sigmoid"
    TANH = "tanh"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ARCSIN = "arcsin"
    ARCCOS = "arccos"
    ARCTAN = "arctan"
    SINH = "sinh"
    COSH = "cosh"
    ARCSINH = "arcsinh"
    ARCTANH = "arctanh"


class Symbol:
    """An operand of a formula, or a primitive applied to symbols and numbers.

    Attributes:
        primitive: the primitive; None for an operand.
        operands: the primitive's operands.
        name: name of an operand.
    """

    __slots__ = ("name", "operands", "primitive")
    __array_ufunc__ = None

    def __init__(self, primitive: Primitive | None, operands: tuple[Symbol | float, ...] = (), name: str = "") -> None:
        self.primitive, self.operands, self.name = primitive, operands, name

    def __repr__(self) -> str:
        return self.name if self.primitive is None else f"{self.primitive.value}({', '.join(map(repr, self.operands))})"

    def __bool__(self) -> bool:
        raise TypeError("a formula cannot ask whether a symbol is true, for it stands for any number; choose with where(condition, a, b)")

    def __add__(self, other: Any) -> Symbol:
        return _made(Primitive.ADD, self, other)

    def __radd__(self, other: Any) -> Symbol:
        return _made(Primitive.ADD, other, self)

    def __sub__(self, other: Any) -> Symbol:
        return _made(Primitive.SUBTRACT, self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return _made(Primitive.SUBTRACT, other, self)

    def __mul__(self, other: Any) -> Symbol:
        return _made(Primitive.MULTIPLY, self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return _made(Primitive.MULTIPLY, other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return _made(Primitive.DIVIDE, self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return _made(Primitive.DIVIDE, other, self)

    def __pow__(self, other: Any) -> Symbol:
        return self * self if not isinstance(other, Symbol) and other == 2 else power(self, other)

    def __rpow__(self, other: Any) -> Symbol:
        return power(other, self)

    def __neg__(self) -> Symbol:
        return _made(Primitive.NEGATE, self)

    def __abs__(self) -> Symbol:
        return _made(Primitive.ABS, self)

    def __gt__(self, other: Any) -> Symbol:
        return _made(Primitive.GREATER, self, other)

    def __lt__(self, other: Any) -> Symbol:
        return _made(Primitive.GREATER, other, self)

    def __ge__(self, other: Any) -> Symbol:
        return _made(Primitive.GREATER_EQUAL, self, other)

    def __le__(self, other: Any) -> Symbol:
        return _made(Primitive.GREATER_EQUAL, other, self)

    def __eq__(self, other: Any) -> Symbol:  # type: ignore[override]
        return _made(Primitive.EQUAL, self, other)

    def __ne__(self, other: Any) -> Symbol:  # type: ignore[override]
        return 1 - (self == other)

    __hash__ = object.__hash__


Term = Symbol | float
"""The result of a formula, and the operands of primitives."""


def _made(primitive: Primitive, *operands: Any) -> Symbol:
    return Symbol(primitive, tuple(x if isinstance(x, Symbol) else float(x) for x in operands))


def _function(primitive: Primitive) -> Callable[..., Symbol]:
    def made(*operands: Any) -> Symbol:
        return _made(primitive, *operands)

    made.__name__ = made.__qualname__ = primitive.value
    return made


quotient = _function(Primitive.QUOTIENT)
"""x / y, which divides by 0 as computers do: to infinity or NaN."""
power = _function(Primitive.POWER)
hypot = _function(Primitive.HYPOT)
maximum = _function(Primitive.MAXIMUM)
minimum = _function(Primitive.MINIMUM)
where = _function(Primitive.WHERE)
"""where(condition, x, y): x where the condition is not 0, y elsewhere."""
sign = _function(Primitive.SIGN)
floor = _function(Primitive.FLOOR)
exp = _function(Primitive.EXP)
expm1 = _function(Primitive.EXPM1)
log = _function(Primitive.LOG)
log1p = _function(Primitive.LOG1P)
sqrt = _function(Primitive.SQRT)
sigmoid = _function(Primitive.SIGMOID)
tanh = _function(Primitive.TANH)
sin = _function(Primitive.SIN)
cos = _function(Primitive.COS)
tan = _function(Primitive.TAN)
arcsin = _function(Primitive.ARCSIN)
arccos = _function(Primitive.ARCCOS)
arctan = _function(Primitive.ARCTAN)
sinh = _function(Primitive.SINH)
cosh = _function(Primitive.COSH)
arcsinh = _function(Primitive.ARCSINH)
arctanh = _function(Primitive.ARCTANH)


def operands(count: int) -> tuple[Symbol, ...]:
    """Symbols for operands: x0, x1, ..."""
    return tuple(Symbol(None, name=f"x{i}") for i in range(count))


def arity(function: Callable[..., Any]) -> int | None:
    """How many operands a formula takes; None for any number."""
    parameters = [one for name, one in signature(function).parameters.items() if name != "self"]
    return None if any(one.kind is Parameter.VAR_POSITIONAL for one in parameters) else len(parameters)


def symbols_in(term: Term) -> Iterator[Symbol]:
    """The symbols that a term is made of, each once and after its own operands."""
    found: set[int] = set()
    waiting = [(term, False)]
    while waiting:
        x, has_operands = waiting.pop()
        if not isinstance(x, Symbol) or id(x) in found:
            continue
        if has_operands:
            found.add(id(x))
            yield x
        else:
            waiting.append((x, True))
            waiting.extend((operand, False) for operand in reversed(x.operands))


# ---- formulas of operators -----------------------------------------------------------------------


def states_formula(cls: type[Op]) -> bool:
    """Whether what a class computes is its formula: neither it nor a base in between overrides a method."""
    return any(vars(base).get("formula") is not None for base in what_computes(cls))


def value_of(op: Elementwise, inputs: tuple[Symbol, ...]) -> Term:
    """The formula of an operator, applied to its operands.

    Raises:
        NotImplementedError: it has no formula.
        TypeError: the result of the formula is neither a symbol nor a number.
    """
    formula = function_of(op, "formula")
    if formula is None:
        raise NotImplementedError(f"{type(op).__name__} has no formula; write one, or the methods forward and gradient")
    return as_term(op, formula(*inputs))


def function_of(op: Elementwise, name: str) -> Callable[..., Any] | None:
    """A formula of an operator, which may take the operator as *self* or not; None where there is none."""
    function = getattr_static(type(op), name, None)
    if function is None or isinstance(function, staticmethod) or _takes_self(function):
        found: Callable[..., Any] | None = getattr(op, name, None)
        return found
    plain: Callable[..., Any] = function
    return plain


def remembered(op: Elementwise, key: Any, make: Callable[[], T]) -> T:
    """The result of *make*, cached for the attributes of an operator."""
    attributes = [getattr(op, name) for name in op._attribute_names]
    owner, known = op.__dict__.get("_derived", (None, {}))
    if owner != id(op):  # a copy has the cache of the original
        known = {}
        op.__dict__["_derived"] = id(op), known
    of, found = known.get(key, (None, None))
    if of is None or any(one is not other for one, other in zip(of, attributes, strict=True)):
        found = make()
        known[key] = attributes, found
    return found


@cache
def _takes_self(function: Callable[..., Any]) -> bool:
    return next(iter(signature(function).parameters), None) == "self"


def as_term(op: Elementwise, given: Any) -> Term:
    """The result of a formula of an operator, as a term.

    Raises:
        TypeError: it is neither a symbol nor a number.
    """
    if isinstance(given, Symbol):
        return given
    try:
        return float(given)
    except (TypeError, ValueError):
        raise TypeError(
            f"a formula of {type(op).__name__} gives {given!r:.80}; expected what arithmetic and the functions of cntk.extend.formula"
            " make of its operands, or a number"
        ) from None
