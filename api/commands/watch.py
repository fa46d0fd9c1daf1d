"""``cntk watch``: the curves of runs, while they train."""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import sys
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress

from cntk.watching.page import Server
from cntk.watching.runs import Runs
from cntk.watching.terminal import COLOURS, Piece, drawn, plain

from .arguments import Parser, number, port


def run(arguments: Sequence[str]) -> int:
    """Show the curves of runs, in a terminal or on a page, while they train.

    Args:
        arguments: the folder with event files, as ``TensorBoardProgressWriter`` writes them, or with folders of runs; ``--page`` for a
            page on this machine; ``--once`` to print the curves as they are.

    Returns:
        0, once it has been interrupted.

    Raises:
        ValueError: there is no such folder, or the port is another program's.

    >>> import tempfile
    >>> from cntk.commands.watch import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = C.logging.TensorBoardProgressWriter(log_dir=folder)
    ...     for step in range(1, 40):
    ...         writer.write_value('loss', 1 / step, step)
    ...     run([folder, '--once', '--width', '40'])
    loss  0.02564
             1 ...
    ...
       0.02564 ...
               1                         39
    <BLANKLINE>
    0
    """
    parser = Parser(prog="cntk watch", description="Show the curves of runs while they train, until Ctrl-C.")
    parser.add_argument("folder", help="where TensorBoardProgressWriter writes; each folder in it is a run, too")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--page", action="store_true", help="show them on a page in a browser on this machine")
    parser.add_argument("--port", type=port, default=6007, help="port of the page, %(default)s; 0 for any that is free")
    parser.add_argument("--no-browser", action="store_true", help="print the page's address, and open no browser")
    ways.add_argument("--once", action="store_true", help="print the curves as they are; so it is where the output is no terminal")
    parser.add_argument("--seconds", type=float, default=2, help="between two looks at the files in a terminal, %(default)s")
    parser.add_argument("--smoothing", type=float, default=0, help="from 0, %(default)s, for the numbers themselves to less than 1")
    parser.add_argument("--width", type=number(int, 1), help="letters in a line, by default those of the terminal")
    options = parser.parse_args(arguments)
    if not 0 <= options.smoothing < 1:
        parser.error(f"--smoothing must be from 0 to less than 1, got {options.smoothing:g}")
    if not options.seconds > 0:
        parser.error(f"--seconds must be more than 0, got {options.seconds:g}")
    if os.path.isfile(options.folder):
        raise ValueError(f"{options.folder!r} is a file; expected the folder that it is in")
    if not os.path.isdir(options.folder):
        raise ValueError(f"there is no folder {options.folder!r}; a TensorBoardProgressWriter(log_dir=...) makes one when it first writes")
    runs = Runs(options.folder)
    with suppress(KeyboardInterrupt):
        if options.page:
            _serve(runs, options)
        else:
            _show(runs, options)
    return 0


def _serve(runs: Runs, options: argparse.Namespace) -> None:
    try:
        server = Server(runs, options.port, options.smoothing)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise ValueError(f"port {options.port} is in use; --port N chooses another, --port 0 one that is free") from None
    address = f"http://127.0.0.1:{server.server_port}/"
    print(f"{address} shows {runs.folder}, until Ctrl-C", flush=True)
    if not options.no_browser:
        webbrowser.open(address)
    with server:
        server.serve_forever()


def _show(runs: Runs, options: argparse.Namespace) -> None:
    encoding = sys.stdout.encoding or "utf-8"

    def lines() -> list[list[Piece]]:
        runs.refresh()
        return drawn(runs, options.width or shutil.get_terminal_size().columns, options.smoothing)

    if options.once or not sys.stdout.isatty():
        print(plain(lines(), encoding))
        return
    try:
        from rich.live import Live
        from rich.text import Text
    except ImportError:
        while True:
            print(f"\x1b[H\x1b[J{plain(lines(), encoding)}", flush=True)
            time.sleep(options.seconds)

    def text() -> Text:
        made = Text(no_wrap=True)
        for line in lines():
            for piece in [*line, Piece("\n")]:
                made.append(piece.text, None if piece.colour is None else COLOURS[piece.colour % len(COLOURS)])
        return made

    with Live(text(), auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            time.sleep(options.seconds)
            live.update(text(), refresh=True)
