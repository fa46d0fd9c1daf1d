"""What commands have in common: their parser of arguments, the types of some, and files that they read."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

PORTS = 2**16


class Parser(argparse.ArgumentParser):
    """A parser that knows what a misspelt option was meant to be.

    >>> from cntk.commands.arguments import Parser
    >>> parser = Parser(prog="cntk peek")
    >>> _ = parser.add_argument("--json", action="store_true")
    >>> parser.parse_args(["--json"]).json
    True
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As ``argparse`` does, but a misspelt option ends the program with what it was meant to be."""
        found, unknown = super().parse_known_args(args, namespace)
        options = [option for option in self._option_string_actions if option.startswith("--")]
        for word in unknown:
            near = get_close_matches(word.partition("=")[0], options, 1) if word.startswith("--") else []
            if near:
                self.error(f"there is no option {word.partition('=')[0]}; did you mean {near[0]}?")
        return found, unknown


def port(text: str) -> int:
    """A port, as ``--port`` takes it.

    >>> from cntk.commands.arguments import port
    >>> port("8080")
    8080
    """
    if not text.isdecimal() or int(text) >= PORTS:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {PORTS - 1}, got {text!r}")
    return int(text)


def number(kind: Callable[[str], Any], least: float) -> Callable[[str], Any]:
    """The type of an argument that is a number and not less than *least*.

    >>> from cntk.commands.arguments import number
    >>> number(int, 1)("3")
    3
    """

    def converted(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not value >= least:
            raise argparse.ArgumentTypeError(f"expected {'a whole number' if kind is int else 'a number'} from {least} on, got {text!r}")
        return value

    return converted


def same_file(first: str, second: str) -> bool:
    """Whether two paths are of one file that exists.

    >>> from cntk.commands.arguments import same_file
    >>> same_file(".", "missing")
    False
    """
    return os.path.exists(first) and os.path.exists(second) and os.path.samefile(first, second)


def text_in(path: str) -> str:
    """The text of a file.

    Raises:
        ValueError: it is not a text.
        OSError: it cannot be read.

    >>> import pathlib, tempfile
    >>> from cntk.commands.arguments import text_in
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("node1")
    ...     text_in(str(pathlib.Path(folder, "a.txt")))
    'node1'
    """
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path!r} is not a text in UTF-8: byte {error.start} is none of one") from None
