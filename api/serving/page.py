"""The page that shows the models of a server."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
"""The page loads nothing from elsewhere, and is shown in no other."""
FILES = {"/": ("page.html", "text/html"), "/page.css": ("page.css", "text/css"), "/page.js": ("page.js", "text/javascript")}


def routes() -> list[Route]:
    """Where its files are."""
    return [Route(path, _file(name, kind)) for path, (name, kind) in FILES.items()]


def _file(name: str, kind: str) -> Any:
    async def read(request: Request) -> Response:
        content = files("cntk.serving").joinpath(name).read_bytes()
        return Response(content, media_type=kind, headers={**HEADERS, "cache-control": "no-cache"})

    return read
