"""The grammar of a line, and the errors of lines that do not follow it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ...core.common.dtypes import dtype_name
from ..streams import StreamConfiguration
from .exact import rounded

NUMBER = re.compile(rb"[+-]?\d+(\.\d*|(\.\d+)?[eE][+-]?\d+)?")
PAIR = re.compile(rb"(\d+):([+-]?\d+(?:\.\d*|(?:\.\d+)?[eE][+-]?\d+)?)")
LINE = re.compile(rb"\d*[ \t]*(?=\|)")
FIELD = re.compile(rb"\|([^|]*)")
WORD = re.compile(rb"[^ \t]+")


class Malformed(ValueError):
    """A line does not follow the grammar, from some column on, counted in bytes from 1."""

    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column


class Sample(NamedTuple):
    """One sample: the stream's number and its numbers, with their indices where the stream is sparse."""

    stream: int
    values: list[float]
    indices: list[int]


def names_of(streams: Sequence[StreamConfiguration]) -> dict[bytes, int]:
    """The number of each stream, by the name of its field."""
    return {stream.stream_alias.encode(): number for number, stream in enumerate(streams)}


def read_line(line: bytes, streams: Sequence[StreamConfiguration], names: Mapping[bytes, int], dtype: Any) -> Iterator[Sample]:
    """The samples of a line, which comes without its end, one after another.

    Args:
        line: the line.
        streams: the fields to read.
        names: as :func:`names_of` gives them.
        dtype: type of the numbers.

    Raises:
        Malformed: the line does not follow the grammar; the message says what was expected.
    """
    start = LINE.match(line)
    if start is None:
        raise Malformed(1, f"expected a sequence id or nothing, then fields such as |name 1 2; the line is {_shown(line)}")
    found = False
    for field in FIELD.finditer(line, start.end()):
        if field[1].startswith(b"#"):
            continue
        name = WORD.match(line, field.start(1), field.end(1))
        if name is None:
            raise Malformed(field.start(1) + 1, f"expected the name of a field behind '|', got {_shown(field[1])}")
        if name[0] in names:
            found = True
            number = names[name[0]]
            yield _sample(number, streams[number], WORD.finditer(line, name.end(), field.end(1)), dtype)
    if not found:
        fields = ", ".join(f"|{stream.stream_alias}" for stream in streams)
        raise Malformed(1, f"expected at least one of the fields {fields}; the line is {_shown(line)}")


def _sample(number: int, stream: StreamConfiguration, words: Iterator[re.Match[bytes]], dtype: Any) -> Sample:
    if stream.is_sparse:
        pairs = [_pair(stream, word, dtype) for word in words]
        return Sample(number, [value for _, value in pairs], [index for index, _ in pairs])
    values = [_number(stream, word, dtype) for word in islice(words, stream.dim)]
    behind = next(words, None)
    if behind is not None:
        count = stream.dim + 1 + sum(1 for _ in words)
        raise Malformed(
            behind.start() + 1,
            f"field |{stream.stream_alias}: expected {stream.dim} numbers, got {count}; correct the line, or the shape in its StreamDef",
        )
    return Sample(number, values, [])


def _pair(stream: StreamConfiguration, word: re.Match[bytes], dtype: Any) -> tuple[int, float]:
    pair = PAIR.fullmatch(word[0])
    if pair is None:
        raise Malformed(word.start() + 1, f"field |{stream.stream_alias} is sparse: expected index:value, got {_shown(word[0])}")
    if len(pair[1].lstrip(b"0")) > 19 or int(pair[1]) >= stream.dim:
        raise Malformed(
            word.start() + 1,
            f"field |{stream.stream_alias}: the index {_shown(pair[1])} lies outside 0 … {stream.dim - 1}; "
            "is the shape in its StreamDef right?",
        )
    return int(pair[1]), _finite(stream, word.start() + pair.start(2), pair[2], dtype)


def _number(stream: StreamConfiguration, word: re.Match[bytes], dtype: Any) -> float:
    if NUMBER.fullmatch(word[0]) is None:
        hint = ", or is_sparse=True for index:value" if b":" in word[0] else ""
        raise Malformed(
            word.start() + 1, f"field |{stream.stream_alias}: expected a number such as -1.5 or 2e-3{hint}, got {_shown(word[0])}"
        )
    return _finite(stream, word.start(), word[0], dtype)


def _finite(stream: StreamConfiguration, start: int, text: bytes, dtype: Any) -> float:
    """The nearest number of *dtype* to a text that begins at *start* of its line."""
    value = rounded(text, dtype)
    if math.isinf(value):
        raise Malformed(
            start + 1,
            f"field |{stream.stream_alias}: expected a number such as -1.5 or 2e-3, no larger than {dtype_name(dtype)} holds "
            f"({np.finfo(dtype).max:.7g}), got {_shown(text)}",
        )
    return value


def _shown(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace") + ("…" if len(text) > 60 else ""))
