"""Measures the time of operators, and of other events.  Without a recorder it costs programs one comparison a pass."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..common.lock import ForkSafeLock
from ..common.switches import recorders
from ..operators.cost import Cost, cost_of

if TYPE_CHECKING:
    from ..operators.op import Op
    from .binding import Step

FORWARD, BACKWARD = "forward", "backward"


class Event(NamedTuple):
    """An event, from *begin* to *end* in seconds of :func:`time.perf_counter`."""

    name: str
    category: str
    thread: int
    begin: float
    end: float
    details: dict[str, Any]


class Tally:
    """Statistics of some calls: of their durations, in seconds, and their cost.

    Attributes:
        flop, nbytes: operations and bytes of all.
        dtype: type of the operations' results, None where there are none.
    """

    __slots__ = ("count", "dtype", "flop", "least", "most", "nbytes", "squares", "total")

    def __init__(self) -> None:
        self.count, self.total, self.squares, self.least, self.most = 0, 0.0, 0.0, math.inf, 0.0
        self.flop, self.nbytes = 0, 0
        self.dtype: Any = None

    def add(self, seconds: float, cost: Cost) -> None:
        """Count one more."""
        self.count += 1
        self.flop += cost.flop
        self.nbytes += cost.nbytes
        if cost.dtype is not None:
            self.dtype = cost.dtype
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
    """Records events while it is among :data:`~cntk.core.common.switches.recorders`.

    Args:
        max_events: how many single events it keeps, beside the statistics.

    Attributes:
        tallies: statistics by the function's uid and the direction of the pass.
        events: the first *max_events* events; those of operators have the direction for a category.
        threads: names of the threads they took place on.
    """

    def __init__(self, max_events: int = 0) -> None:
        self.max_events = max_events
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.events: list[Event] = []
        self.threads: dict[int, str] = {}
        self._lock = ForkSafeLock()

    def count(self, uid: str, direction: str, begin: float, end: float, cost: Cost) -> None:
        """Count a call of an operator, and keep it."""
        with self._lock:
            self.tallies.setdefault((uid, direction), Tally()).add(end - begin, cost)
        if len(self.events) < self.max_events:
            details = {"flop": cost.flop, "bytes": cost.nbytes}
            self.keep(Event(uid + direction.capitalize(), direction, threading.get_ident(), begin, end, details))

    def keep(self, event: Event) -> None:
        """Keep an event, if fewer than *max_events* are kept."""
        with self._lock:
            if len(self.events) < self.max_events:
                self.events.append(event)
                if event.thread not in self.threads:
                    self.threads[event.thread] = threading.current_thread().name


def begin(recorder: Recorder) -> None:
    """Start a recorder with the next pass."""
    if recorder not in recorders.value:
        recorders.value = (*recorders.value, recorder)


def end(recorder: Recorder) -> None:
    """Stop a recorder."""
    recorders.value = tuple(other for other in recorders.value if other is not recorder)


def note_event(name: str, category: str, begin: float, end: float, **details: Any) -> None:
    """Report an event on this thread to the recorders, if there are any.

    Args:
        name, category: its name and kind.
        begin, end: when it took place, by :func:`time.perf_counter`.
        details: further data: numbers and strings.
    """
    if recorders.value:
        event = Event(name, category, threading.get_ident(), begin, end, details)
        for recorder in recorders.value:
            recorder.keep(event)


def timed(steps: Iterable[Step], direction: str) -> Iterator[Step]:
    """The same calls, each measured."""
    for call, arguments, node, op, works_on in steps:
        yield _measure, (call, arguments, node.uid, direction, op, works_on), node, op, works_on


def _measure(
    call: Callable[..., None], arguments: tuple[Any, ...], uid: str, direction: str, op: Op | None, works_on: tuple[Any, ...]
) -> None:
    start = perf_counter()
    call(*arguments)
    stop = perf_counter()
    cost = cost_of(op, works_on, direction == BACKWARD)
    for recorder in recorders.value:
        recorder.count(uid, direction, start, stop, cost)
