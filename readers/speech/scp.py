"""Script files: lists of utterances, ``name=archive[first,last]`` a line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

NEXT_TO_LIST = ".../"
"""Beginning of a path that starts in the folder of the list."""

_FRAMES = re.compile(r"([^\[\]]+)(?:\[ *(\d{1,9}) *, *(\d{1,9}) *\])?", re.ASCII)


class Entry(NamedTuple):
    """A line of a script file.

    Attributes:
        name: the utterance's name; the path if it has none.
        path: the file.
        first, last: its frames there, the last one included; None for all.
        line: number of the line, from 1.
    """

    name: str
    path: str
    first: int | None
    last: int | None
    line: int


def read_scp(path: str) -> Iterator[Entry]:
    """The entries of a script file, one after another; empty lines do not count.

    Raises:
        RuntimeError: the file cannot be read, or a line is something else.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            for number, line in enumerate(file, 1):
                if text := line.strip():
                    yield _entry(path, number, text)
    except OSError as error:
        raise RuntimeError(f"cannot read the script file '{path}': {error.strerror or error}") from None


def _entry(path: str, number: int, text: str) -> Entry:
    name, equals, rest = text.partition("=")
    found = _FRAMES.fullmatch(rest if equals else name)
    if found is None:
        raise RuntimeError(f"{path}, line {number}: expected file, name=file or name=file[first,last], got '{text[:80]}'")
    file, first, last = found[1], *(None if frame is None else int(frame) for frame in found.groups()[1:])
    if first is not None and last is not None and last < first:
        raise RuntimeError(f"{path}, line {number}: the first frame, {first}, comes after the last, {last}")
    if file.startswith(NEXT_TO_LIST):
        file = os.path.join(os.path.dirname(path), file.removeprefix(NEXT_TO_LIST))
    return Entry(name if equals and name else found[1], file, first, last, number)
