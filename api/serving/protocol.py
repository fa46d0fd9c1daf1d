"""HTTP as clients speak it: uvicorn's protocol, with limits for what comes before a body, and for clients that stop halfway."""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 2**16
"""Bytes that a request's line and headers may take, of what comes after their first packet."""
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
CUT_OFF = "The request ends before its body does."
NO_TUNNEL = "This server is no proxy."


class Protocol(HttpToolsProtocol):
    """A connection.

    Args:
        patience: seconds that a client has to send the line and the headers of a request.
        arguments: those of uvicorn's protocol.
    """

    def __init__(self, patience: float, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._patience = patience
        self._is_in_head, self._head = False, 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._head += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._stay(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        if not self._is_in_head:
            self._head = 0
            self._stop_waiting()
        elif self._head > HEAD_BYTES:
            if not self._is_answering:
                self.transport.write(TOO_LARGE)
            self.transport.close()
        elif self._timer is None:
            self._wait_for_head()

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more, but may wait for answers; over TLS nothing can be sent any more."""
        if not self._is_answering or self.scheme == "https":
            return False
        if self.cycle.more_body:
            if not (self.pipeline or self.cycle.response_started):
                self.send_400_response(CUT_OFF)
            return False
        self.cycle.keep_alive = False
        return True

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection, also where the client does not read what it was sent."""
        super().timeout_keep_alive_handler()
        self._timer = self.loop.call_later(self._patience, self.transport.abort)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # ---- what the parser tells ----

    def on_message_begin(self) -> None:
        self._is_in_head, self._head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _stay(self, rest: bytes) -> None:
        """Answer a request to change the protocol as one that does not ask, as clients of HTTP/2 expect.

        Args:
            rest: what came behind the head, where the parser has stopped.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.send_400_response(NO_TUNNEL)
            return
        self.parser = httptools.HttpRequestParser(self)
        headers = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self.data_received(b"\r\n".join([method + b" " + self.url + b" HTTP/1.1", *headers, b"", rest]))

    # ---- time ----

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(self._patience, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
