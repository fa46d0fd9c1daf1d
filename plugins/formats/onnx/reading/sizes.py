"""Sizes of axes that are not known until there are data: polynomials of symbols."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Monomial = tuple[str, ...]


class Undecided(ValueError):
    """A question about sizes whose answer depends on the data."""


class Size:
    """A polynomial of symbols, each of which is the size of an axis: a number from 1 on.

    Arithmetic gives an int where no symbol is left.  What is no polynomial, such as a quotient with a rest, becomes a symbol of its own,
    whose name says how it was made, so that the same arithmetic gives the same symbol.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms

    @classmethod
    def symbol(cls, name: str) -> Size:
        """The size that is called so."""
        return cls({(name,): 1})

    @property
    def symbols(self) -> set[str]:
        """The names in it."""
        return {name for monomial in self.terms for name in monomial}

    def __repr__(self) -> str:
        return " + ".join("*".join([*([str(factor)] if factor != 1 or not names else []), *names]) for names, factor in self.terms.items())

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __add__(self, other: Any) -> Any:
        return _simple([*self.terms.items(), *_terms(other).items()])

    def __sub__(self, other: Any) -> Any:
        return _simple([*self.terms.items(), *((names, -factor) for names, factor in _terms(other).items())])

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> Any:
        return self * -1

    def __mul__(self, other: Any) -> Any:
        theirs = _terms(other).items()
        return _simple((tuple(sorted(a + b)), x * y) for a, x in self.terms.items() for b, y in theirs)

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other: Any) -> Any:
        exact = quotient(self, other)
        return Size.symbol(Quotient.of(self, other)) if exact is None else exact

    def __rfloordiv__(self, other: Any) -> Any:
        return 0 if other == 0 else Size.symbol(f"({other})//({self})")

    def __rmod__(self, other: Any) -> Any:
        return 0 if other == 0 else self - 1 if other == -1 else Size.symbol(f"({other})%({self})")

    def __mod__(self, other: Any) -> Any:
        return 0 if quotient(self, other) is not None else Size.symbol(f"({self})%({other})")

    def __lt__(self, other: Any) -> bool:
        return sign(self - other) < 0

    def __gt__(self, other: Any) -> bool:
        return sign(self - other) > 0

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return sign(self) != 0

    def __int__(self) -> int:
        raise Undecided(f"a number is wanted that depends on the size {self} of the data")

    __index__ = __float__ = __int__


class Quotient(str):
    """The name of the size that a division without a fraction gives.

    Attributes:
        value: what is divided.
        divisor: what it is divided by.
    """

    __slots__ = ("divisor", "value")
    value: Any
    divisor: Any

    @classmethod
    def of(cls, value: Any, divisor: Any) -> Quotient:
        """The name of a quotient."""
        made = cls(f"({value})//({divisor})")
        made.value, made.divisor = value, divisor
        return made


Dim = int | Size


def _terms(value: Any) -> dict[Monomial, int]:
    return value.terms if isinstance(value, Size) else {(): int(value)}


def _simple(terms: Iterable[tuple[Monomial, int]]) -> Any:
    """The sum of terms: an int where no symbol is in it."""
    total: dict[Monomial, int] = {}
    for names, factor in terms:
        total[names] = total.get(names, 0) + factor
    left = {names: factor for names, factor in total.items() if factor}
    return left.get((), 0) if not left or set(left) == {()} else Size(left)


def sign(value: Any) -> int:
    """-1, 0 or 1.

    Raises:
        Undecided: it depends on the symbols.
    """
    if not isinstance(value, Size):
        return (value > 0) - (value < 0)
    rest = sum(value.terms.values())  # its value where all symbols are 1, their least
    if all(factor > 0 for names, factor in value.terms.items() if names) and rest > 0:
        return 1
    if all(factor < 0 for names, factor in value.terms.items() if names) and rest < 0:
        return -1
    raise Undecided(f"whether {value} is more or less than 0 depends on the data")


def same(one: Any, other: Any) -> bool:
    """Whether two sizes are equal.

    Raises:
        Undecided: it depends on the symbols.
    """
    return one == other or sign(one - other) == 0


def quotient(value: Any, divisor: Any) -> Any:
    """The exact quotient; None where there is a rest, or it cannot be told."""
    if value == divisor and not _is(divisor, 0):
        return 1
    terms = _terms(divisor)
    if len(terms) != 1:
        return None
    ((names, factor),) = terms.items()
    made = []
    for monomial, number in _terms(value).items():
        left = list(monomial)
        for name in names:
            if name not in left:
                return None
            left.remove(name)
        if factor == 0 or number % factor:
            return None
        made.append((tuple(left), number // factor))
    return _simple(made)


def without_rest(value: Any) -> Any:
    """A size if the quotients in it are exact, where they are multiplied by what they were divided by."""
    total: Any = 0
    for names, factor in _terms(value).items():
        left, found = list(names), factor
        for name in names:
            if isinstance(name, Quotient) and isinstance(name.divisor, int) and found % name.divisor == 0:
                left.remove(name)
                rest = Size({tuple(left): 1}) if left else 1
                return without_rest(value - Size({names: factor}) + (rest * name.value) * (found // name.divisor))
        total = total + (Size({names: found}) if names else found)
    return total


def divided_exactly(value: Any, divisor: Any) -> Any:
    """The quotient of sizes of which it is known that there is no rest; None where it cannot be told."""
    terms = _terms(divisor)
    if len(terms) != 1:
        return None
    ((names, factor),) = terms.items()
    found = quotient(value, Size({names: 1})) if names else value
    return found // factor if isinstance(found, Size) and factor else None


def _is(value: Any, number: int) -> bool:
    return not isinstance(value, Size) and value == number


def product(dims: Iterable[Any]) -> Any:
    """The number of elements of a shape."""
    total: Any = 1
    for dim in dims:
        total = total * dim
    return total
