"""Whether workers that wait for one another can ever go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Position(NamedTuple):
    """Where a worker is.

    Attributes:
        begun: how many exchanges it has begun on each channel.
        waits: those in which it waits now: channel, and number of the exchange on it.
        computes: whether a thread that takes part in exchanges does something else than waiting.
        place: where in its program it waits.
    """

    begun: list[int]
    waits: list[list[int]]
    computes: bool
    place: str


def cannot_go_on(positions: Sequence[Position]) -> bool:
    """Whether every worker waits for exchanges that others have not begun, so that nobody ever will, given where all are at one instant."""

    def is_stuck(position: Position) -> bool:
        lacking = [any(other.begun[channel] < number for other in positions) for channel, number in position.waits]
        return bool(lacking) and all(lacking) and not position.computes

    return all(map(is_stuck, positions))
