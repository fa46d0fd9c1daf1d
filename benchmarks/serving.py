"""Requests a second of ``cntk serve``, JSON and binary, and how long one takes beside ``eval``; a hundredth of the answers is checked.

    python benchmarks/serving.py [--requests 20000] [--rounds 3]

The model is a dense network, 784-200-10, of which each request asks for one row.  Server and client have a process each, and share the
processors; the client writes and reads bytes, so that the server is what is measured.  The floor beside it is uvicorn with an application
that reads the same requests, computes nothing, and always gives one answer.
"""

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import cntk as C

HOST = "127.0.0.1"
CONNECTIONS = 1, 16, 64
HIDDEN, CLASSES, INPUTS = 200, 10, 784
FLOOR_NUMBERS = np.arange(CLASSES, dtype=np.float32) / CLASSES
FLOOR_ANSWER = json.dumps({"model_name": "mlp", "outputs": [{"name": "z", "data": FLOOR_NUMBERS.tolist()}]}).encode()
EXACT = 1e-6
"""How far an answer may be from what ``eval`` gives: rows of a minibatch are not rounded as one row is."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Requests a second of cntk serve.")
    parser.add_argument("--requests", type=int, default=20_000, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    x = C.input_variable(INPUTS, name="x")
    model = C.layers.Sequential([C.layers.Dense(HIDDEN, activation=C.relu), C.layers.Dense(CLASSES, name="z")])(x)
    row = np.random.default_rng(0).random((1, INPUTS), np.float32)
    print(f"eval of a row: {1e3 * statistics.median(timed_eval(model, row)):.3f} ms")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mlp.dnn")
        model.save(path)
        port = free_port()
        ours = ["cntk", "serve", f"mlp={path}", "--host", HOST, "--port", str(port)]
        floor_port = free_port()
        floor = ["uvicorn", "--app-dir", str(Path(__file__).parent), "serving:floor", "--host", HOST, "--port", str(floor_port)]
        begin = time.perf_counter()
        with started(ours, port):
            print(f"start to the first ready answer: {time.perf_counter() - begin:.2f} s")
            with started([*floor, "--no-access-log"], floor_port):
                print("connections  kind    server  requests a second  half within  99 % within")
                for connections in CONNECTIONS:
                    for kind, request in (("JSON", json_request(row)), ("binary", binary_request(row))):
                        is_binary = kind == "binary"
                        for _ in range(options.rounds):
                            load = Load(request, model.eval(row), is_binary)
                            report(f"{connections:11}  {kind:6}  cntk  ", load, asyncio.run(load.run(port, connections, options.requests)))
                            load = Load(request, FLOOR_NUMBERS, False)
                            seconds = asyncio.run(load.run(floor_port, connections, options.requests))
                            report(f"{connections:11}  {kind:6}  floor ", load, seconds)


def report(row: str, load: "Load", seconds: float) -> None:
    """Print a row of the table."""
    half, most = np.percentile(load.seconds, [50, 99]) * 1e3
    print(f"{row}  {len(load.seconds) / seconds:17,.0f}  {half:8.3f} ms  {most:8.3f} ms", flush=True)


@contextmanager
def started(module: list[str], port: int) -> Iterator[None]:
    """A server, ``python -m MODULE``, that listens at the port."""
    server = subprocess.Popen([sys.executable, "-m", *module], stderr=subprocess.DEVNULL)
    try:
        wait_until_ready(port, server)
        yield
    finally:
        server.terminate()
        server.wait()


async def floor(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that answers all requests alike."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(FLOOR_ANSWER))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": FLOOR_ANSWER})


def timed_eval(model: C.Function, row: np.ndarray) -> list[float]:
    """Seconds that evaluating a row takes, again and again."""
    found = []
    for _ in range(2000):
        begin = time.perf_counter()
        model.eval(row)
        found.append(time.perf_counter() - begin)
    return found[1000:]


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


def wait_until_ready(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server says that it is ready.

    Raises:
        RuntimeError: it ended, or a minute has passed.
    """
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://{HOST}:{port}/v2/health/ready", timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.01)
    raise RuntimeError("the server is not ready; run the command by hand to see why: cntk serve mlp=model.dnn")


def json_request(row: np.ndarray) -> bytes:
    """A request whose numbers are text."""
    tensor = {"name": "x", "shape": row.shape, "datatype": "FP32", "data": row.ravel().tolist()}
    return _request(json.dumps({"inputs": [tensor]}).encode())


def binary_request(row: np.ndarray) -> bytes:
    """A request whose numbers, and those of the answer, are their bytes."""
    tensor = {"name": "x", "shape": row.shape, "datatype": "FP32", "parameters": {"binary_data_size": row.nbytes}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return _request(head + row.tobytes(), f"Inference-Header-Content-Length: {len(head)}\r\n")


def _request(body: bytes, headers: str = "") -> bytes:
    return f"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: {HOST}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Load:
    """Connections that each send a request as soon as the one before is answered.

    Args:
        request: what all send.
        expected: the numbers of each answer.
        is_binary: whether answers end with the numbers' bytes.

    Attributes:
        seconds: how long each took.
    """

    def __init__(self, request: bytes, expected: np.ndarray, is_binary: bool) -> None:
        self.request, self.expected, self.is_binary = request, expected, is_binary
        self.seconds: list[float] = []
        self._left = 0

    async def run(self, port: int, connections: int, requests: int) -> float:
        """Send so many requests, and return the seconds that all took."""
        self._left = requests
        begin = time.perf_counter()
        await asyncio.gather(*(self._connection(port) for _ in range(connections)))
        return time.perf_counter() - begin

    async def _connection(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        transport, _ = await loop.create_connection(lambda: _Connection(self, done), HOST, port)
        try:
            await done
        finally:
            transport.close()

    def next(self) -> bytes | None:
        """What to send next; None if that is enough."""
        self._left -= 1
        return self.request if self._left >= 0 else None

    def check(self, body: bytes) -> None:
        """Refuse a wrong answer."""
        if self.is_binary:
            found = np.frombuffer(body[-self.expected.nbytes :], np.float32)
        else:
            found = np.array(json.loads(body)["outputs"][0]["data"], np.float32)
        np.testing.assert_allclose(found, self.expected.ravel(), rtol=EXACT, atol=EXACT)


class _Connection(asyncio.Protocol):
    def __init__(self, load: Load, done: asyncio.Future[None]) -> None:
        self._load, self._done, self._received, self._begin = load, done, b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = self._load.next()
        if request is None:
            self._done.set_result(None)
            return
        self._begin = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < _length_of(head):
            return
        self._load.seconds.append(time.perf_counter() - self._begin)
        try:
            if not head.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(f"the server answers {head[:40]!r} {body[:200]!r}")
            if len(self._load.seconds) % 100 == 1:  # the client's own work is not what is measured
                self._load.check(body)
        except (RuntimeError, AssertionError) as error:
            self._done.set_exception(error)
            return
        self._received = b""
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or ConnectionResetError("the server has closed the connection"))


def _length_of(head: bytes) -> int:
    start = head.lower().index(b"\r\ncontent-length:") + len(b"\r\ncontent-length:")
    return int(head[start : start + 20].split(b"\r\n")[0])


if __name__ == "__main__":
    main()
