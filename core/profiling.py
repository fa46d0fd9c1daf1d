"""Taking the time of operators.  While nobody does, it costs programs one comparison a pass."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .binding import Step

FORWARD, BACKWARD = "forward", "backward"


class Tally:
    """Statistics of some durations, in seconds."""

    __slots__ = ("count", "least", "most", "squares", "total")

    def __init__(self) -> None:
        self.count, self.total, self.squares, self.least, self.most = 0, 0.0, 0.0, math.inf, 0.0

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.count += 1
        self.total += seconds
        self.squares += seconds * seconds
        self.least, self.most = min(self.least, seconds), max(self.most, seconds)

    @property
    def mean(self) -> float:
        """Their mean; 0 without any."""
        return self.total / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        """Their standard deviation."""
        return math.sqrt(max(self.squares / self.count - self.mean**2, 0.0)) if self.count else 0.0


class Recorder:
    """What is measured while it is in :data:`recorders`.

    Args:
        room: how many single events it keeps, beside the statistics.

    Attributes:
        tallies: statistics by the function's uid and the direction of the pass.
        events: uid, direction, thread, begin and end in seconds, of the first *room* calls.
    """

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.events: list[tuple[str, str, int, float, float]] = []
        self._lock = threading.Lock()

    def note(self, uid: str, direction: str, begin: float, end: float) -> None:
        """Count one call."""
        with self._lock:
            self.tallies.setdefault((uid, direction), Tally()).add(end - begin)
            if len(self.events) < self.room:
                self.events.append((uid, direction, threading.get_ident(), begin, end))


recorders: tuple[Recorder, ...] = ()
"""Who measures just now."""


def begin(recorder: Recorder) -> None:
    """Let a recorder measure from the next pass on."""
    global recorders
    if recorder not in recorders:
        recorders = (*recorders, recorder)


def end(recorder: Recorder) -> None:
    """Let a recorder measure no more."""
    global recorders
    recorders = tuple(other for other in recorders if other is not recorder)


def timed(steps: Iterable[Step], direction: str) -> Iterator[Step]:
    """The same calls, each measured."""
    for call, arguments, node in steps:
        yield _measure, (call, arguments, node.uid, direction), node


def _measure(call: Callable[..., None], arguments: tuple[Any, ...], uid: str, direction: str) -> None:
    start = perf_counter()
    call(*arguments)
    stop = perf_counter()
    for recorder in recorders:
        recorder.note(uid, direction, start, stop)
