"""Exchanges between workers over sockets, where something else than MPI has started them."""

from __future__ import annotations

import os
import selectors
import socket
import struct
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.common.environment import number_in
from ...core.common.launch import Rendezvous
from .group import Group, Post, in_ring
from .meeting import Mesh, meet
from .memory import READ_BYTES, Memory
from .processes import ProcessTransport

SILENCE_SECONDS = "CNTK_SILENCE_SECONDS"
"""Environment variable: the seconds after which a worker that gives no sign of life ends the job; 0 for never, by default 20."""

BEAT_SECONDS = 1.0
"""Seconds between a worker's signs of life."""

CLOSE_SECONDS = 2.0
"""So long does a worker wait, when all have taken leave, for what the others still send."""

_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
_FRAME = struct.Struct("<qq")
_BEAT, _ENDED = -1, -2


class TcpTransport(ProcessTransport):
    """Carries arrays between processes that know their number, and where the first of them is.

    Args:
        rendezvous: number of this worker, how many there are, and address and port of the first.
        is_watched: whether a worker that fails ends the process; not where several workers are threads of one.

    Raises:
        RuntimeError: the others do not come, or are of another job.
    """

    def __init__(self, rendezvous: Rendezvous, is_watched: bool = True) -> None:
        mesh = meet(rendezvous)
        super().__init__(TcpGroup(mesh, 0), TcpGroup(mesh, 1), TcpPost(mesh, 2), is_watched)


class TcpGroup(Group):
    """All workers, on connections of its own."""

    def __init__(self, mesh: Mesh, link: int) -> None:
        self.rank, self.size = mesh.rank, mesh.size
        self._mesh, self._sockets = mesh, mesh.links[link]
        self._memory = Memory(self)

    def gather_equal(self, own: Any, found: Any) -> None:
        found[self.rank] = own
        self._move(dict.fromkeys(self._sockets, _bytes(own)), {worker: _bytes(found[worker]) for worker in self._sockets})

    def gather(self, own: Any, sizes: Any) -> Any:
        found = np.empty(int(sizes.sum()), np.uint8)
        parts = np.split(found, np.cumsum(sizes)[:-1])
        parts[self.rank][...] = own
        self._move(dict.fromkeys(self._sockets, _bytes(own)), {worker: _bytes(parts[worker]) for worker in self._sockets})
        return found

    def exchange(self, pieces: Sequence[Any], sizes: Any) -> Any:
        found = np.empty(int(sizes.sum()), np.uint8)
        parts = np.split(found, np.cumsum(sizes)[:-1])
        parts[self.rank][...] = pieces[self.rank]
        self._move(
            {worker: _bytes(pieces[worker]) for worker in self._sockets}, {worker: _bytes(parts[worker]) for worker in self._sockets}
        )
        return found

    def broadcast(self, data: Any, root: int) -> None:
        place, reach = (self.rank - root) % self.size, 1
        while reach < self.size:  # those that have the data hand it on to as many others
            if place < reach and place + reach < self.size:
                self._move({(self.rank + reach) % self.size: _bytes(data)}, {})
            elif reach <= place < 2 * reach:
                self._move({}, {(self.rank - reach) % self.size: _bytes(data)})
            reach *= 2

    def swap(self, sent: Any, to: int, found: Any, source: int) -> None:
        self._move({to: _bytes(sent)}, {source: _bytes(found)})

    def add_up_in_ring(self, array: Any) -> None:
        if self._memory.is_shared and array.nbytes >= READ_BYTES:
            in_ring(self, array, self._read, self._read_and_add)
        else:
            super().add_up_in_ring(array)

    def _read(self, sent: Any, to: int, found: Any, source: int) -> None:
        """As :meth:`swap`, by reading the other's memory."""
        with self._offered(sent, to, source) as address:
            self._memory.read(source, address, found)

    def _read_and_add(self, sent: Any, to: int, total: Any, source: int) -> None:
        with self._offered(sent, to, source) as address:
            self._memory.read_and_add(source, address, total)

    @contextmanager
    def _offered(self, sent: Any, to: int, source: int) -> Iterator[int]:
        """The address of what another worker sends, while this one's is read."""
        address, done = np.empty(1, np.int64), np.empty(1, np.uint8)
        self._move({to: _bytes(np.array([sent.ctypes.data]))}, {source: _bytes(address)})
        yield int(address[0])
        self._move({source: _bytes(done)}, {to: _bytes(done)})

    def _move(self, outgoing: dict[int, memoryview], incoming: dict[int, memoryview]) -> None:
        """Send these bytes, and receive those, by worker and all at once.

        Raises:
            OSError: a worker has ended or cannot be reached.
        """
        outgoing, incoming = ({worker: data for worker, data in given.items() if len(data)} for given in (outgoing, incoming))
        if not self._sockets:
            raise ConnectionError("the connections to the others were closed")
        while outgoing or incoming:
            has_moved = False
            for worker, data in list(outgoing.items()):
                has_moved |= self._advance(outgoing, worker, self._sockets[worker].send, data)
            for worker, data in list(incoming.items()):
                has_moved |= self._advance(incoming, worker, self._sockets[worker].recv_into, data)
            if not has_moved:
                self._wait(outgoing, incoming)

    def _advance(self, waiting: dict[int, memoryview], worker: int, transfer: Any, data: memoryview) -> bool:
        """Transfer some of the bytes; whether any were."""
        try:
            count = transfer(data)
        except BlockingIOError:
            return False
        except OSError as error:
            raise ConnectionError(f"{self._mesh.name(worker)} has ended or cannot be reached ({error})") from error
        if not count:
            raise ConnectionError(f"{self._mesh.name(worker)} has ended")
        if count == len(data):
            del waiting[worker]
        else:
            waiting[worker] = data[count:]
        return True

    def _wait(self, outgoing: Collection[int], incoming: Collection[int]) -> None:
        """Wait until something can be sent to one of these workers, or be received from one of those."""
        with _Selector() as selector:
            for worker in {*outgoing, *incoming}:
                events = selectors.EVENT_WRITE * (worker in outgoing) | selectors.EVENT_READ * (worker in incoming)
                selector.register(self._sockets[worker], events)
            selector.select()


class TcpPost(Post):
    """Messages on connections of their own, and signs of life.

    Raises:
        ValueError: the environment variable is not a number of seconds.
    """

    def __init__(self, mesh: Mesh, link: int) -> None:
        self.rank, self.size, self.host = mesh.rank, mesh.size, mesh.hosts[mesh.rank]
        self._mesh, self._sockets = mesh, dict(mesh.links[link])
        self._limit = number_in(SILENCE_SECONDS, 20.0) or float("inf")
        now = time.monotonic()
        self._outgoing = {worker: bytearray() for worker in self._sockets}
        self._incoming = {worker: bytearray() for worker in self._sockets}
        self._heard = dict.fromkeys(self._sockets, now)
        self._beat_at = self._looked = now
        self._gone: dict[int, str] = {}
        self._changing = threading.RLock()

    def send(self, worker: int, tag: int, data: bytes) -> None:
        with self._changing:
            if worker not in self._gone:
                self._outgoing[worker] += _FRAME.pack(tag, len(data)) + data
                self._flush(worker)

    def received(self) -> list[tuple[int, int, bytes]]:
        found = []
        with self._changing:
            self._show_life()
            for worker in self._sockets.keys() - self._gone.keys():
                self._flush(worker)
                self._read(worker)
                for tag, data in _frames(self._incoming[worker]):
                    if tag == _ENDED:
                        self._gone[worker] = "has failed"
                    elif tag != _BEAT:
                        found.append((worker, tag, data))
        return found

    def lost(self, left: Collection[int]) -> str:
        now = time.monotonic()
        for worker, why in self._gone.items():
            if worker not in left:
                return f"{self._mesh.name(worker)}, which {why}"
        for worker, heard in self._heard.items():
            if worker not in left and now - heard > self._limit:
                return f"{self._mesh.name(worker)}, which has given no sign of life for {now - heard:.0f} s"
        return ""

    def abort(self) -> None:
        for worker in self._sockets:
            self.send(worker, _ENDED, b"")
        self._finish(BEAT_SECONDS)
        os._exit(1)

    def close(self) -> None:
        self._finish(CLOSE_SECONDS)
        self.forget()

    def forget(self) -> None:
        self._mesh.close()
        for link in self._mesh.links:
            link.clear()

    def _show_life(self) -> None:
        """Send a sign of life if it is time to; having slept oneself, one waits for those of the others anew."""
        now = time.monotonic()
        if now - self._looked > self._limit / 2:
            self._heard = dict.fromkeys(self._heard, now)
        self._looked = now
        if now >= self._beat_at:
            self._beat_at = now + BEAT_SECONDS
            for worker in self._sockets:
                self.send(worker, _BEAT, b"")

    def _flush(self, worker: int) -> None:
        waiting = self._outgoing[worker]
        try:
            while waiting:
                del waiting[: self._sockets[worker].send(waiting)]
        except BlockingIOError:
            pass  # the rest goes next time
        except OSError:
            waiting.clear()  # reading tells that the worker has ended, behind what it has said

    def _read(self, worker: int) -> None:
        try:
            while data := self._sockets[worker].recv(2**16):
                self._incoming[worker] += data
                self._heard[worker] = time.monotonic()
            self._gone[worker] = "has ended without a word"
        except BlockingIOError:
            pass  # there is no more
        except OSError as error:
            self._gone[worker] = f"cannot be reached any more ({error})"

    def _finish(self, seconds: float) -> None:
        """Say no more, and wait until no other worker does: a connection that is closed earlier may lose what was said last."""
        until = time.monotonic() + seconds
        with self._changing:
            for worker in self._sockets.keys() - self._gone.keys():
                self._flush(worker)
                try:
                    self._sockets[worker].shutdown(socket.SHUT_WR)
                except OSError:
                    self._gone[worker] = "has ended"
            while len(self._gone) < len(self._sockets) and time.monotonic() < until:
                for worker in self._sockets.keys() - self._gone.keys():
                    self._read(worker)
                time.sleep(0.005)


def _frames(data: bytearray) -> list[tuple[int, bytes]]:
    """Take the messages that are complete from the beginning of what has been received: tags and data."""
    found, start = [], 0
    while len(data) - start >= _FRAME.size:
        tag, size = _FRAME.unpack_from(data, start)
        if len(data) - start < _FRAME.size + size:
            break
        found.append((tag, bytes(data[start + _FRAME.size : start + _FRAME.size + size])))
        start += _FRAME.size + size
    del data[:start]
    return found


def _bytes(array: Any) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))
