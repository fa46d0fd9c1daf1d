"""What ``cntk serve`` does with clients that are not as others: raw bytes over sockets."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import numpy as np
import pytest

import cntk as C

pytest.importorskip("uvicorn", reason="what serving needs is not installed")
pytest.importorskip("msgspec", reason="what serving needs is not installed")
pytest.importorskip("starlette", reason="what serving needs is not installed")
pytest.importorskip("httptools", reason="what serving needs is not installed")
pytest.importorskip("prometheus_client", reason="what serving needs is not installed")

from serving import ServerProcess

BODY = json.dumps({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}).encode()
DEADLINE = 2.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("served")
    C.alias(C.input_variable(2, name="x") * 3, "y").save(str(folder / "triple.dnn"))
    options = ("--max-body", "1", "--deadline", str(DEADLINE), "--max-connections", "3")
    with ServerProcess(str(folder / "triple.dnn"), *options, log=folder / "log") as running:
        yield running


def connected(server: ServerProcess) -> socket.socket:
    host, _, port = server.address.partition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def request(body: bytes = BODY, *headers: str, length: int | None = None, close: bool = True) -> bytes:
    lines = ["POST /v2/models/triple/infer HTTP/1.1", "Host: here", f"Content-Length: {len(body) if length is None else length}", *headers]
    lines += ["Connection: close"] if close else []
    return "\r\n".join([*lines, "", ""]).encode() + body


def answered(server: ServerProcess, *parts: bytes, half: bool = False) -> bytes:
    """What comes for these bytes until the server closes the connection."""
    with connected(server) as client:
        for part in parts:
            client.sendall(part)
        if half:
            client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(2**16), b""))


def result(answer: bytes) -> list[float]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), answer
    found: list[float] = json.loads(body)["outputs"][0]["data"]
    return found


def test_clients_that_stop_sending_are_answered(server: ServerProcess) -> None:
    assert result(answered(server, request(close=False), half=True)) == [3, 6]
    both = answered(server, request(close=False) + request(close=False), half=True)
    assert both.count(b"HTTP/1.1 200 ") == both.count(b"[3.0,6.0]") == 2
    assert answered(server, request(length=1000), half=True).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_other_protocols_are_declined(server: ServerProcess, protocol: str) -> None:
    upgrade = ("Upgrade: " + protocol, "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA")
    assert result(answered(server, request(BODY, "Connection: Upgrade, HTTP2-Settings", *upgrade, close=False), half=True)) == [3, 6]
    head = request(b"", "Connection: Upgrade, HTTP2-Settings", *upgrade, length=len(BODY), close=False)
    assert result(answered(server, head, BODY, half=True)) == [3, 6]
    assert answered(server, b"CONNECT there:80 HTTP/1.1\r\nHost: there:80\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_chunks_are_put_together(server: ServerProcess) -> None:
    head = request(b"", "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (BODY[start : start + 7] for start in range(0, len(BODY), 7))]
    assert result(answered(server, head, *chunks, b"0\r\n\r\n")) == [3, 6]
    assert answered(server, head, b"zz\r\n").startswith(b"HTTP/1.1 400 ")


def test_bodies_of_any_size_are_refused_before_the_client_has_sent_all(server: ServerProcess) -> None:
    large = np.zeros(20 * 2**20, np.uint8).tobytes()
    answer = answered(server, request(large))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"1048576 bytes" in answer
    chunked = request(b"", "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")
    assert answered(server, chunked, b"%x\r\n" % len(large), large, b"\r\n0\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    expecting = request(b"", "Expect: 100-continue", length=len(large))
    with connected(server) as client:
        client.sendall(expecting)
        assert client.recv(2**16).startswith(b"HTTP/1.1 413 ")


def test_headers_without_end_are_refused(server: ServerProcess) -> None:
    def outcome() -> bytes:
        with connected(server) as client:
            client.sendall(b"GET /v2 HTTP/1.1\r\n")
            try:
                for _ in range(1000):
                    client.sendall(b"x-more: " + b"1" * 1000 + b"\r\n")
                return client.recv(2**16)
            except ConnectionError:  # what was still being sent has kept the answer from arriving
                return b"closed"

    assert outcome().startswith((b"HTTP/1.1 431 ", b"closed"))
    assert result(answered(server, request(BODY, "X-More: " + "1" * 10_000))) == [3, 6]


def test_slow_clients_hold_no_connection_for_ever(server: ServerProcess) -> None:
    begin = time.monotonic()
    silent, slow, body = connected(server), connected(server), connected(server)
    with silent, slow, body:
        slow.sendall(b"POST /v2/models")
        body.sendall(request(length=len(BODY) + 1))
        refused = answered(server, request())
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert silent.recv(1) == slow.recv(1) == b""
        assert body.recv(2**16).startswith(b"HTTP/1.1 503 ")
    assert DEADLINE - 1 < time.monotonic() - begin < DEADLINE + 10
    assert result(answered(server, request())) == [3, 6]
