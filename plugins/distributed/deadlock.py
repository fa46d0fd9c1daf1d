"""Detects workers that wait for one another for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Position(NamedTuple):
    """The state of a worker.

    Attributes:
        begun: how many exchanges it has begun on each channel.
        waits: those in which it is waiting: channel, and number of the exchange on it.
        computes: whether a thread that takes part in exchanges is not waiting.
        place: where in its program it waits.
    """

    begun: list[int]
    waits: list[list[int]]
    computes: bool
    place: str


def cannot_go_on(positions: Sequence[Position]) -> bool:
    """Whether every worker waits for exchanges that others have not begun, so that none can continue; states are of one instant."""

    def is_stuck(position: Position) -> bool:
        lacking = [any(other.begun[channel] < number for other in positions) for channel, number in position.waits]
        return bool(lacking) and all(lacking) and not position.computes

    return all(map(is_stuck, positions))
