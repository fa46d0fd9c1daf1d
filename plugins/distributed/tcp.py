"""Exchanges between workers over sockets, where something else than MPI has started them.

The first worker listens where ``MASTER_ADDR`` and ``MASTER_PORT`` say; all exchanges go through it.  That does for what is small beside
gradients on GPUs, which :mod:`.nccl` sums; MPI is faster for arrays of the host.
"""

from __future__ import annotations

import platform
import socket
import struct
import time
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type, is_float
from ...core.common.launch import Rendezvous
from ...core.run import profiling
from .base import Transport
from .channel import unlike_exchanges

GREETING = b"opencntk workers 1\n"
"""What a worker begins with, before it says its number and how many there are."""

CONNECT_SECONDS = 300.0
"""So long does a worker wait for the others to be started."""

GREETING_SECONDS = 10.0
"""So long may a connection take to say whose it is."""

_SIZE = struct.Struct("<q")
_PLACE = struct.Struct("<qq")


class TcpTransport(Transport):
    """Carries arrays between processes that know their number, and where the first of them is.

    Args:
        rendezvous: number of this worker, how many there are, and address and port of the first.

    Raises:
        RuntimeError: the others do not come, or are of another job.
    """

    def __init__(self, rendezvous: Rendezvous) -> None:
        super().__init__()
        self.rank, self.size = rendezvous.rank, rendezvous.size
        self._sockets = _gathered(rendezvous) if self.rank == 0 else [_connected(rendezvous)]
        self._names: list[str] | None = None

    def hosts(self) -> list[str]:
        if self._names is None:
            own = np.frombuffer(platform.node().encode(), np.uint8)
            self._names = [bytes(name).decode() for name in self.gather(own, "names of machines")]
        return list(self._names)

    def sum(self, array: Any, name: str = "sum") -> None:
        if array.dtype.kind not in "iufc" and not is_float(array.dtype):
            raise TypeError(f"{name}: numbers can be summed over the workers, got an array of {array.dtype}")
        wide = computing_type(array.dtype)

        def add_up(parts: list[bytes]) -> list[bytes]:
            total = np.zeros(array.size, wide)
            for part in parts:
                total += np.frombuffer(part, array.dtype)
            return [total.tobytes()] * self.size

        nbytes = 2 * array.size * wide.itemsize * (self.size - 1) // self.size
        found = self._through_first(f"{name}, sum of {_described(array)}", np.ascontiguousarray(array).tobytes(), add_up, nbytes)
        array[...] = np.frombuffer(found, wide).reshape(array.shape)

    def gather(self, array: Any, name: str = "gather") -> list[Any]:
        sent = np.ascontiguousarray(array).tobytes()
        found = self._through_first(
            f"{name}, gather of {array.dtype.str}", sent, lambda parts: [_packed(parts)] * self.size, len(sent) * (self.size - 1)
        )
        return [np.frombuffer(part, array.dtype).copy() for part in _unpacked(found)]

    def exchange(self, arrays: Sequence[Any], name: str = "exchange") -> list[Any]:
        dtype = arrays[0].dtype
        pieces = [np.ascontiguousarray(array).tobytes() for array in arrays]

        def deal_out(parts: list[bytes]) -> list[bytes]:
            held = [_unpacked(part) for part in parts]
            return [_packed([sent[worker] for sent in held]) for worker in range(self.size)]

        nbytes = sum(map(len, pieces)) - len(pieces[self.rank])
        found = self._through_first(f"{name}, exchange of {dtype.str}", _packed(pieces), deal_out, nbytes)
        return [np.frombuffer(part, dtype).copy() for part in _unpacked(found)]

    def broadcast(self, array: Any, root: int = 0, name: str = "broadcast") -> None:
        sent = np.ascontiguousarray(array).tobytes() if self.rank == root else b""
        what = f"{name}, {_described(array)} from worker {root}"
        found = self._through_first(what, sent, lambda parts: [parts[root]] * self.size, len(sent))
        array[...] = np.frombuffer(found, array.dtype).reshape(array.shape)

    def barrier(self, name: str = "barrier") -> None:
        self._through_first(name, b"", lambda parts: parts, 0)

    def finalize(self) -> None:
        for connection in self._sockets:
            connection.close()
        self._sockets = []

    def _through_first(self, what: str, sent: bytes, answer: Callable[[list[bytes]], list[bytes]], nbytes: int) -> bytes:
        """Send bytes to the first worker, which answers all when it has those of all.

        Args:
            what: names the exchange, and everything about it in which the workers must agree.
            sent: what this worker sends.
            answer: makes of what all have sent what each is sent; called on the first worker.
            nbytes: what this worker has to send at the least.
        """
        if not self._sockets:
            raise RuntimeError(f"{what}: Communicator.finalize() was called; nothing can be exchanged after that")
        begin = perf_counter()
        try:
            found = self._answer(what, sent, answer) if self.rank == 0 else self._ask(what, sent)
        except OSError as error:
            raise RuntimeError(
                f"worker {self.rank} of {self.size}: another worker has ended or cannot be reached in {what}: {error}"
            ) from error
        profiling.note_event(what, "exchange", begin, perf_counter(), bytes=nbytes)
        self.messages += 1
        self.bytes_sent += nbytes
        return found

    def _ask(self, what: str, sent: bytes) -> bytes:
        (first,) = self._sockets
        _send(first, _packed([what.encode(), sent]))
        error, found = _unpacked(_receive(first))
        if error:
            raise RuntimeError(error.decode())
        return found

    def _answer(self, what: str, sent: bytes, answer: Callable[[list[bytes]], list[bytes]]) -> bytes:
        asked = [(what.encode(), sent), *(tuple(_unpacked(_receive(connection))) for connection in self._sockets)]
        alike = all(name == asked[0][0] for name, _ in asked)
        error = "" if alike else unlike_exchanges([name.decode() for name, _ in asked])
        answers = answer([part for _, part in asked]) if alike else [b""] * self.size
        for connection, found in zip(self._sockets, answers[1:], strict=True):
            _send(connection, _packed([error.encode(), found]))
        if error:
            raise RuntimeError(error)
        return answers[0]


# ---- connections ----


def _gathered(rendezvous: Rendezvous) -> list[socket.socket]:
    """The first worker's connections to the others, in the order of their numbers."""
    found: dict[int, socket.socket] = {}
    with _listening(rendezvous) as server:
        server.settimeout(CONNECT_SECONDS)
        while len(found) < rendezvous.size - 1:
            try:
                connection, _ = server.accept()
            except TimeoutError:
                missing = [rank for rank in range(1, rendezvous.size) if rank not in found]
                raise RuntimeError(f"workers {missing} have not come within {CONNECT_SECONDS:.0f} s to {rendezvous}") from None
            rank = _greeted(connection, rendezvous)
            if rank is None or rank in found:
                connection.close()
            else:
                found[rank] = connection
    return [found[rank] for rank in sorted(found)]


def _listening(rendezvous: Rendezvous) -> socket.socket:
    """What the first worker listens with, on the address that the others know and no other.

    Raises:
        RuntimeError: it is not one of this machine, or the port is taken.
    """
    try:
        family, *_ = socket.getaddrinfo(rendezvous.address, rendezvous.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((rendezvous.address, rendezvous.port), family=family, backlog=rendezvous.size)
    except OSError as error:
        raise RuntimeError(
            f"the first worker cannot listen at {rendezvous}: {error}; "
            "MASTER_ADDR must be an address of its machine, MASTER_PORT a free port"
        ) from None


def _greeted(connection: socket.socket, rendezvous: Rendezvous) -> int | None:
    """The number of the worker that has connected; None where it is none of this job."""
    connection.settimeout(GREETING_SECONDS)
    try:
        greeting = _exactly(connection, len(GREETING))
        rank, size = _PLACE.unpack(_exactly(connection, _PLACE.size))
        connection.sendall(GREETING)
    except OSError:
        return None
    _settle(connection)
    return rank if greeting == GREETING and size == rendezvous.size and 0 < rank < size else None


def _connected(rendezvous: Rendezvous) -> socket.socket:
    """A worker's connection to the first, which may be started later."""
    until = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            connection = socket.create_connection((rendezvous.address, rendezvous.port), CONNECT_SECONDS)
            connection.sendall(GREETING + _PLACE.pack(rendezvous.rank, rendezvous.size))
            if _exactly(connection, len(GREETING)) != GREETING:
                raise RuntimeError(f"what listens at {rendezvous} is no worker of this job")
            _settle(connection)
            return connection
        except OSError as error:
            if time.monotonic() > until:
                raise RuntimeError(f"the first worker cannot be reached at {rendezvous}: {error}") from None
            time.sleep(0.05)


def _settle(connection: socket.socket) -> None:
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(_SIZE.pack(len(data)) + data)


def _receive(connection: socket.socket) -> bytes:
    (size,) = _SIZE.unpack(_exactly(connection, _SIZE.size))
    return _exactly(connection, size)


def _exactly(connection: socket.socket, nbytes: int) -> bytes:
    data = bytearray(nbytes)
    view, start = memoryview(data), 0
    while start < nbytes:
        count = connection.recv_into(view[start:])
        if not count:
            raise ConnectionError("the connection was closed")
        start += count
    return bytes(data)


def _packed(parts: Sequence[bytes]) -> bytes:
    return b"".join([struct.pack(f"<q{len(parts)}q", len(parts), *map(len, parts)), *parts])


def _unpacked(data: bytes) -> list[bytes]:
    (count,) = _SIZE.unpack_from(data)
    sizes = struct.unpack_from(f"<{count}q", data, _SIZE.size)
    start, found = _SIZE.size * (1 + count), []
    for size in sizes:
        found.append(data[start : start + size])
        start += size
    return found


def _described(array: Any) -> str:
    return f"{array.size} of {array.dtype.str}"
