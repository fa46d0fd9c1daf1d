"""Watches over workers: ends a job when one of them fails, and reports workers that are waited for."""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...core.common.environment import number_in
from .channel import Channel, unlike_exchanges
from .deadlock import Position, cannot_go_on
from .group import Post
from .whereabouts import whereabouts

STALL_SECONDS = "CNTK_STALL_SECONDS"
"""Environment variable: the seconds of waiting for others after which every worker prints where it is; 0 for never, by default 300."""

LEFT_SECONDS = 2.0
"""Seconds that a worker may wait for others if one of them has ended without having taken part."""

ASK_SECONDS = 1.0
"""Seconds of waiting after which the main worker asks the others for their states, repeatedly."""

_PERIOD = 0.2
_STALLED, _LEFT, _WHERE, _HERE = range(1, 5)


class _Wait(NamedTuple):
    """A thread's waiting in an exchange, for the program on the thread *caller*."""

    began: float
    what: str
    channel: Channel
    number: int
    caller: int

    @property
    def place(self) -> str:
        """Where in the program it is."""
        return f"{whereabouts(self.caller)} ({self.what})"


class Watch:
    """Watches over a worker, on a thread of its own.

    * An uncaught exception, on any thread, is printed with the worker's number and ends all workers.
    * While a worker waits for others longer than :data:`STALL_SECONDS`, all print where they are.
    * A worker that cannot be reached any more ends all others, with its name.
    * A worker that waits for one that has ended with fewer exchanges than this one has begun, ends all workers.
    * Where all workers wait, and for one another, the main worker ends all.

    Args:
        post: carries its messages, and nothing else uses it.
        channels: those on which workers wait for one another, by number.
        is_active: whether it watches; one that does not only takes leave.

    Attributes:
        has_left: whether this worker has taken leave of the others.

    Raises:
        ValueError: the environment variable is not a number of seconds.
    """

    def __init__(self, post: Post, channels: Sequence[Channel], is_active: bool = True) -> None:
        self._post, self._channels, self.has_left = post, channels, False
        self._name = f"worker {post.rank} of {post.size} on {post.host}"
        self._limit = number_in(STALL_SECONDS, 300.0) or float("inf")
        self._waits: dict[int, _Wait] = {}
        self._callers: set[int] = set()
        self._resting: set[int] = set()
        self._told: dict[int, float] = {}
        self._left: dict[int, int] = {}
        self._positions: dict[int, Position] = {}
        self._before: list[Position] = []
        self._asks_at: float | None = 0.0
        self._changing = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cntk-watch", daemon=True)
        self._excepthook, self._thread_excepthook = sys.excepthook, threading.excepthook
        if not is_active:
            return
        if post.has_threads:
            self._thread.start()
        sys.excepthook, threading.excepthook = self._end_job, self._end_job_from_thread
        atexit.register(self.leave)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    @contextmanager
    def waiting(self, channel: Channel, what: str, caller: int) -> Iterator[None]:
        """While this thread waits for others in an exchange on a channel, for the program on the thread *caller*."""
        thread = threading.get_ident()
        with self._changing:
            channel.begun += 1
            self._callers.add(caller)
            self._waits[thread] = _Wait(time.monotonic(), what, channel, channel.begun, caller)
        try:
            yield
        finally:
            with self._changing:
                del self._waits[thread]

    @contextmanager
    def resting(self) -> Iterator[None]:
        """While this thread waits for another one that exchanges something for it."""
        thread = threading.get_ident()
        self._resting.add(thread)
        try:
            yield
        finally:
            self._resting.discard(thread)

    def leave(self) -> None:
        """Tell the others that this worker has finished, wait until they have as well, and disconnect."""
        atexit.unregister(self.leave)
        if self.has_left:
            return
        self.has_left = True
        if self._thread.is_alive():
            self._tell_others(_LEFT, self._begun())
            while len(self._left) < self._post.size - 1:
                time.sleep(0.01)
            self._stop.set()
            self._thread.join()
        sys.excepthook, threading.excepthook = self._excepthook, self._thread_excepthook
        self._post.close()

    def _forget(self) -> None:
        """Stop watching in a forked process, whose end and errors do not concern the others."""
        atexit.unregister(self.leave)
        self._post.forget()
        sys.excepthook, threading.excepthook = self._excepthook, self._thread_excepthook

    def _begun(self) -> int:
        """How many exchanges this worker has begun."""
        return sum(channel.begun for channel in self._channels)

    # ---- failures ----

    def _end_job(self, kind: Any, error: Any, trace: Any) -> None:
        self._abort("".join(traceback.format_exception(kind, error, trace)) + f"{self._name} has failed; this ends the job")

    def _end_job_from_thread(self, failure: Any) -> None:
        self._end_job(failure.exc_type, failure.exc_value, failure.exc_traceback)

    def _abort(self, message: str) -> None:
        self._say(message)
        sys.stdout.flush()
        self._post.abort()

    def _say(self, message: str) -> None:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()

    # ---- the thread ----

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD):
            self._receive()
            if lost := self._post.lost(self._left):
                self._abort(f"{self._name} has lost {lost}; this ends the job")
            for wait in list(self._waits.values()):
                waited = time.monotonic() - wait.began
                missed = [worker for worker, exchanges in self._left.items() if exchanges < self._begun()]
                if missed and waited > LEFT_SECONDS:
                    self._abort(
                        f"{self._name} waits for workers that have ended: {sorted(missed)}; this ends the job. It is here: {wait.place}"
                    )
                if waited > self._limit and self._told.get(-1) != wait.began:
                    self._told[-1] = wait.began
                    self._report(f"has waited for the others in {wait.what} for {waited:.0f} s")
                    self._tell_others(_STALLED)
            if self._post.rank == 0:
                self._ask()

    def _receive(self) -> None:
        for source, tag, data in self._post.received():
            said = json.loads(data)
            if tag == _LEFT:
                self._left[source] = said
            elif tag == _WHERE:
                self._tell(source, _HERE, self._position())
            elif tag == _HERE:
                self._hear(source, Position(*said))
            elif not self._waits and time.monotonic() - self._told.get(-2, -self._limit) >= self._limit:
                self._told[-2] = time.monotonic()
                self._report(f"is what worker {source} waits for")

    def _report(self, why: str) -> None:
        self._say(f"{self._name} {why}; it is here:")
        faulthandler.dump_traceback(all_threads=True)

    def _tell_others(self, tag: int, what: Any = None) -> None:
        for worker in range(self._post.size):
            if worker != self._post.rank:
                self._tell(worker, tag, what)

    def _tell(self, worker: int, tag: int, what: Any) -> None:
        self._post.send(worker, tag, json.dumps(what).encode())

    # ---- deadlocks ----

    def _position(self) -> Position:
        alive = {thread.ident for thread in threading.enumerate()}
        with self._changing:
            waits = list(self._waits.values())
            busy = (self._callers & alive) - self._waits.keys() - self._resting
            begun = [channel.begun for channel in self._channels]
        place = "; ".join(wait.place for wait in waits)
        return Position(begun, [[wait.channel.number, wait.number] for wait in waits], bool(busy), place)

    def _ask(self) -> None:
        """Ask all where they are, if this worker has waited for long, and no answer is outstanding."""
        now = time.monotonic()
        has_waited = any(now - wait.began > ASK_SECONDS for wait in list(self._waits.values()))
        if has_waited and self._asks_at is not None and now >= self._asks_at:
            self._asks_at, self._positions = None, {}
            self._tell_others(_WHERE)
            self._hear(0, self._position())

    def _hear(self, worker: int, position: Position) -> None:
        """Take a worker's answer; two rounds of the same answers mean that between them all were there at one instant."""
        self._positions[worker] = position
        if len(self._positions) < self._post.size:
            return
        found = [self._positions[worker] for worker in range(self._post.size)]
        is_stuck = cannot_go_on(found)
        if is_stuck and found == self._before:
            self._abort(f"{self._name}: {unlike_exchanges([position.place for position in found])}")
        self._before = found if is_stuck else []
        self._asks_at = 0.0 if is_stuck else time.monotonic() + ASK_SECONDS
