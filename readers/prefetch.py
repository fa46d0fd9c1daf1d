"""A thread that prepares the next minibatches while the network computes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from .packer import Batch, Request

SLOW = 2e-3
"""Seconds; faster minibatches are made when they are requested, since handing them over from another thread takes time as well."""

PATIENCE = 3
"""Slow minibatches, one after another, after which a thread makes the next ones."""


class Packer(Protocol):
    """Makes minibatches, one after another, from a state that can be set."""

    state: Any

    def next(self, request: Request) -> Batch | None:
        """The next minibatch, None at the end."""


class Made(NamedTuple):
    """The outcome of making a minibatch: the minibatch, None at the end, or the error; and the packer's state after it."""

    minibatch: Batch | None
    error: BaseException | None
    state: Any


class Prefetcher:
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
        self._turn = 0  # incremented when requests are dropped
        self._is_settled = True  # False while a call may have been interrupted after it has taken or dropped something
        self._renew()

    def _renew(self) -> None:
        """Begin without a thread."""
        self._process = os.getpid()
        self._orders: SimpleQueue[tuple[int, Request | None] | None] = SimpleQueue()
        self._made: SimpleQueue[tuple[int, Made]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ordered = 0  # how many are requested, or made and not handed out

    def next(self, request: Request) -> Batch | None:
        """The next minibatch, None at the end.

        One that an error interrupts, such as that of a signal's handler, is handed out by the next call.

        Raises:
            Exception: what the packer raises, with the traceback of the thread.
        """
        if self._process != os.getpid():
            self._after_fork()
            self._renew()
            self._packer.state, self._request = self.state, None
        if not self._is_settled:
            self.restore(self.state)
        if request != self._request:
            self.pause()
            self._request, self._slow = request, 0
        self._is_settled = False
        batch, error, state = self._prepared(request) if self._depth and self._slow >= PATIENCE else self._timed(request)
        if error is not None:
            self.restore(self.state)
            raise error
        self.state = state
        if batch is None:
            self.pause()
        self._is_settled = True
        return batch

    def pause(self) -> None:
        """Drop what is prepared; the thread does nothing until minibatches are asked for again."""
        if self._thread is None:
            return
        self._is_settled = False
        self._turn += 1
        self._orders.put((self._turn, None))
        while self._made.get()[0] != self._turn:
            pass
        self._ordered, self._request = 0, None
        self._packer.state = self.state
        self._is_settled = True

    def restore(self, state: Any) -> None:
        """Go on from a state of the packer."""
        if self._thread is None and not self._is_settled:
            self.stop()  # a thread that had just been started when the call was interrupted
        self.pause()
        self._packer.state = self.state = state
        self._is_settled = True

    def stop(self) -> None:
        """Stop the thread, once it has finished its current minibatch."""
        if self._process == os.getpid():
            self._turn += 1
            self._orders.put(None)
            self._renew()

    def _timed(self, request: Request) -> Made:
        """A minibatch made at once."""
        begin = time.perf_counter()
        made = self._make(request)
        self._slow = self._slow + 1 if time.perf_counter() - begin > SLOW else 0
        return made

    def _prepared(self, request: Request) -> Made:
        """A minibatch that the thread has made."""
        if self._thread is None:
            thread = threading.Thread(target=self._prepare, args=(self._orders, self._made), name="cntk minibatches", daemon=True)
            thread.start()
            self._thread = thread
        while self._ordered <= self._depth:
            self._orders.put((self._turn, request))
            self._ordered += 1
        _, made = self._made.get()
        self._ordered -= 1
        return made

    def _make(self, request: Request) -> Made:
        try:
            return Made(self._packer.next(request), None, self._packer.state)
        except BaseException as error:
            return Made(None, error, None)

    def _prepare(self, orders: SimpleQueue[tuple[int, Request | None] | None], made: SimpleQueue[tuple[int, Made]]) -> None:
        """The thread's work.  What has been dropped is not made, nor is there anything after the end or an error."""
        ended = -1
        while (order := orders.get()) is not None:
            turn, request = order
            if request is None:
                made.put((turn, Made(None, None, None)))
            elif turn == self._turn and turn != ended:
                batch = self._make(request)
                ended = turn if batch.minibatch is None else -1
                made.put((turn, batch))
                del batch  # a waiting thread keeps nothing alive
