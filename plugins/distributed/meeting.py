"""How workers that something else than MPI has started find one another, and connect over sockets.

The first worker listens where ``MASTER_ADDR`` and ``MASTER_PORT`` say, the others on ports of their own; the first tells all where the
others listen, and each connects to those before it.  Who connects has to prove that it has the job's key, which is not sent.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import platform
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...core.common.launch import Rendezvous

GREETING = b"opencntk workers 2\n"
"""What both sides of a connection begin with, before a number that is used once."""

CONNECT_SECONDS = 300.0
"""So long does a worker wait for the others to be started."""

GREETING_SECONDS = 10.0
"""So long may a connection take to say whose it is."""

LINKS = 3
"""Connections between each two workers: one for each of two groups, and one for their watches."""

_NONCE, _PROOF = 16, 32
_PLACE = struct.Struct("<qqq")
_SIZE = struct.Struct("<q")
_LONGEST = 2**24


class Mesh(NamedTuple):
    """The connections of a worker to all others.

    Attributes:
        rank, size: number of this worker, and how many there are.
        hosts: name of each worker's machine.
        links: for each of the :data:`LINKS` the sockets, by the number of the worker that they lead to.
    """

    rank: int
    size: int
    hosts: list[str]
    links: list[dict[int, socket.socket]]

    def name(self, worker: int) -> str:
        """What messages call a worker."""
        return f"worker {worker} of {self.size} on {self.hosts[worker]}"

    def close(self) -> None:
        """Close all connections."""
        for link in self.links:
            for connection in link.values():
                connection.close()


def meet(rendezvous: Rendezvous) -> Mesh:
    """Connect to all other workers of a job.

    Raises:
        RuntimeError: they do not come in :data:`CONNECT_SECONDS`, or are of another job.
    """
    _allow_sockets(LINKS * rendezvous.size)
    links: list[dict[int, socket.socket]] = [{} for _ in range(LINKS)]
    mesh = Mesh(rendezvous.rank, rendezvous.size, [], links)
    until = time.monotonic() + CONNECT_SECONDS
    try:
        if rendezvous.rank == 0:
            with _listening(rendezvous) as server:
                _accept(server, rendezvous, links, range(1, rendezvous.size), until)
                table = _told(rendezvous, links[0])
        else:
            table = _join(rendezvous, links, until)
    except BaseException:
        mesh.close()
        raise
    mesh.hosts.extend(host for _, _, host in table)
    for link in links:
        for connection in link.values():
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return mesh


def _told(rendezvous: Rendezvous, connections: dict[int, socket.socket]) -> list[Any]:
    """What the first worker tells all others: address, port and machine of each."""
    table: list[Any] = [("", 0, platform.node())]
    for worker in range(1, rendezvous.size):
        address = connections[worker].getpeername()[0]
        is_here = ipaddress.ip_address(address.partition("%")[0]).is_loopback
        table.append((rendezvous.address if is_here else address, *_receive(connections[worker])))
    for connection in connections.values():
        _send(connection, table)
    return table


def _join(rendezvous: Rendezvous, links: list[dict[int, socket.socket]], until: float) -> list[Any]:
    """Connect to the first worker and all others; what the first one tells of them."""
    ports = range(rendezvous.port, rendezvous.port + rendezvous.ports)
    port = _connect(rendezvous, links[0], 0, rendezvous.address, ports, 0, until)
    for link in range(1, LINKS):
        _connect(rendezvous, links[link], 0, rendezvous.address, range(port, port + 1), link, until)
    first = links[0][0]
    with socket.create_server((first.getsockname()[0], 0), family=first.family, backlog=LINKS * rendezvous.size) as server:
        _send(first, (server.getsockname()[1], platform.node()))
        first.settimeout(max(until - time.monotonic(), 1))
        table: list[Any] = _receive(first)
        for worker in range(1, rendezvous.rank):
            address, port, _ = table[worker]
            for link in range(LINKS):
                _connect(rendezvous, links[link], worker, address, range(port, port + 1), link, until)
        _accept(server, rendezvous, links, range(rendezvous.rank + 1, rendezvous.size), until)
    return table


# ---- one connection --------------------------------------------------------------------------------


def _listening(rendezvous: Rendezvous) -> socket.socket:
    """What the first worker listens with: on all addresses of its machine if the job has a secret, else on the one that others know.

    Raises:
        RuntimeError: it is not one of this machine, or the port is taken.
    """
    found: OSError | None = None
    for port in range(rendezvous.port, rendezvous.port + rendezvous.ports):
        try:
            family, *_ = socket.getaddrinfo(rendezvous.address, port, type=socket.SOCK_STREAM)[0]
            address = "" if rendezvous.secret else rendezvous.address
            return socket.create_server((address, port), family=family, backlog=LINKS * rendezvous.size)
        except OSError as error:
            found = error
    raise RuntimeError(
        f"the first worker cannot listen at {rendezvous}: {found}; MASTER_ADDR must be an address of its machine, MASTER_PORT a free port"
    ) from None


def _accept(
    server: socket.socket, rendezvous: Rendezvous, links: list[dict[int, socket.socket]], workers: Iterable[int], until: float
) -> None:
    """Wait until all of these workers have connected, on all links; strangers are sent away."""
    missing = {(worker, link) for worker in workers for link in range(LINKS)}
    while missing:
        server.settimeout(max(until - time.monotonic(), 0.01))
        try:
            connection, _ = server.accept()
        except TimeoutError:
            late = sorted({worker for worker, _ in missing})
            raise RuntimeError(f"workers {late} have not come within {CONNECT_SECONDS:.0f} s to {rendezvous}") from None
        place = _greeted(connection, rendezvous)
        if place is None:
            connection.close()
            continue
        worker, size, link = place
        is_expected = size == rendezvous.size and (worker, link) in missing
        connection.sendall(b"\1" if is_expected else b"\0")
        if is_expected:
            missing.remove((worker, link))
            links[link][worker] = connection
        else:
            connection.close()


def _greeted(connection: socket.socket, rendezvous: Rendezvous) -> tuple[int, int, int] | None:
    """Number of the worker that has connected, how many it knows, and the link; None where it has not the job's key."""
    connection.settimeout(GREETING_SECONDS)
    try:
        if _exactly(connection, len(GREETING)) != GREETING:
            return None
        nonces = _exactly(connection, _NONCE) + os.urandom(_NONCE)
        connection.sendall(GREETING + nonces[_NONCE:] + _proof(rendezvous, b"server", nonces))
        place, proof = _exactly(connection, _PLACE.size), _exactly(connection, _PROOF)
    except OSError:
        return None
    return _PLACE.unpack(place) if hmac.compare_digest(proof, _proof(rendezvous, b"client", nonces + place)) else None


def _connect(
    rendezvous: Rendezvous, found: dict[int, socket.socket], worker: int, address: str, ports: range, link: int, until: float
) -> int:
    """Connect to a worker, which may be started later, on one of these ports; returns the port.

    Raises:
        RuntimeError: it does not come in time, or does not know of this one.
    """
    why: Exception | None = None
    while True:
        for port in ports:
            try:
                connection = socket.create_connection((address, port), max(until - time.monotonic(), 0.01))
            except OSError as error:
                why = error
                continue
            connection.settimeout(GREETING_SECONDS)
            try:
                answer = _introduce(connection, rendezvous, link)
            except BaseException as error:
                connection.close()
                if not isinstance(error, OSError):
                    raise
                why = error
                continue
            if answer:
                found[worker] = connection
                return port
            connection.close()
            why = PermissionError("what listens there is no worker of this job, or has another CNTK_SECRET")
            if len(ports) == 1:
                raise RuntimeError(f"worker {worker} cannot be reached at {address}, port {port}: {why}")
        if time.monotonic() > until:
            raise RuntimeError(f"worker {worker} cannot be reached at {address}, port {ports[0]}: {why}")
        time.sleep(0.05)


def _introduce(connection: socket.socket, rendezvous: Rendezvous, link: int) -> bool:
    """Say who connects; whether the other side is of the same job.

    Raises:
        RuntimeError: it is, and has another worker of this number, or knows of another number of workers.
    """
    nonce, place = os.urandom(_NONCE), _PLACE.pack(rendezvous.rank, rendezvous.size, link)
    connection.sendall(GREETING + nonce)
    if _exactly(connection, len(GREETING)) != GREETING:
        return False
    nonces = nonce + _exactly(connection, _NONCE)
    if not hmac.compare_digest(_exactly(connection, _PROOF), _proof(rendezvous, b"server", nonces)):
        return False
    connection.sendall(place + _proof(rendezvous, b"client", nonces + place))
    if _exactly(connection, 1) != b"\1":
        raise RuntimeError(
            f"the others have no place for worker {rendezvous.rank} of {rendezvous.size}: RANK is another worker's too, "
            "or WORLD_SIZE differs"
        )
    return True


def _proof(rendezvous: Rendezvous, side: bytes, said: bytes) -> bytes:
    key = f"{rendezvous.secret}\n{rendezvous.job}".encode()
    return hmac.digest(key, side + said, "sha256")


def _send(connection: socket.socket, what: Any) -> None:
    data = json.dumps(what).encode()
    connection.sendall(_SIZE.pack(len(data)) + data)


def _receive(connection: socket.socket) -> Any:
    (size,) = _SIZE.unpack(_exactly(connection, _SIZE.size))
    if not 0 <= size <= _LONGEST:
        raise ConnectionError(f"{size} bytes were announced")
    return json.loads(_exactly(connection, size))


def _exactly(connection: socket.socket, nbytes: int) -> bytes:
    data = bytearray()
    while len(data) < nbytes:
        part = connection.recv(nbytes - len(data))
        if not part:
            raise ConnectionError("the connection was closed")
        data += part
    return bytes(data)


def _allow_sockets(count: int) -> None:
    """Let this process have so many sockets beside its files, as far as the system does."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
