"""The server as an ASGI application."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from starlette.applications import Starlette

from cntk.serving.limits import Limits
from cntk.serving.metrics import Metrics
from cntk.serving.refusals import BadTensor, Refusal
from cntk.serving.repository import Repository, Version
from cntk.serving.requests import read_request
from cntk.serving.responses import BINARY, JSON, write_response
from cntk.serving.routes import routes_of
from cntk.serving.sources import Sources

log = logging.getLogger("cntk.serving")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_INFER = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?/infer")
_OPEN = re.compile(r"/|/page\.(?:css|js)|/v2/health/(?:live|ready)")
"""What is told to those without a token: whether the server works, and a page without data."""
_NO_BODY = b""


class Settings(NamedTuple):
    """What a server is told.

    Attributes:
        models: ``NAME=PATH``, ``PATH`` or folders.
        outputs: results or nodes to give, for all models; None for all results but losses and metrics.
        limits: limits.
        token: what requests have to bring; None for nothing.
        poll: seconds between looks for changed files; 0 for never.
        log_requests: whether to log each request.
    """

    models: Sequence[str]
    outputs: Sequence[str] | None = None
    limits: Limits = Limits()
    token: str | None = None
    poll: float = 1.0
    log_requests: bool = False


class Application:
    """Serves models by the Open Inference Protocol; any ASGI server runs it.

    Args:
        settings: what to serve, and how.

    Raises:
        ValueError: there is nothing to serve.

    Attributes:
        repository: the models.
        metrics: what is counted.
        is_draining: whether clients are told to go elsewhere.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self._limits = settings, settings.limits
        self.metrics = Metrics()
        self.repository = Repository(Sources(settings.models), settings.outputs, settings.limits, self.metrics)
        self.is_draining = False
        self._rest = Starlette(routes=routes_of(self), exception_handlers={404: _not_found, 405: _wrong_method})
        self._token = None if settings.token is None else b"Bearer " + settings.token.encode()
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether requests are to be sent here."""
        return self.repository.is_ready and not self.is_draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send if not self.is_draining else _closing(send))

    # ---- beginning and end ----

    async def start(self) -> None:
        """Load the models, and watch their files.

        Raises:
            ValueError: they cannot be loaded.
        """
        await self.repository.start()
        if self.settings.poll:
            self._watching = asyncio.create_task(self.repository.watch(self.settings.poll))

    async def stop(self) -> None:
        """Compute what waits."""
        if self._watching is not None:
            self._watching.cancel()
        await self.repository.drain()
        self.metrics.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except (ValueError, OSError) as error:
            log.error("server cannot start", extra={"fields": {"error": str(error)}})
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    # ---- requests ----

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if self._token is not None and not _OPEN.fullmatch(path) and not self._is_allowed(scope):
            refusal = Refusal(401, "this server wants a token: send the header 'Authorization: Bearer TOKEN'")
            await _respond(send, 401, refusal.body, JSON, [(b"www-authenticate", b"Bearer")])
            return
        match = _INFER.fullmatch(path) if scope["method"] == "POST" else None
        if match is None:
            await self._rest(scope, receive, send)
        else:
            await self._infer(scope, receive, send, match[1], match[2])

    def _is_allowed(self, scope: Scope) -> bool:
        given = _header(scope, b"authorization") or b""
        return self._token is not None and hmac.compare_digest(given, self._token)

    async def _infer(self, scope: Scope, receive: Receive, send: Send, name: str, number: str | None) -> None:
        begin = time.perf_counter()
        model, version, status = "", "", 200
        try:
            async with asyncio.timeout(self._limits.deadline):
                body = await self._body(scope, receive)
                found = self.repository.find(name, number)
                model, version = found.source.name, found.source.version
                response = await self._computed(found, body, _header(scope, b"inference-header-content-length"))
            if response.header_length is None:
                await _respond(send, 200, response.body, JSON, [])
            else:
                headers = [(b"inference-header-content-length", b"%d" % response.header_length)]
                await _respond(send, 200, response.body, BINARY, headers)
        except _Gone:
            status = 499
        except _TooLarge as refusal:
            status = refusal.status
            await self._refuse_large(receive, send, refusal)
        except Refusal as refusal:
            status = refusal.status
            await _respond(send, status, refusal.body, JSON, refusal.headers)
        except TimeoutError:
            status = 503
            late = Refusal(status, f"the request took longer than the {self._limits.deadline:g} seconds it may", retry_after=1)
            await _respond(send, status, late.body, JSON, late.headers)
        except Exception:
            status = 500
            log.exception("request failed", extra={"fields": {"model": name}})
            await _respond(send, status, Refusal(500, "the server failed; its log says why").body, JSON, [])
        seconds = time.perf_counter() - begin
        self.metrics.answered(model, version, status, seconds)
        if self.settings.log_requests:
            fields = {
                "model": name,
                "version": version,
                "status": status,
                "seconds": round(seconds, 6),
                "client": (scope["client"] or [""])[0],
            }
            log.info("request", extra={"fields": fields})

    async def _computed(self, version: Version, body: bytes, header_length: bytes | None) -> Any:
        """The response to a request.

        Raises:
            Refusal: it cannot be answered.
        """
        served = version.served
        try:
            request = read_request(body, header_length, self._limits)
            asked = served.check(request)
        except BadTensor as error:
            raise served.refusal(error) from None
        try:
            results = await version.batcher.compute(asked.data, asked.rows, asked.kind, asked.size)
        except (ValueError, TypeError) as error:
            raise Refusal(422, f"the model cannot compute this: {error}") from None
        return write_response(request, version.source.name, version.source.version, results)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The bytes of a request.

        Raises:
            Refusal: they are too many, or compressed.
        """
        encoding = (_header(scope, b"content-encoding") or b"identity").decode("latin-1")
        if encoding != "identity":
            raise Refusal(415, f"the request is compressed, by {encoding!r:.40}; send it as it is")
        limit, parts = self._limits.body, []
        size = 0 if (announced := _header(scope, b"content-length")) is None else int(announced)
        if size > limit:
            raise _TooLarge(limit)
        size, is_whole = 0, False
        while not is_whole:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            part = message.get("body", _NO_BODY)
            size, is_whole = size + len(part), not message.get("more_body", False)
            if size > limit:
                raise _TooLarge(limit)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _refuse_large(self, receive: Receive, send: Send, refusal: Refusal) -> None:
        """Refuse a request, and let the client send the rest of it: many read no answer before they have."""
        await _respond(send, refusal.status, refusal.body, JSON, [(b"connection", b"close")], is_last=False)
        message: MutableMapping[str, Any] = {"more_body": True}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.deadline):
                while message.get("more_body", False):
                    message = await receive()
        with suppress(OSError):
            await send({"type": "http.response.body"})


class _Gone(Exception):
    """The client has gone."""


class _TooLarge(Refusal):
    """A request with too many bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the request has more than the {limit} bytes that this server takes")


def _header(scope: Scope, wanted: bytes) -> bytes | None:
    for name, value in scope["headers"]:
        if name == wanted:
            return value
    return None


async def _respond(
    send: Send, status: int, body: bytes, content_type: bytes, headers: list[tuple[bytes, bytes]], is_last: bool = True
) -> None:
    length = (b"content-length", b"%d" % len(body))
    with suppress(OSError):  # a client that has gone
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", content_type), length, *headers]})
        await send({"type": "http.response.body", "body": body, "more_body": not is_last})


def _closing(send: Send) -> Send:
    """Tells clients to send what comes next elsewhere."""

    async def closing(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"connection", b"close")]
        await send(message)

    return closing


def _not_found(request: Any, error: Exception) -> Any:
    from cntk.serving.routes import refused

    return refused(
        Refusal(404, f"there is nothing at {request.url.path[:200]!r}; models are at /v2/models/NAME, and /openapi.json says more")
    )


def _wrong_method(request: Any, error: Any) -> Any:
    from cntk.serving.routes import refused

    refusal = Refusal(405, f"{request.method} is not for {request.url.path[:200]!r}; infer takes POST, the rest GET")
    response = refused(refusal)
    response.headers.update(error.headers or {"Allow": "POST"})
    return response
