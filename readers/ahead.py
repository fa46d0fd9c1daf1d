"""A thread that prepares the next minibatches while the network computes."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from .packer import Batch, Request

SLOW = 2e-3
"""Seconds; what takes less is made when it is wanted, for handing it over from another thread takes some of it."""

PATIENCE = 3
"""Slow minibatches, one after another, after which a thread makes the next ones."""


class Packer(Protocol):
    """Makes minibatches, one after another, from a state that can be set."""

    state: Any

    def next(self, request: Request) -> Batch | None:
        """The next minibatch, None at the end."""


class Ahead:
    """Hands out the minibatches of a packer, of which a thread prepares the next ones.

    The thread begins when a few minibatches of the same kind have each taken so long to make that it pays.  When another kind is wanted,
    or another state is set, what it has prepared is dropped, and the packer goes back to where the minibatches were handed out.

    Args:
        packer: makes minibatches; only one thread uses it at a time.
        depth: how many may wait; with 0 there is no thread.
        after_fork: called in a process that was forked, where threads and what they were about to read are gone.

    Attributes:
        state: the packer's state after the last minibatch handed out.
    """

    def __init__(self, packer: Packer, depth: int, after_fork: Callable[[], None]) -> None:
        self._packer, self._depth, self._after_fork = packer, depth, after_fork
        self.state = packer.state
        self._request: Request | None = None
        self._slow = 0  # how many minibatches of a kind were slow, one after another
        self._renew()

    def _renew(self) -> None:
        self._process = os.getpid()
        self._condition = threading.Condition()
        self._ready: deque[tuple[Batch | None, BaseException | None, Any]] = deque()
        self._thread: threading.Thread | None = None
        self._is_wanted = self._is_busy = self._is_stopped = False

    def next(self, request: Request) -> Batch | None:
        """The next minibatch, None at the end.

        Raises:
            Exception: what the packer raises, with the traceback of the thread.
        """
        if self._process != os.getpid():
            self._after_fork()
            self._renew()
            self._packer.state, self._request = self.state, None
        if request != self._request:
            self.pause()
            self._request, self._slow = request, 0
        if self._slow < PATIENCE or not self._depth:
            return self._made(request)
        batch, error, state = self._prepared()
        if error is not None:
            self.pause()
            raise error
        self.state = state
        if batch is None:
            self.pause()
        return batch

    def pause(self) -> None:
        """Drop what is prepared; the thread does nothing until minibatches are asked for again."""
        if self._thread is None:
            return
        with self._condition:
            self._is_wanted, self._request = False, None
            while self._is_busy:
                self._condition.wait()
            self._ready.clear()
            self._packer.state = self.state

    def restore(self, state: Any) -> None:
        """Go on from a state of the packer."""
        self.pause()
        self._packer.state = self.state = state

    def stop(self) -> None:
        """Let the thread end, once it has finished what it is doing."""
        if self._process == os.getpid():
            with self._condition:
                self._is_stopped = True
                self._ready.clear()
                self._condition.notify_all()

    def _made(self, request: Request) -> Batch | None:
        """A minibatch made at once."""
        begin = time.perf_counter()
        try:
            batch = self._packer.next(request)
        except BaseException:
            self._packer.state = self.state
            raise
        self._slow = self._slow + 1 if time.perf_counter() - begin > SLOW else 0
        self.state = self._packer.state
        return batch

    def _prepared(self) -> tuple[Batch | None, BaseException | None, Any]:
        """A minibatch that the thread has made."""
        with self._condition:
            self._is_wanted = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._prepare, name="cntk minibatches", daemon=True)
                self._thread.start()
            if not self._ready:
                self._condition.notify_all()
            while not self._ready:
                self._condition.wait()
            found = self._ready.popleft()
            self._condition.notify_all()
            return found

    def _prepare(self) -> None:
        while (request := self._next_request()) is not None:
            batch: Batch | None = None
            error: BaseException | None = None
            try:
                batch = self._packer.next(request)
            except BaseException as raised:
                error = raised
            with self._condition:
                self._is_busy = False
                if self._is_wanted:
                    self._ready.append((batch, error, self._packer.state))
                    self._is_wanted = batch is not None
                self._condition.notify_all()
            del batch, error  # a waiting thread keeps nothing alive

    def _next_request(self) -> Request | None:
        """Wait until another minibatch is wanted; None if the thread is to end."""
        with self._condition:
            while not self._is_stopped and not (self._is_wanted and len(self._ready) < self._depth):
                self._condition.wait()
            self._is_busy = not self._is_stopped
            return None if self._is_stopped else self._request
