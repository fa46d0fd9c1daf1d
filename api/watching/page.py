"""A page with the curves, for browsers on this machine: the standard library serves it, and it loads nothing from elsewhere."""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Lock
from typing import Any

from cntk.plugins.progress.chart import Line, Panel, chart
from cntk.plugins.progress.curve import smoothed
from cntk.watching.runs import Runs

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
FILES = {"/": ("page.html", "text/html"), "/page.css": ("page.css", "text/css"), "/page.js": ("page.js", "text/javascript")}
HOSTS = ("127.0.0.1", "localhost")
"""Names that a browser on this machine asks for; pages of others, whose names lead here, are refused."""


class Server(ThreadingHTTPServer):
    """Serves the page on 127.0.0.1.

    Args:
        runs: what is shown; read on at each request for curves.
        port: where; 0 for any that is free.
        smoothing: as for :class:`~cntk.logging.LivePlot`.

    Raises:
        OSError: the port is another program's.
    """

    daemon_threads = True

    def __init__(self, runs: Runs, port: int, smoothing: float) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._runs, self._smoothing = runs, smoothing
        self._lock = Lock()

    def curves(self) -> str:
        """HTML of all curves, as they are now."""
        with self._lock:
            self._runs.refresh()
            return curves_of(self._runs, self._smoothing)


def curves_of(runs: Runs, smoothing: float) -> str:
    """HTML of the curves of runs: a chart a tag, with a line a run."""
    names = runs.names()
    parts = [] if names else [f"<p>No numbers in {escape(runs.folder)} yet.</p>"]
    for tag in sorted(runs.curves):
        lines: list[Line] = []
        for run, curve in sorted(runs.curves[tag].items()):
            points, colour = curve.points(), names.index(run)
            lines += [Line("", points, colour, is_faint=True)] if smoothing else []
            lines.append(Line(run or "run", smoothed(points, smoothing), colour))
        parts.append(f"<figure>{chart([Panel(tag, lines)], 'steps')}</figure>")
    return "".join([*parts, *(f"<p>{escape(note)}</p>" for note in runs.notes)])


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").rpartition(":")[0]
        path = self.path.partition("?")[0]
        if host not in HOSTS:
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", b"this page is for browsers on its own machine")
        elif path == "/curves":
            self._answer(HTTPStatus.OK, "text/html", self.server.curves().encode())
        elif path in FILES:
            name, kind = FILES[path]
            self._answer(HTTPStatus.OK, kind, files("cntk.watching").joinpath(name).read_bytes())
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"there is nothing here")

    def _answer(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: the page asks every other second."""
