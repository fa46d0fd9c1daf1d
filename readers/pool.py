"""Threads that call functions ahead of time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Call(Generic[T]):
    """A call of a function by another thread.

    What waits for it can be interrupted at any moment, unlike a future of Python's, whose condition may stay locked then.
    """

    def __init__(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._begun, self._ended = threading.Lock(), threading.Lock()
        self._ended.acquire()
        self._result: Any = None
        self._error: BaseException | None = None

    def cancel(self) -> bool:
        """Cancel the call; returns whether that was still possible."""
        if self._begun.acquire(blocking=False):
            self._end(CancelledError())
        return isinstance(self._error, CancelledError)

    def make(self) -> None:
        """Make the call, unless it is cancelled."""
        if self._begun.acquire(blocking=False):
            error: BaseException | None = None
            try:
                self._result = self._function(*self._arguments)
            except BaseException as raised:
                error = raised
            self._end(error)

    def _end(self, error: BaseException | None) -> None:
        self._error = error
        del self._function, self._arguments
        self._ended.release()

    def result(self) -> T:
        """Wait for the end of the call.

        Raises:
            BaseException: whatever the function has raised.
            CancelledError: the call has been cancelled.
        """
        with self._ended:
            if self._error is not None:
                raise self._error
            result: T = self._result
            return result


class Pool:
    """Daemon threads, started when there is something to do; the interpreter does not wait for them when it exits.

    Args:
        threads: how many.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._calls: queue.SimpleQueue[Call[Any] | None] = queue.SimpleQueue()
        self._started = 0

    def submit(self, function: Callable[..., T], *arguments: Any) -> Call[T]:
        """Call *function* as soon as a thread is free."""
        call = Call(function, arguments)
        self._calls.put(call)
        if self._started < self.threads:
            threading.Thread(target=_work, args=(self._calls,), name="cntk reader", daemon=True).start()
            self._started += 1
        return call

    def stop(self) -> None:
        """Stop the threads, once they have finished their current calls."""
        while not self._calls.empty():
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                break
            if call is not None:
                call.cancel()
        self._calls.put(None)
        self._calls, self._started = queue.SimpleQueue(), 0


def _work(calls: queue.SimpleQueue[Call[Any] | None]) -> None:
    while (call := calls.get()) is not None:
        call.make()
        del call  # a waiting thread keeps nothing alive
    calls.put(None)  # for the others
