"""Sequences of launches, and a cache of objects made for particular arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple, TypeVar

from ...core.types.context import Context

T = TypeVar("T")

Call = Callable[[], Any]


class Work:
    """Calls that enqueue the same work each time; implements :class:`~cntk.core.extension.kernel.Repeatable`.

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
        """Always true: the work depends on nothing that may change."""
        return True

    def prepare(self) -> None:
        """Do nothing; no preparation is required."""


class _Known(NamedTuple):
    """A cached object and the arrays for which it was made."""

    arrays: tuple[Any, ...]
    made: Any


def again(ctx: Context, what: str, arrays: tuple[Any, ...], make: Callable[[], T]) -> T:
    """Return the object made for these arrays, reusing the last one if the arrays are the same, as they are from step to step.

    Args:
        ctx: the context; its ``state`` belongs to the kernel and holds the cache.
        what: key of the object in the cache.
        arrays: the arrays that the object reads and writes.
        make: makes the object.
    """
    if ctx.state is None:
        ctx.state = {}
    known: _Known | None = ctx.state.get(what)
    if known is None or len(known.arrays) != len(arrays) or not all(map(is_, known.arrays, arrays)):
        known = ctx.state[what] = _Known(arrays, make())
    made: T = known.made
    return made
