"""What formulas do with an element of row ``i`` and unit ``u``, as the source of a language.

Sources have memories ``x0``, ``x1``, ...; ``row0``, the step's first row; and for each other step that is touched, so many steps later,
its first row and how many of the step's sequences it has, ``row1`` and ``near1``, or ``row_1`` and ``near_1`` for an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Protocol

from ...core.formulas.formula import Symbol, Term
from .operations import Formula
from .plan import Columns, Member, Phase, Plan

MOST_FIRST = 48
"""Maximum number of values that are read first; each takes a register until it is used."""


class Syntax(Protocol):
    """What differs from language to language."""

    def value(self, term: Term, names: Mapping[Symbol, str]) -> tuple[Sequence[str], str]:
        """Statements that compute what a formula is made of, and an expression for its value."""

    def loaded(self, place: str) -> str:
        """An expression for an element of memory."""

    def chosen(self, condition: str, value: str, other: str) -> str:
        """An expression for one of two values; *other* may be ``0``."""

    def named(self, name: str, statements: Sequence[str], value: str) -> Iterator[str]:
        """Statements that have a name stand for a value, which *statements* compute."""

    def stored(self, place: str, name: str, condition: str) -> str:
        """A statement that stores a value, if there is a condition, where it holds."""


class Element:
    """Writes the statements; what has been read or written stays in registers.

    What is read comes first, so that a thread waits for memory once, and not after each store, behind which compilers keep later reads.

    Args:
        syntax: the language's.
        unread: memories that are not written.

    Attributes:
        loaded: memories that are read, not having been written before.
    """

    def __init__(self, syntax: Syntax, unread: Set[int] = frozenset()) -> None:
        self.loaded: set[int] = set()
        self._syntax, self._unread = syntax, unread
        self._count = 0
        self._first: list[str] = []
        self._then: list[str] = []
        self._written: set[int] = set()
        self._known: dict[tuple[int, int], str] = {}

    def lines(self, members: Sequence[Member]) -> list[str]:
        """The statements of all members."""
        for member in members:
            for group in range(member.columns_of_unit):
                self._formula(member, member.operation, group * member.unit)  # type: ignore[arg-type]
        return self._first + self._then

    def _formula(self, member: Member, formula: Formula, first: int) -> None:
        target, width = member.target, member.target.width
        names = {}
        for symbol, read in zip(formula.reads, member.reads, strict=True):
            is_wide = read.width == width
            key = read.memory, read.offset + first
            if key not in self._known or read.shift or not is_wide:
                name = self._new()
                comes_first = read.memory not in self._written and len(self._first) < MOST_FIRST
                (self._first if comes_first else self._then).extend(self._syntax.named(name, (), self._load(read, first, is_wide)))
                if is_wide and not read.shift:
                    self._known[key] = name
                names[symbol] = name
            else:
                names[symbol] = self._known[key]
        statements, value = self._syntax.value(formula.term, names)
        key, name = (target.memory, target.offset + first), self._new()
        if formula.exists and not target.shift:  # elsewhere the initial state stays
            value = self._syntax.chosen(_exists(formula.exists), value, self._known.get(key) or self._load(target, first, True))
        self._then.extend(self._syntax.named(name, statements, value))
        if target.memory not in self._unread:
            self._then.append(self._syntax.stored(_place(target, first, True), name, _exists(formula.exists) if formula.exists else ""))
            self._written.add(target.memory)
        if not target.shift:
            self._known[key] = name

    def _load(self, columns: Columns, first: int, is_wide: bool) -> str:
        """An expression for an element, 0 in rows of another step that it has not."""
        self.loaded.add(columns.memory)
        value = self._syntax.loaded(_place(columns, first, is_wide))
        return self._syntax.chosen(_exists(columns.shift), value, "0") if columns.shift else value

    def _new(self) -> str:
        self._count += 1
        return f"v{self._count}"


def unwritten(plan: Plan, passing: Set[int], syntax: Syntax) -> Set[int]:
    """Those of the *passing* memories, which nothing else reads, that the kernel does not read either."""
    read = {one.memory for phase in plan.phases if not is_formulas(phase) for member in phase.members for one in member.reads}
    for phase in filter(is_formulas, plan.phases):
        element = Element(syntax)
        element.lines(phase.members)
        read |= element.loaded
    return passing - read


def is_formulas(phase: Phase) -> bool:
    """Whether a phase is formulas, and not a product."""
    return isinstance(phase.members[0].operation, Formula)


def shifts(plan: Plan) -> list[int]:
    """The other steps that are touched, as many steps later."""
    return sorted({one.shift for member in plan.members for one in (member.target, *member.reads)} - {0})


def suffix(shift: int) -> str:
    """What names of things of another step end in."""
    return str(shift) if shift >= 0 else f"_{-shift}"


def _exists(shift: int) -> str:
    """Whether another step has a row i."""
    return f"i < near{suffix(shift)}"


def _place(columns: Columns, first: int, is_wide: bool) -> str:
    """The element of some columns that a thread has."""
    row = f"(row{suffix(columns.shift)} + i) * {columns.stride} + " if columns.stride else ""
    return f"x{columns.memory}[{row}{columns.offset + first} + u]" if is_wide else f"x{columns.memory}[{row}{columns.offset}]"
