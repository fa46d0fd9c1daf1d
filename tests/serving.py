"""Servers for tests: in this process without a network, and as processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

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
        self.run(self.application.start())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.run(self.application.stop())
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
