"""Formulas as the source of a language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .formula import Primitive, Symbol, Term, symbols_in


class Language(NamedTuple):
    """What differs from language to language.

    Attributes:
        expression: an expression for a primitive, given those of its operands, which are names or numbers.
        number: an expression for a number.
        statement: a statement that has a name stand for the value of an expression.
    """

    expression: Callable[[Primitive, Sequence[str]], str]
    number: Callable[[float], str]
    statement: Callable[[str, str], str]


def values_in(language: Language, formulas: Sequence[Term], names: Mapping[Symbol, str]) -> tuple[list[str], list[str]]:
    """Write formulas that may have parts in common, each of which is computed once; names of these are t0, t1, ...

    Args:
        language: the language.
        formulas: the formulas.
        names: names of the operands.

    Returns:
        statements that compute what the formulas are made of, and an expression for the value of each formula.

    Raises:
        KeyError: an operand has no name.

    Example:
        >>> from cntk.core.formulas.formula import exp, operands
        >>> from cntk.core.formulas.source import Language, values_in
        >>> lisp = Language(lambda what, x: f"({what.value} {' '.join(x)})", str, lambda name, value: f"(define {name} {value})")
        >>> (x,) = operands(1)
        >>> y = exp(x)
        >>> values_in(lisp, (y, 1 - y), {x: "x"})
        (['(define t0 (exp x))'], ['t0', '(subtract 1.0 t0)'])
    """
    known = {id(symbol): name for symbol, name in names.items()}
    symbols = {id(symbol): symbol for formula in formulas for symbol in symbols_in(formula)}
    used = {id(operand) for symbol in symbols.values() for operand in symbol.operands}
    once = {id(formula) for formula in formulas if sum(formula is other for other in formulas) == 1} - used
    statements: list[str] = []

    def text(term: Term) -> str:
        return known[id(term)] if isinstance(term, Symbol) else language.number(term)

    for symbol in symbols.values():
        if symbol.primitive is None:
            if id(symbol) not in known:
                of = next(formula for formula in formulas if any(symbol is one for one in symbols_in(formula)))
                raise KeyError(f"the operand {symbol!r} of {of!r} has no name; there are names of {[*names]}")
            continue
        value = language.expression(symbol.primitive, [text(operand) for operand in symbol.operands])
        if id(symbol) in once:
            known[id(symbol)] = value
        else:
            known[id(symbol)] = f"t{len(statements)}"
            statements.append(language.statement(known[id(symbol)], value))
    return statements, [text(formula) for formula in formulas]
