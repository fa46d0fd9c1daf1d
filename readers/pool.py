"""Threads that call functions ahead of time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Pool:
    """Daemon threads, started when there is something to do; the interpreter does not wait for them when it exits.

    Args:
        threads: how many.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._started = 0

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call *function* as soon as a thread is free."""
        future: Future[Any] = Future()
        self._calls.put((future, function, arguments))
        if self._started < self.threads:
            self._started += 1
            threading.Thread(target=_work, args=(self._calls,), name="cntk reader", daemon=True).start()
        return future

    def stop(self) -> None:
        """Let the threads end, once they have finished what they are doing."""
        while not self._calls.empty():
            try:
                future, _, _ = self._calls.get_nowait()
            except (queue.Empty, TypeError):
                break
            future.cancel()
        for _ in range(self._started):
            self._calls.put(None)
        self._started = 0


def _work(calls: queue.SimpleQueue[Any]) -> None:
    while (call := calls.get()) is not None:
        future, function, arguments = call
        if future.set_running_or_notify_cancel():
            try:
                result = function(*arguments)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
        del call, future, function, arguments  # a waiting thread keeps nothing alive
