"""The server as a process, or several: uvicorn, and the way it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import tempfile
from functools import partial
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from cntk.core.machine.threads import set_threads
from cntk.serving import logs
from cntk.serving.application import Application, Settings
from cntk.serving.metrics import FOLDER
from cntk.serving.protocol import Protocol

log = logging.getLogger("cntk.serving")

LEAVING = 0.5
"""Seconds between saying that the server is not ready and closing its port, in which clients and balancers of load learn of it."""
HEALTH = 30
"""Seconds after which a worker that does not answer is replaced."""
ENDING = (signal.SIGTERM, signal.SIGINT)


class Worker(Application):
    """The application in a process of its own, which it prepares."""

    def __init__(self, settings: Settings, threads: int, log_level: str) -> None:
        super().__init__(settings)
        logs.begin(log_level)
        set_threads(threads)

    async def start(self) -> None:
        """Load the models, and leave when a signal comes."""
        await super().start()
        loop = asyncio.get_running_loop()
        for number in ENDING:
            end: Any = signal.getsignal(number)
            signal.signal(number, partial(self._leave, loop, end))
        log.info("ready", extra={"fields": {"models": [f"{one.source.name}/{one.source.version}" for one in self.repository.all()]}})

    def _leave(self, loop: asyncio.AbstractEventLoop, end: Any, number: int, frame: Any) -> None:
        """Tell clients to go elsewhere, and have uvicorn end a little later; at once at the second signal."""
        if self.is_draining:
            end(number, frame)
            return
        self.is_draining = True
        log.info("leaving", extra={"fields": {"signal": signal.Signals(number).name}})
        loop.call_soon_threadsafe(loop.call_later, LEAVING, end, number, frame)

    async def stop(self) -> None:
        """Compute what waits."""
        await super().stop()
        log.info("stopped")


def serve(settings: Settings, host: str, port: int, workers: int, threads: int, log_level: str, tls: dict[str, Any]) -> int:
    """Serve until a signal ends it.

    Args:
        settings: what to serve.
        host, port: where.
        workers: processes.
        threads: threads of a product or loop, in each process; with several, products wait for one another where clients need processors.
        log_level: level of what is logged.
        tls: uvicorn's options ``ssl_*``.

    Returns:
        0, or 1 if the server could not start.
    """
    logs.begin(log_level)
    protocol: Any = partial(Protocol, settings.limits.deadline)
    config = uvicorn.Config(
        partial(Worker, settings, threads, log_level),
        factory=True,
        host=host,
        port=port,
        workers=workers,
        http=protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=settings.limits.connections + 1,  # that many are refused, the last one among them
        proxy_headers=False,
        timeout_worker_healthcheck=HEALTH,
        timeout_graceful_shutdown=max(1, round(settings.limits.grace)),
        **tls,
    )
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=config.backlog)
    listening.set_inheritable(True)
    shown = f"[{host}]" if ":" in host else host
    address = f"{'https' if config.is_ssl else 'http'}://{shown}:{listening.getsockname()[1]}"
    log.info("listening", extra={"fields": {"address": address, "workers": workers, "threads": threads}})
    for number in ENDING:
        signal.signal(number, lambda *_: None)  # uvicorn raises it once more when it has ended
    with listening:
        return _one(config, listening) if workers == 1 else _several(config, listening)


def _one(config: uvicorn.Config, listening: socket.socket) -> int:
    server = uvicorn.Server(config)
    try:
        server.run(sockets=[listening])
    except SystemExit:
        return 1
    return 0 if server.started else 1


def _several(config: uvicorn.Config, listening: socket.socket) -> int:
    with tempfile.TemporaryDirectory(prefix="cntk-serve-") as folder:
        os.environ[FOLDER] = folder
        workers = Multiprocess(config, [listening])
        workers.run()
        return int(any(process.exitcode == STARTUP_FAILURE for process in workers.processes))
