"""``cntk serve``: models over HTTP."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from .arguments import Parser, number, port

NEEDED = ("httptools", "msgspec", "prometheus_client", "starlette", "uvicorn")
TOKEN = "CNTK_SERVE_TOKEN"
"""Variable of the environment with the token that requests have to bring; arguments of commands are seen by others."""


def run(arguments: Sequence[str]) -> int:
    """Serve models over HTTP, by the Open Inference Protocol.

    Args:
        arguments: ``NAME=PATH``, ``PATH``, or folders with ``NAME/VERSION/FILE``; ``--help`` lists the options.

    Returns:
        0 when a signal ended it, 1 if it could not start.

    Raises:
        ImportError: what it needs is not installed.
        ValueError: a path does not exist, or an option does not fit.
        OSError: the port is taken.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.ssl_keyfile or options.ssl_keyfile_password or options.ssl_ca_certs) and not options.ssl_certfile:
        parser.error("the other options of TLS need --ssl-certfile, the file with the certificate")
    for name in ("ssl_keyfile", "ssl_certfile", "ssl_ca_certs"):
        if (path := getattr(options, name)) and not os.path.isfile(path):
            raise ValueError(f"--{name.replace('_', '-')}: there is no file {path!r}")
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ImportError(f"{', '.join(missing)} not installed; install what serving needs with: pip install 'opencntk[serve]'")
    from cntk.serving.application import Settings
    from cntk.serving.limits import Limits
    from cntk.serving.server import serve
    from cntk.serving.sources import Sources

    Sources(options.models)
    limits = Limits(
        body=round(options.max_body * 2**20),
        rows=options.max_rows,
        elements=options.max_elements,
        queue=options.max_waiting,
        deadline=options.deadline,
        delay=options.delay / 1000,
        grace=options.grace,
        connections=options.max_connections,
    )
    settings = Settings(options.models, options.outputs, limits, _token(options), options.poll, options.log_requests)
    tls = {
        name: getattr(options, name)
        for name in ("ssl_keyfile", "ssl_certfile", "ssl_keyfile_password", "ssl_ca_certs")
        if getattr(options, name)
    }
    return serve(settings, options.host, options.port, options.workers, options.threads, options.log_level, tls)


def _token(options: Any) -> str | None:
    token = os.environ.get(TOKEN)
    if options.token_file:
        with open(options.token_file, encoding="utf-8") as file:
            token = file.read().strip()
    if token is not None and not (token and token.isascii() and token.isprintable()):
        raise ValueError("the token must be printable ASCII, and not empty")
    return token


def _parser() -> Parser:
    parser = Parser(prog="cntk serve", description="Serve models over HTTP, by the Open Inference Protocol.")
    add = parser.add_argument
    add("models", nargs="+", metavar="MODEL", help="NAME=PATH or PATH of a model file, or a folder with files NAME/VERSION/FILE")
    add("--host", default="127.0.0.1", help="address to listen at, %(default)s; 0.0.0.0 for all of this machine")
    add("--port", type=port, default=8080, help="port, %(default)s; 0 for any that is free")
    add("--workers", type=number(int, 1), default=1, metavar="N", help="processes, %(default)s; each loads all models")
    add("--threads", type=number(int, 1), default=1, metavar="N", help="threads of a product or loop in each process, %(default)s")
    add("--outputs", nargs="+", metavar="NAME", help="results or nodes to give; all results but losses and metrics")
    add(
        "--poll",
        type=number(float, 0),
        default=1.0,
        metavar="SECONDS",
        help="time between looks for changed files, %(default)s; 0 for never",
    )
    add("--delay", type=number(float, 0), default=0.0, metavar="MS", help="milliseconds that a request waits for company, %(default)s")
    add("--max-body", type=number(float, 0), default=16.0, metavar="MIB", help="size of a request, %(default)s MiB")
    add("--max-rows", type=number(int, 1), default=1024, metavar="N", help="rows of a request, and of a batch, %(default)s")
    add("--max-elements", type=number(int, 1), default=2**24, metavar="N", help="numbers of a request's tensors, %(default)s")
    add("--max-waiting", type=number(int, 1), default=8192, metavar="N", help="rows that wait for a model, %(default)s")
    add("--max-connections", type=number(int, 1), default=1000, metavar="N", help="connections at a time, %(default)s")
    add("--deadline", type=number(float, 0), default=30.0, metavar="SECONDS", help="time that a request may take, %(default)s")
    add("--grace", type=number(float, 0), default=30.0, metavar="SECONDS", help="time that requests have to end at SIGTERM, %(default)s")
    add("--token-file", metavar="FILE", help=f"file with the token that requests bring; without, {TOKEN} has it, if anything")
    add("--ssl-keyfile", metavar="FILE", help="private key, for TLS")
    add("--ssl-certfile", metavar="FILE", help="certificate, for TLS")
    add("--ssl-keyfile-password", metavar="TEXT", help="password of the private key")
    add("--ssl-ca-certs", metavar="FILE", help="certificates of those who sign clients' certificates")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="what is logged, %(default)s")
    add("--log-requests", action="store_true", help="log each request for inference")
    return parser
