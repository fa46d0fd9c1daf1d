"""Formulas of element-wise operators in operations of tapes.

Most primitives are an operation each.  Some combinations of primitives are one operation too, and are found where a formula has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign
from typing import Any, NamedTuple

from ...core.operators.derivatives import gradient_of
from ...core.operators.formula import Primitive, Symbol, Term, operands, remembered, states_formula, symbols_in, value_of, where
from ...core.operators.op import Elementwise, Op, includes
from . import opcodes as op

OPERATIONS = {
    Primitive.ADD: op.ADD,
    Primitive.SUBTRACT: op.SUBTRACT,
    Primitive.MULTIPLY: op.MULTIPLY,
    Primitive.DIVIDE: op.DIVIDE,
    Primitive.QUOTIENT: op.QUOTIENT,
    Primitive.MAXIMUM: op.MAXIMUM,
    Primitive.MINIMUM: op.MINIMUM,
    Primitive.GREATER: op.GREATER,
    Primitive.GREATER_EQUAL: op.AT_LEAST,
    Primitive.EQUAL: op.EQUAL,
    Primitive.NEGATE: op.NEGATE,
    Primitive.ABS: op.ABS,
    Primitive.SIGN: op.SIGN,
    Primitive.FLOOR: op.FLOOR,
    Primitive.EXP: op.EXP,
    Primitive.EXPM1: op.EXPM1,
    Primitive.LOG: op.LOG,
    Primitive.LOG1P: op.LOG1P,
    Primitive.SQRT: op.SQRT,
    Primitive.SIGMOID: op.SIGMOID,
    Primitive.TANH: op.TANH,
}
"""The operations that primitives are; that which chooses is three."""


class Combination(NamedTuple):
    """An operation that is several primitives.

    Attributes:
        kind: the operation.
        operands: symbols for its operands.
        formula: what it makes of them.
    """

    kind: int
    operands: tuple[Symbol, ...]
    formula: Any


def _combination(kind: int, count: int, formula: Callable[..., Term]) -> Combination:
    symbols = operands(count)
    return Combination(kind, symbols, formula(*symbols))


COMBINATIONS = (
    _combination(op.RELU, 1, lambda x: where(x <= 0, 0, x)),
    _combination(op.RELU_GRADIENT, 2, lambda x, y: (y > 0) * x),
    _combination(op.SIGMOID_GRADIENT, 2, lambda x, y: (1 - y) * y * x),
    _combination(op.TANH_GRADIENT, 2, lambda x, y: (1 - y * y) * x),
    _combination(op.SLOPE, 2, lambda x, y: (x < 0) * y + (x >= 0)),
    _combination(op.WHERE, 2, lambda x, y: where(y, x, -0.0)),
    _combination(op.WHERE_NOT, 2, lambda x, y: where(y, -0.0, x)),
)


class Refused(Exception):
    """A chain that no tape can run."""


_known: dict[tuple[type[Op], int, bool], bool] = {}


def is_known(of: Op, count: int, goes_back: bool) -> bool:
    """Whether tapes compute an operator of so many operands or, where it *goes_back*, its gradients; looked up once for a class."""
    key = type(of), count, goes_back
    if key not in _known:
        _known[key] = isinstance(of, Elementwise) and states_formula(type(of)) and _is_operations(of, count, goes_back)
    return _known[key]


def _is_operations(of: Elementwise, count: int, goes_back: bool) -> bool:
    dy, y, *inputs = operands(2 + count)
    terms = [value_of(of, tuple(inputs))]
    if goes_back:
        terms = [gradient_of(of, i, dy, y, tuple(inputs)) for i in range(count) if includes(of.gradient_inputs, i)]
    used = {symbol.primitive for term in terms for symbol in symbols_in(term)}
    return used <= {*OPERATIONS, Primitive.WHERE, None}


def forward(w: Any, of: Any, inputs: Sequence[Any]) -> Any:
    """What an operator makes of values.

    Args:
        w: makes a value from an operation and operands, values or numbers: ``w(op.ADD, x, y)``.
        of: the operator.
        inputs: values of the operands.

    Raises:
        Refused: a primitive is no operation.
    """
    symbols = operands(len(inputs))
    return _Writer(w, symbols, inputs).value(value_of(of, symbols))


def gradient(w: Any, of: Any, i: int, dy: Any, y: Any, inputs: Sequence[Any]) -> Any:
    """The gradient of operand *i*, from that of the result, the result and the operands; what the operator does not keep is None.

    Raises:
        Refused: a primitive is no operation.
    """
    dy_symbol, y_symbol, *others = symbols = operands(2 + len(inputs))
    return _Writer(w, symbols, (dy, y, *inputs)).value(gradient_of(of, i, dy_symbol, y_symbol, tuple(others)))


class Operation(NamedTuple):
    """A single operation that is all of a formula.

    Attributes:
        kind: the operation.
        places: where its operands are among what the formula is given.
    """

    kind: int
    places: tuple[int, ...]


def _noted(kind: int, *places: Any) -> Operation:
    return Operation(kind, places)


def value_operation(of: Op, count: int) -> Operation | None:
    """The operation of all tapes that makes an operator's result of so many operands; None where it takes more than one."""
    return _operation(of, count, None, lambda: forward(_noted, of, range(count)))


def gradient_operation(of: Op, count: int, i: int) -> Operation | None:
    """The operation of all tapes that makes the gradient of operand *i* of the result's gradient, the result and the operands."""
    return _operation(of, count, i, lambda: gradient(_noted, of, i, 0, 1, range(2, 2 + count)))


def _operation(of: Op, count: int, i: int | None, make: Callable[[], Any]) -> Operation | None:
    def found() -> Operation | None:
        made = make()
        made = Operation(op.COPY, (made,)) if isinstance(made, int) else made
        is_one = isinstance(made, Operation) and made.kind < op.PRODUCT and all(isinstance(place, int) for place in made.places)
        return made if is_one else None

    known = is_known(of, count, i is not None)
    return remembered(of, ("operation", count, i), found) if known and isinstance(of, Elementwise) else None


class _Writer:
    """Writes a formula down as operations, those of symbols once."""

    def __init__(self, w: Any, symbols: Sequence[Symbol], values: Sequence[Any]) -> None:
        self._w = w
        self._values = {id(symbol): value for symbol, value in zip(symbols, values, strict=True)}

    def value(self, term: Term) -> Any:
        """The value of a symbol, or the number."""
        if not isinstance(term, Symbol):
            return term
        if id(term) not in self._values:
            self._values[id(term)] = self._made(term)
        return self._values[id(term)]

    def _made(self, symbol: Symbol) -> Any:
        for kind, places, formula in COMBINATIONS:
            found: dict[int, Term] = {}
            if _matches(formula, symbol, found):
                return self._w(kind, *[self.value(found[id(place)]) for place in places])
        if symbol.primitive is Primitive.WHERE:
            condition, x, y = map(self.value, symbol.operands)
            return self._w(op.ADD, self._w(op.WHERE, x, condition), self._w(op.WHERE_NOT, y, condition))
        if symbol.primitive not in OPERATIONS:
            raise Refused
        return self._w(OPERATIONS[symbol.primitive], *map(self.value, symbol.operands))


def _matches(formula: Term, term: Term, found: dict[int, Term]) -> bool:
    """Whether a term has the form of a formula; *found* then has what stands for its symbols."""
    if not isinstance(formula, Symbol):
        return not isinstance(term, Symbol) and formula == term and copysign(1, formula) == copysign(1, term)
    if formula.primitive is None:
        return _is_same(found.setdefault(id(formula), term), term)
    return (
        isinstance(term, Symbol)
        and formula.primitive is term.primitive
        and all(_matches(part, of, found) for part, of in zip(formula.operands, term.operands, strict=True))
    )


def _is_same(one: Term, other: Term) -> bool:
    """Whether two terms are the same operand or number, or made in the same way."""
    if one is other:
        return True
    if not (isinstance(one, Symbol) and isinstance(other, Symbol)):
        return not isinstance(one, Symbol) and not isinstance(other, Symbol) and one == other
    is_made = one.primitive is other.primitive is not None
    return is_made and all(_is_same(a, b) for a, b in zip(one.operands, other.operands, strict=True))
