"""Formulas of element-wise operators in operations of tapes.

Most primitives are an operation each.  Some combinations of primitives are a single operation, and are recognised in formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign
from typing import Any, NamedTuple

from ...core.formulas.derivatives import gradient_of
from ...core.formulas.formula import Primitive, Symbol, Term, operands, states_formula, symbols_in, value_of, where
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import Op, includes
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
"""The operation of each primitive; choosing takes three."""


class Combination(NamedTuple):
    """An operation that computes several primitives.

    Attributes:
        kind: the operation.
        operands: symbols for its operands.
        formula: what it computes from them.
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
    """Whether tapes compute an operator of so many operands or, where it *goes_back*, its gradients; cached for each class."""
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
    """The value that an operator computes from values.

    Args:
        w: makes a value from an operation and operands, values or numbers: ``w(op.ADD, x, y)``.
        of: the operator.
        inputs: values of the operands.

    Raises:
        Refused: a primitive is no operation.
    """
    return _written(of, len(inputs), None).of(w, inputs)


def gradient(w: Any, of: Any, i: int, dy: Any, y: Any, inputs: Sequence[Any]) -> Any:
    """The gradient of operand *i*, from that of the result, the result and the operands; what the operator does not keep is None.

    Raises:
        Refused: a primitive is no operation.
    """
    return _written(of, len(inputs), i).of(w, (dy, y, *inputs))


class Operation(NamedTuple):
    """An operation of a formula.

    Attributes:
        kind: the operation.
        operands: indices of the formula's operands, followed by the earlier operations; or numbers.
    """

    kind: int
    operands: tuple[int | float, ...]


class Written(NamedTuple):
    """A formula in operations.

    Attributes:
        operations: the operations in order.
        result: the place of its value, or a number.
    """

    operations: list[Operation]
    result: int | float

    def of(self, w: Any, values: Sequence[Any]) -> Any:
        """The value of the formula, made by *w*."""
        known = list(values)
        for kind, places in self.operations:
            known.append(w(kind, *[known[x] if isinstance(x, int) else x for x in places]))
        return known[self.result] if isinstance(self.result, int) else self.result


_all_written: dict[Any, Written] = {}


def _written(of: Elementwise, count: int, i: int | None) -> Written:
    """The formula of an operator, or of its gradient *i*, in operations: written once for all operators of a class in the same state."""
    state = {name: value for name, value in vars(of).items() if name not in ("_given", "_derived", "_attribute_names")}
    if any(type(value) not in (int, float, bool) for value in state.values()):
        return _newly_written(of, count, i)
    key = type(of), repr(state), count, i
    if key not in _all_written:
        _all_written[key] = _newly_written(of, count, i)
    return _all_written[key]


def _newly_written(of: Elementwise, count: int, i: int | None) -> Written:
    if i is None:
        symbols = operands(count)
        return _Writer(symbols).written(value_of(of, symbols))
    dy, y, *inputs = symbols = operands(2 + count)
    return _Writer(symbols).written(gradient_of(of, i, dy, y, tuple(inputs)))


def only_operation(of: Op, count: int, i: int | None = None) -> tuple[int, tuple[int, ...]] | None:
    """The one operation of all tapes that an operator of so many operands is, or its gradient *i*, and places of the operands.

    Those of gradients are places among the result's gradient, the result and the operands.  None where it takes more than one.
    """
    if not is_known(of, count, i is not None) or not isinstance(of, Elementwise):
        return None
    try:
        steps, result = _written(of, count, i)
    except Refused:
        return None
    if not steps and isinstance(result, int):
        return op.COPY, (result,)
    places = tuple(x for x in steps[0].operands if isinstance(x, int)) if steps else ()
    is_one = len(steps) == 1 and steps[0].kind < op.PRODUCT and len(places) == len(steps[0].operands)
    return (steps[0].kind, places) if is_one else None


class _Writer:
    """Translates a formula of these symbols to operations, each term once."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self._count = len(symbols)
        self._places: dict[int, int] = {id(symbol): place for place, symbol in enumerate(symbols)}
        self._operations: list[Operation] = []

    def written(self, term: Term) -> Written:
        """All operations, and where the term's value is."""
        result = self._place(term)
        return Written(self._operations, result)

    def _place(self, term: Term) -> int | float:
        if not isinstance(term, Symbol):
            return term
        if id(term) not in self._places:
            self._places[id(term)] = self._made(term)
        return self._places[id(term)]

    def _add(self, kind: int, *places: int | float) -> int:
        self._operations.append(Operation(kind, places))
        return self._count + len(self._operations) - 1

    def _made(self, symbol: Symbol) -> int:
        for kind, symbols, formula in COMBINATIONS:
            found: dict[int, Term] = {}
            if _matches(formula, symbol, found):
                return self._add(kind, *[self._place(found[id(one)]) for one in symbols])
        if symbol.primitive is Primitive.WHERE:
            condition, x, y = map(self._place, symbol.operands)
            return self._add(op.ADD, self._add(op.WHERE, x, condition), self._add(op.WHERE_NOT, y, condition))
        if symbol.primitive not in OPERATIONS:
            raise Refused
        return self._add(OPERATIONS[symbol.primitive], *map(self._place, symbol.operands))


def _matches(formula: Term, term: Term, found: dict[int, Term]) -> bool:
    """Whether a term matches a formula; *found* then has the terms that its symbols stand for."""
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
