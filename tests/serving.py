"""Servers for tests: in this process without a network, and as processes."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from cntk.serving.application import Application, Settings


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class InProcess:
    """An application on a loop of its own, and requests to it without a network.

    Args:
        settings: of the application.
    """

    def __init__(self, settings: Settings) -> None:
        self._loop = asyncio.new_event_loop()
        self.application = self.run(_made(settings))

    def __enter__(self) -> InProcess:
        try:
            self.run(self.application.start())
        except ValueError:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.run(self.application.stop())
        self._close()

    def _close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def run(self, awaitable: Any) -> Any:
        """What something that is awaited gives."""
        return self._loop.run_until_complete(awaitable)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask("GET", path, b"", headers)

    def infer(self, path: str, body: bytes | dict[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
        return self.run(self.infer_later(path, body, headers))

    async def infer_later(self, path: str, body: bytes | dict[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
        """Several of these may be awaited together."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.send("POST", f"/v2/models/{path}/infer", [data], headers)

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        return self.run(self.send(method, path, [body], headers))

    async def send(self, method: str, path: str, parts: Sequence[bytes], headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request whose body comes in parts."""
        names = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        scope = {"type": "http", "method": method, "path": path, "headers": names, "client": ("test", 1), "query_string": b""}
        scope |= {"scheme": "http", "server": ("test", 80), "root_path": "", "raw_path": path.encode(), "http_version": "1.1"}
        coming = [{"type": "http.request", "body": part, "more_body": i + 1 < len(parts)} for i, part in enumerate(parts)]
        sent: list[Any] = []

        async def receive() -> Any:
            return coming.pop(0) if coming else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.application(scope, receive, send)
        start, *rest = sent
        given = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], given, b"".join(message.get("body", b"") for message in rest))


async def _made(settings: Settings) -> Application:
    return Application(settings)


class ServerProcess:
    """``cntk serve`` on a free port.

    Args:
        arguments: of the command.
        log: file that gets its log.
        environment: variables.
    """

    def __init__(self, *arguments: str, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        self._file = log.open("wb")
        self.begin = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cntk", "serve", *arguments, "--port", "0"],
            stderr=self._file,
            env={**os.environ, **(environment or {})},
        )

    def __enter__(self) -> ServerProcess:
        self.wait_for("ready")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._file.close()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What it has logged."""
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines() if line.startswith("{")]

    @property
    def address(self) -> str:
        """Host and port."""
        listening = next(event for event in self.events if event["event"] == "listening")
        return re.sub(r"^https?://", "", str(listening["address"]))

    def wait_for(self, event: str, times: int = 1, seconds: float = 60) -> None:
        """Wait until it has logged an event so often."""
        end = time.monotonic() + seconds
        while sum(line["event"] == event for line in self.events) < times:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no {event!r} from the server, whose log is:\n{self.log.read_text('utf-8')}")
            time.sleep(0.02)


def binary(data: Any) -> tuple[bytes, dict[str, str]]:
    tensor = {"name": "x", "shape": data.shape, "datatype": "FP32", "parameters": {"binary_data_size": data.nbytes}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return head + data.tobytes(), {"Inference-Header-Content-Length": str(len(head))}


class Client(threading.Thread):
    """Sends requests one after another, until it is told to stop or the server tells it to go elsewhere.

    Attributes:
        answers: the data of each request, and what came for it.
        lost: requests that were sent and not answered.
        refused: answers that are no results.
    """

    def __init__(self, address: str, model: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._address, self._model, self._random = address, model, np.random.default_rng(seed)
        self.answers: list[tuple[Any, Any]] = []
        self.lost: list[Exception] = []
        self.refused: list[bytes] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=20)
        try:
            while not self.stopping.is_set():
                data = self._random.random((int(self._random.integers(1, 4)), 784), np.float32)
                try:
                    connection.request("POST", f"/v2/models/{self._model}/infer", *binary(data))
                    answer = connection.getresponse()
                    body = answer.read()
                except OSError as error:
                    self.lost.append(error)
                    return
                if answer.status != 200:
                    self.refused.append(body)
                    return
                size = int(answer.headers["inference-header-content-length"])
                self.answers.append((data, np.frombuffer(body[size:], np.float32).reshape(-1, 10)))
                if answer.headers.get("connection") == "close":
                    return
        finally:
            connection.close()
