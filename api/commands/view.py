"""``cntk view``: the graph of a model file, in Netron."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence


def run(arguments: Sequence[str]) -> int:
    """Show the graph of a model in a browser, by Netron.

    Netron reads the file itself; it knows CNTK's formats and ONNX.  The page is on this machine alone.

    Args:
        arguments: the file; ``--port N``; ``--no-browser`` to print the address only.

    Returns:
        0.

    Raises:
        ImportError: Netron is not installed.
        ValueError: there is no such file.
    """
    parser = argparse.ArgumentParser(prog="cntk view", description="Show the graph of a model in a browser, by Netron.")
    parser.add_argument("model", help="the file: a model of CNTK 2, CNTK 1, or ONNX")
    parser.add_argument("--port", type=int, default=8080, help="port of the page on this machine, %(default)s")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    options = parser.parse_args(arguments)
    if not os.path.isfile(options.model):
        raise ValueError(f"there is no file {options.model!r}")
    try:
        import netron
    except ImportError:
        raise ImportError("graphs are shown by Netron; install it with: pip install netron") from None
    netron.start(options.model, address=("127.0.0.1", options.port), browse=not options.no_browser)
    netron.wait()
    return 0
