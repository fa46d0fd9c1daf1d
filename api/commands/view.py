"""``cntk view``: the graph of a model file, in Netron."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from .arguments import Parser, port


def run(arguments: Sequence[str]) -> int:
    """Show the graph of a model in a browser, by Netron.

    Netron reads the file itself; it knows CNTK's formats and ONNX.  The page is on this machine alone.

    Args:
        arguments: the file; ``--port N``; ``--no-browser`` to print the address only.

    Returns:
        0, once it has been interrupted.

    Raises:
        ImportError: Netron is not installed.
        ValueError: there is no such file, or the port is another program's.
    """
    parser = Parser(prog="cntk view", description="Show the graph of a model in a browser, by Netron, until Ctrl-C.")
    parser.add_argument("model", help="the file: a model of CNTK 2, CNTK 1, or ONNX")
    parser.add_argument("--port", type=port, default=8080, help="port of the page on this machine, %(default)s; 0 for any that is free")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    options = parser.parse_args(arguments)
    if os.path.isdir(options.model):
        raise ValueError(f"{options.model!r} is a directory; expected the path of a file in it")
    if not os.path.exists(options.model):
        raise ValueError(f"there is no file {options.model!r}")
    try:
        import netron
    except ImportError:
        raise ImportError("graphs are shown by Netron; install it with: pip install netron") from None
    try:
        netron.start(options.model, address=("127.0.0.1", options.port), browse=not options.no_browser)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise ValueError(f"port {options.port} is in use; --port N chooses another, --port 0 one that is free") from None
    netron.wait()
    return 0
