"""Calls, and what else is made once for arrays and used again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple, TypeVar

from ...core.types.context import Context

T = TypeVar("T")

Call = Callable[[], Any]


class Work:
    """Calls that give the device the same work each time: :class:`~cntk.core.extension.kernel.Repeatable`.

    Args:
        calls: the calls.
    """

    __slots__ = ("_calls",)

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls

    def __call__(self) -> None:
        for call in self._calls:
            call()

    work = __call__

    def holds(self) -> bool:
        """It does: nothing that may change is in it."""
        return True

    def prepare(self) -> None:
        """There is nothing to prepare."""


class _Known(NamedTuple):
    """What was made, and for which arrays."""

    arrays: tuple[Any, ...]
    made: Any


def again(ctx: Context, what: str, arrays: tuple[Any, ...], make: Callable[[], T]) -> T:
    """What was made for arrays: the same as last time where these are the same, as they are from step to step.

    Args:
        ctx: the context, whose ``state`` is the kernel's.
        what: what is made.
        arrays: what it reads and writes.
        make: makes it.
    """
    if ctx.state is None:
        ctx.state = {}
    known: _Known | None = ctx.state.get(what)
    if known is None or len(known.arrays) != len(arrays) or not all(map(is_, known.arrays, arrays)):
        known = ctx.state[what] = _Known(arrays, make())
    made: T = known.made
    return made
