"""Formulas on arrays, in steps over an array namespace: the methods of operators that state only a formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .derivatives import gradient_of
from .formula import Primitive, Symbol, Term, operands, remembered, symbols_in, value_of

if TYPE_CHECKING:
    from ..operators.elementwise import Elementwise
    from ..types.context import Context

Function = Callable[..., None]

SATURATED = {np.dtype(np.float16): 11}
"""From here on the logistic function is 1, and the exponential not yet infinite; elsewhere from 80 on."""


def _function(name: str) -> Function:
    """The function of this name of the array namespace."""

    def compute(ctx: Context, out: Any, *inputs: Any) -> None:
        getattr(ctx.xp, name)(*inputs, out=out)

    return compute


def _of_positive(name: str) -> Function:
    """The function of this name, of 0 for what is negative."""

    def compute(ctx: Context, out: Any, x: Any) -> None:
        ctx.xp.maximum(x, 0, out=out)
        getattr(ctx.xp, name)(out, out=out)

    return compute


def _divide(ctx: Context, out: Any, x: Any, y: Any) -> None:
    is_zero = ctx.scratch("is_zero", out.shape, bool)
    divisor = ctx.scratch("divisor", out.shape, out.dtype)
    ctx.xp.equal(y, 0, out=is_zero)
    ctx.xp.copyto(divisor, y)
    ctx.xp.copyto(divisor, np.inf, where=is_zero)
    ctx.xp.divide(x, divisor, out=out)


def _power(ctx: Context, out: Any, base: Any, exponent: Any) -> None:
    is_zero = ctx.scratch("is_zero", out.shape, bool)
    divides = ctx.scratch("divides", out.shape, bool)
    ctx.xp.equal(base, 0, out=is_zero)
    ctx.xp.less(exponent, 0, out=divides)
    ctx.xp.logical_and(is_zero, divides, out=divides)
    ctx.xp.power(base, exponent, out=out)
    ctx.xp.copyto(out, 0, where=divides)


def _where(ctx: Context, out: Any, condition: Any, x: Any, y: Any) -> None:
    chosen = ctx.scratch("chosen", out.shape, bool)
    ctx.xp.not_equal(condition, 0, out=chosen)
    ctx.xp.copyto(out, x, where=chosen)
    ctx.xp.logical_not(chosen, out=chosen)
    ctx.xp.copyto(out, y, where=chosen)


def _sigmoid(ctx: Context, out: Any, x: Any) -> None:
    below = ctx.scratch("below", out.shape, out.dtype)
    ctx.xp.minimum(x, SATURATED.get(out.dtype, 80), out=out)
    ctx.xp.exp(out, out=out)
    ctx.xp.add(out, 1, out=below)
    ctx.xp.divide(out, below, out=out)


FUNCTIONS: dict[Primitive, Function] = {
    **{primitive: _function(primitive.value) for primitive in Primitive},
    Primitive.DIVIDE: _divide,
    Primitive.QUOTIENT: _function("divide"),
    Primitive.POWER: _power,
    Primitive.WHERE: _where,
    Primitive.NEGATE: _function("negative"),
    Primitive.ABS: _function("absolute"),
    Primitive.LOG: _of_positive("log"),
    Primitive.SQRT: _of_positive("sqrt"),
    Primitive.SIGMOID: _sigmoid,
}
"""For each primitive the function that writes it into *out*, which may be the array of an operand; by default NumPy's of its name."""


class Steps:
    """The steps of a formula on arrays.

    Args:
        formula: the formula.
        leaves: symbols of the operands' arrays, in order.
    """

    def __init__(self, formula: Term, leaves: Sequence[Symbol]) -> None:
        symbols = [symbol for symbol in symbols_in(formula) if symbol.primitive is not None]
        self._numbers = [x for symbol in symbols for x in symbol.operands if not isinstance(x, Symbol)]
        self._names: list[str] = []
        self._steps: list[tuple[Primitive, list[int]]] = []  # no functions: operators are pickled
        result = len(leaves) + len(self._numbers)
        places = {id(x): place for place, x in enumerate([*leaves, *self._numbers])}
        self._copied = formula if id(formula) not in places else None, places.get(id(formula), 0)
        last = {id(x): number for number, symbol in enumerate(symbols) for x in symbol.operands}
        free: list[int] = []
        for number, symbol in enumerate(symbols):
            if symbol is formula:
                place = result
            elif free:
                place = free.pop()
            else:
                self._names.append(f"formula {len(self._names)}")
                place = result + len(self._names)
            assert symbol.primitive is not None
            self._steps.append((symbol.primitive, [place, *[places[id(x)] for x in symbol.operands]]))
            places[id(symbol)] = place
            ended = {id(x) for x in symbol.operands if isinstance(x, Symbol) and x.primitive is not None}
            free += [places[key] for key in ended if last[key] == number]

    def run(self, ctx: Context, out: Any, leaves: Sequence[Any]) -> None:
        """Compute the formula of arrays into *out*."""
        arrays = [*leaves, *self._numbers, out]
        for name in self._names:
            arrays.append(ctx.scratch(name, out.shape, out.dtype))
        if not self._steps:
            number, place = self._copied
            ctx.xp.copyto(out, arrays[place] if number is None else number)
        for primitive, places in self._steps:
            FUNCTIONS[primitive](ctx, *[arrays[place] for place in places])


def forward(op: Elementwise, ctx: Context, out: Any, inputs: Sequence[Any]) -> None:
    """Compute an operator's formula into *out*.

    Raises:
        NotImplementedError: it has no formula.
    """

    def made() -> Steps:
        leaves = operands(len(inputs))
        return Steps(value_of(op, leaves), leaves)

    remembered(op, "value", made).run(ctx, out, inputs)


def gradient(op: Elementwise, i: int, ctx: Context, dx: Any, given: Sequence[Any]) -> None:
    """Compute the gradient of operand *i* into *dx*, from the result's gradient, the result and the operands: those that are read."""

    def made() -> Steps:
        dy, y, *inputs = leaves = operands(len(given))
        return Steps(gradient_of(op, i, dy, y, tuple(inputs)), leaves)

    remembered(op, i, made).run(ctx, dx, given)
