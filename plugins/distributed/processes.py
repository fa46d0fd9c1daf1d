"""Exchanges between processes, whatever connects them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import Any

import numpy as np

from ...core.common.cached_property import cached_property
from ...core.common.dtypes import computing_type, is_float
from ...core.run import profiling
from .base import Pending, Transport
from .channel import ROOM, Channel
from .group import Group, Post
from .watch import Watch

NUMBERS = "iufc"
"""Kinds of the element types that can be summed."""

END_SECONDS = 2.0
"""Seconds in which the watch ends a job whose workers cannot reach one another, before the program is told."""


class _OnThread(Pending):
    def __init__(self, done: Future[None], watch: Watch) -> None:
        self._done, self._watch = done, watch

    def wait(self) -> None:
        with self._watch.resting():
            self._done.result()


class ProcessTransport(Transport):
    """Carries arrays between processes, and watches over them.

    Args:
        main: what carries exchanges that the program waits for.
        early: what carries sums beside them.
        post: what carries messages of watches.
        is_watched: whether a worker that fails ends the process; not where several workers are threads of one.
    """

    def __init__(self, main: Group, early: Group, post: Post, is_watched: bool = True) -> None:
        super().__init__()
        self.rank, self.size = main.rank, main.size
        self._main, self._early = Channel(0, main), Channel(1, early)
        self._watch = Watch(post, (self._main, self._early), is_watched)
        self._host, self._overlaps, self._is_watched = post.host, post.has_threads, is_watched

    def hosts(self) -> list[str]:
        return list(self._hosts)

    def sum(self, array: Any, name: str = "sum") -> None:
        self._sum(self._main, array, name, threading.get_ident())

    def start_sum(self, array: Any, name: str = "sum") -> Pending:
        if not self._overlaps:
            self.sum(array, name)
            return Pending()
        return _OnThread(self._thread.submit(self._sum, self._early, array, name, threading.get_ident()), self._watch)

    def gather(self, array: Any, name: str = "gather") -> list[Any]:
        own = np.ascontiguousarray(array)
        data = own.view(np.uint8)

        def work(channel: Channel, thread: int) -> tuple[Any, Any]:
            sizes = channel.meet(f"{name}, gather of {own.dtype.str}", thread, np.array([data.nbytes]).view(np.uint8))
            counts = sizes[:, 0].copy()
            return channel.group.gather(data, counts), counts

        found, counts = self._exchange(self._main, name, data.nbytes * (self.size - 1), work)
        return [part.view(own.dtype) for part in _split(found, counts, own.dtype)]

    def exchange(self, arrays: Sequence[Any], name: str = "exchange") -> list[Any]:
        dtype = arrays[0].dtype
        pieces = [np.ascontiguousarray(array).view(np.uint8) for array in arrays]
        counts = np.array([piece.nbytes for piece in pieces], np.int64)

        def work(channel: Channel, thread: int) -> tuple[Any, Any]:
            fits = counts.nbytes <= ROOM
            sizes = channel.meet(f"{name}, exchange of {dtype.str}", thread, counts.view(np.uint8) if fits else None)
            if not fits:
                sizes = np.empty((self.size, self.size), np.int64)
                channel.group.gather_equal(counts, sizes)
            incoming = sizes[:, self.rank].copy()
            return channel.group.exchange(pieces, incoming), incoming

        found, incoming = self._exchange(self._main, name, int(counts.sum() - counts[self.rank]), work)
        return [part.view(dtype) for part in _split(found, incoming, dtype)]

    def broadcast(self, array: Any, root: int = 0, name: str = "broadcast") -> None:
        data = array.reshape(-1).view(np.uint8)

        def work(channel: Channel, thread: int) -> None:
            channel.meet(f"{name}, {_described(array)} from worker {root}", thread)
            channel.group.broadcast(data, root)

        self._exchange(self._main, name, data.nbytes if self.rank == root else 0, work)

    def barrier(self, name: str = "barrier") -> None:
        self._exchange(self._main, name, 0, lambda channel, thread: channel.meet(name, thread))

    def finalize(self) -> None:
        """Disconnect, together with the others; does nothing during an exception, which then ends the job."""
        if sys.exc_info()[0] is None:
            self._watch.leave()

    @cached_property
    def _hosts(self) -> list[str]:
        own = np.frombuffer(self._host.encode(), np.uint8)
        return [bytes(name).decode() for name in self.gather(own, "names of machines")]

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "cntk-sums")

    def _sum(self, channel: Channel, array: Any, name: str, thread: int) -> None:
        if array.dtype.kind not in NUMBERS and not is_float(array.dtype):
            raise TypeError(f"{name}: numbers can be summed over the workers, got an array of {array.dtype}")
        dtype = computing_type(array.dtype).newbyteorder("=")
        total = array.astype(dtype, order="C", copy=False)

        def work(channel: Channel, thread: int) -> None:
            what = f"{name}, sum of {_described(array)}"
            if total.nbytes <= ROOM:
                terms = channel.meet(what, thread, total.reshape(-1).view(np.uint8)).view(total.dtype)
                np.add.reduce(terms[:, : total.size], 0, out=total.reshape(-1))
            else:
                channel.meet(what, thread)
                channel.group.add_up(total.reshape(-1))

        self._exchange(channel, name, 2 * total.nbytes * (self.size - 1) // self.size, work, thread)
        if total is not array:
            array[...] = total

    def _exchange(self, channel: Channel, name: str, nbytes: int, work: Callable[[Channel, int], Any], thread: int | None = None) -> Any:
        """Run an exchange that sends at least so many bytes to others, and count them."""
        if self._watch.has_left:
            raise RuntimeError(f"{name}: Communicator.finalize() was called; nothing can be exchanged after that")
        begin = perf_counter()
        caller = threading.get_ident() if thread is None else thread
        try:
            with channel.lock, self._watch.waiting(channel, name, caller):
                result = work(channel, caller)
        except OSError as error:
            if self._is_watched:
                time.sleep(END_SECONDS)
            raise RuntimeError(f"worker {self.rank} of {self.size}: {error}, in {name}") from error
        profiling.note_event(name, "exchange", begin, perf_counter(), bytes=nbytes)
        self.messages += 1
        self.bytes_sent += nbytes
        return result


def _described(array: Any) -> str:
    return f"{array.size} of {array.dtype.str}"


def _split(found: Any, counts: Any, dtype: Any) -> list[Any]:
    """The workers' parts, each where its type may lie in memory."""
    parts = np.split(found, np.cumsum(counts)[:-1])
    return [part if part.ctypes.data % dtype.itemsize == 0 else part.copy() for part in parts]
