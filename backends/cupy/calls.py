"""Calls that are made once for arrays and then again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple

from ...core.types.context import Context

Call = Callable[[], Any]


def in_turn(calls: Sequence[Call]) -> Call:
    """A function that makes the calls."""
    if len(calls) == 1:
        return calls[0]

    def call() -> None:
        for one in calls:
            one()

    return call


class _Known(NamedTuple):
    """What was made, and for which arrays."""

    arrays: tuple[Any, ...]
    calls: Sequence[Call]


def again(ctx: Context, arrays: tuple[Any, ...], make: Callable[[], Sequence[Call]]) -> Sequence[Call]:
    """The calls for arrays: those that were made last where these are the same, as they are from step to step.

    Args:
        ctx: the context, whose ``state`` is the kernel's.
        arrays: what the calls read and write.
        make: makes them.
    """
    known = ctx.state
    if type(known) is not _Known or len(known.arrays) != len(arrays) or not all(map(is_, known.arrays, arrays)):
        known = ctx.state = _Known(arrays, make())
    return known.calls
