"""One text, read sequence by sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..deserializer import Errors
from ..streams import StreamConfiguration
from .grammar import Malformed, Sample, names_of, read_line
from .index import Settings
from .index_file import index_of
from .samples import Part, part_of_sequence
from .scan import scan
from .text import NEWLINE, TextFile

SCAN_SIZE = 1 << 18
"""Bytes of text that NumPy reads in bulk, so that intermediate arrays stay in the processor's cache."""

AFTER_FAULT = 64
"""The number of sequences to read next after one that could not be read, since there may be more like it."""


class Document:
    """A text and its index.

    Args:
        path: the file.
        streams: the fields to read.
        dtype: type of the numbers.
        settings: of the index.
        before: sequences of other documents that come before; those without ids are numbered on.
        keep: whether files made from it are kept for the next time.

    Attributes:
        path, size: the file, and the bytes of its text.
        plain: the file that holds the text itself.
        index: where its sequences are.
    """

    def __init__(
        self, path: str, streams: Sequence[StreamConfiguration], dtype: Any, settings: Settings, before: int = 0, keep: bool = True
    ) -> None:
        self._text = TextFile(path, keep)
        self._streams, self._names, self._dtype, self._before = streams, names_of(streams), dtype, before
        self.path, self.plain, self.size = path, self._text.plain, self._text.size
        self.index = index_of(self._text, settings, keep)

    def keys(self, first: int, last: int) -> Any:
        """The keys of these sequences: their ids, or without ids their numbers."""
        keys = self.index.keys(first, last)
        return keys if self.index.has_ids else keys + np.uint64(self._before)

    def bytes_of(self, first: int, last: int) -> int:
        """Bytes of text of these sequences."""
        return int(self.index.starts(last, last)[0] - self.index.starts(first, first)[0])

    def read(self, first: int, last: int, errors: Errors, is_compiled: bool) -> Iterator[list[Part]]:
        """Read these sequences.

        Args:
            errors: counts sequences that cannot be read, and then have no samples.
            is_compiled: whether to read in a compiled loop.

        Returns:
            The samples of each stream, for one group of sequences after another.
        """
        starts, lines = self.index.starts(first, last), self.index.lines(first, last)
        text = self._text.read(int(starts[0]), int(starts[-1]))
        if (text[starts[1:-1] - starts[0] - 1] != NEWLINE).any():
            raise RuntimeError(f"{self.path}: the file has changed since it was indexed; make a new deserializer")
        starts = np.append(starts[:-1] - starts[0], len(text))
        read = self._compiled if is_compiled else self._in_bulk
        return read(text, starts, lines, errors)

    def _compiled(self, text: Any, starts: Any, lines: Any, errors: Errors) -> Iterator[list[Part]]:
        from . import compiled

        first, last = 0, len(starts) - 1
        span = last
        while first < last:
            stop = min(first + span, last)
            parts, count = compiled.scan(text, starts[first : stop + 1], lines[first : stop + 1], self._streams, self._dtype)
            yield parts
            first += count
            span *= 2
            if first < stop:
                yield self._by_grammar(text, starts[first : first + 2], lines[first : first + 2], errors)
                first += 1
                span = AFTER_FAULT

    def _in_bulk(self, text: Any, starts: Any, lines: Any, errors: Errors) -> Iterator[list[Part]]:
        """Read about SCAN_SIZE bytes at a time."""
        first, last = 0, len(starts) - 1
        while first < last:
            stop = int(np.searchsorted(starts, starts[first] + SCAN_SIZE))
            stop = min(max(stop, first + 1), last)
            yield from self._halved(text, starts[first : stop + 1], lines[first : stop + 1], errors)
            first = stop

    def _halved(self, text: Any, starts: Any, lines: Any, errors: Errors) -> Iterator[list[Part]]:
        """Read in bulk; if that fails, each half separately, down to one sequence."""
        parts = scan(text, starts, lines, self._streams, self._dtype)
        if parts is not None:
            yield parts
        elif len(starts) == 2:
            yield self._by_grammar(text, starts, lines, errors)
        else:
            middle = len(starts) // 2
            yield from self._halved(text, starts[: middle + 1], lines[: middle + 1], errors)
            yield from self._halved(text, starts[middle:], lines[middle:], errors)

    def _by_grammar(self, text: Any, starts: Any, lines: Any, errors: Errors) -> list[Part]:
        """Read one sequence line by line, or leave it out if something is wrong."""
        rows = text[starts[0] : starts[1]].tobytes().removesuffix(b"\n").split(b"\n")
        try:
            found = self._sequence(rows, int(lines[0]), int(lines[1]))
        except ValueError as error:
            errors.leave_out(error)
            found = [[] for _ in self._streams]
        pairs = zip(self._streams, found, strict=True)
        return [part_of_sequence(stream, samples, self._dtype, len(text)) for stream, samples in pairs]

    def _sequence(self, rows: list[bytes], first_line: int, end_line: int) -> list[list[tuple[int, Sample]]]:
        """For each stream its samples in one sequence, with the lines in which they are."""
        found: list[list[tuple[int, Sample]]] = [[] for _ in self._streams]
        for number, row in enumerate(rows, first_line):
            try:
                for sample in read_line(row.removesuffix(b"\r"), self._streams, self._names, self._dtype):
                    if len(found[sample.stream]) == len(rows):
                        raise ValueError(self._too_many(self._streams[sample.stream], first_line, len(rows)))
                    found[sample.stream].append((number, sample))
            except Malformed as error:
                raise ValueError(f"{self.path}, line {number}, column {error.column}: {error}") from None
        where = self._where(first_line, len(rows))
        if first_line + len(rows) != end_line:
            raise RuntimeError(f"{where}: the file has changed since it was indexed; make a new deserializer")
        for stream, samples in zip(self._streams, found, strict=True):
            if not samples:
                raise ValueError(
                    f"{where}: the sequence has no sample of |{stream.stream_alias}; "
                    "expected at least one of every stream; is the field of its StreamDef right?"
                )
        longest = max(map(len, found))
        if longest < len(rows):
            raise ValueError(
                f"{where}: {len(rows)} lines, but no stream has more than {longest} samples; expected one with a sample for each line"
            )
        return found

    def _too_many(self, stream: StreamConfiguration, first_line: int, lines: int) -> str:
        where = self._where(first_line, lines)
        return f"{where}: more than {lines} samples of |{stream.stream_alias} in {lines} lines; expected one in a line"

    def _where(self, first_line: int, lines: int) -> str:
        return f"{self.path}, line {first_line}" if lines == 1 else f"{self.path}, lines {first_line} to {first_line + lines - 1}"
