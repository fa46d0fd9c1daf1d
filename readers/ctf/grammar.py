"""The grammar of a line, and what is wrong with one that does not follow it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..streams import StreamConfiguration

NUMBER = re.compile(rb"[+-]?\d+(\.\d*|(\.\d+)?[eE][+-]?\d+)?")
PAIR = re.compile(rb"(\d+):([+-]?\d+(?:\.\d*|(?:\.\d+)?[eE][+-]?\d+)?)")
LINE = re.compile(rb"(?:\d*|[ \t]*)[ \t]*(?=\|)")
BLANKS = re.compile(rb"[ \t]+")


class Sample(NamedTuple):
    """One sample: the stream's number and its numbers, with their indices where the stream is sparse."""

    stream: int
    values: list[float]
    indices: list[int]


def read_line(line: bytes, streams: Sequence[StreamConfiguration]) -> Iterator[Sample]:
    """The samples of a line, which comes without its end.

    Raises:
        ValueError: the line does not follow the grammar; the message says what was expected.
    """
    start = LINE.match(line)
    if start is None:
        raise ValueError(f"expected a sequence id or nothing, then fields such as |name 1 2; the line is {_shown(line)}")
    names = {stream.stream_alias.encode(): number for number, stream in enumerate(streams)}
    found = False
    for field in line[start.end() + 1 :].split(b"|"):
        if field.startswith(b"#"):
            continue
        name, *values = BLANKS.split(field.rstrip(b" \t"))
        if not name:
            raise ValueError(f"expected the name of a field behind '|', got {_shown(field)}")
        if name in names:
            found = True
            number = names[name]
            yield _sample(number, streams[number], values)
    if not found:
        fields = ", ".join(f"|{stream.stream_alias}" for stream in streams)
        raise ValueError(f"expected at least one of the fields {fields}; the line is {_shown(line)}")


def _sample(number: int, stream: StreamConfiguration, values: list[bytes]) -> Sample:
    if stream.is_sparse:
        pairs = [PAIR.fullmatch(value) for value in values]
        for value, pair in zip(values, pairs, strict=True):
            if pair is None:
                raise ValueError(f"field |{stream.stream_alias} is sparse: expected index:value, got {_shown(value)}")
            if int(pair[1][:20]) >= stream.dim:
                raise ValueError(
                    f"field |{stream.stream_alias}: the index {_shown(pair[1])} lies outside 0 … {stream.dim - 1}; "
                    "is the shape in its StreamDef right?"
                )
        return Sample(number, [float(pair[2]) for pair in pairs if pair], [int(pair[1]) for pair in pairs if pair])
    for value in values:
        if NUMBER.fullmatch(value) is None:
            hint = ", or is_sparse=True for index:value" if b":" in value else ""
            raise ValueError(f"field |{stream.stream_alias}: expected a number such as -1.5 or 2e-3{hint}, got {_shown(value)}")
    if len(values) > stream.dim:
        raise ValueError(f"field |{stream.stream_alias}: expected {stream.dim} numbers, got {len(values)}")
    return Sample(number, [float(value) for value in values], [])


def _shown(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace") + ("…" if len(text) > 60 else ""))
