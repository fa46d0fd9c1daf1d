"""The deserializer of CNTK's text format."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from ...core.source import user_line
from ..deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos
from ..streams import StreamConfiguration, StreamInformation
from .grammar import read_line
from .index import Index, make_index
from .samples import Part, faults, join, part_of, part_of_lists
from .scan import scan

CHUNK_SIZE = 32 << 20
"""Bytes of text in a chunk."""

SCAN_SIZE = 1 << 20
"""Bytes of text that are read in bulk; what that takes of memory grows with it."""

FOREIGN = ("transforms", "context", "scp", "mlf", "broadcast")
"""What a StreamDef may say to other deserializers."""


class CTFDeserializer(Deserializer):
    """Reads CNTK's text format: lines such as ``12 |x 560:1 |y 0 0 1 |# comment``.

    A line holds samples of one or more streams: numbers of a dense one, ``index:value`` pairs of a sparse one.  If the first line begins
    with a number, consecutive lines with the same number are a sequence; otherwise every line is one.  A stream may have fewer samples
    in a sequence than the sequence has lines, but at least one, and some stream has as many.  Missing numbers at the end of a dense
    sample are zero, with a warning; fields that no stream wants and comments are passed over.

    Args:
        filename: the file.
        streams: by the stream's name a ``StreamDef`` with the ``field``, its ``shape`` (a number of elements) and ``is_sparse``.

    Raises:
        ValueError: no file name, or a stream without field or shape.
        RuntimeError: no streams, or two of one field.  What is wrong with the file is said when a ``MinibatchSource`` is made of it, or
            reads there.

    >>> streams = C.io.StreamDefs(words=C.io.StreamDef(field="S0", shape=943, is_sparse=True))
    >>> C.io.CTFDeserializer("atis.train.ctf", streams).stream_infos()
    [words([943])]
    """

    def __init__(self, filename: str, streams: Mapping[str, Mapping[str, Any]]) -> None:
        self._path = os.fspath(filename)
        if not self._path:
            raise ValueError(f"CTFDeserializer: no file name is given\n[CALL STACK]\n{user_line()}")
        self._streams = [_configuration(name, stream) for name, stream in streams.items()]
        if not self._streams:
            raise RuntimeError("CTFDeserializer: no streams are given; say StreamDefs(name=StreamDef(field=..., shape=...))")
        fields = [stream.stream_alias for stream in self._streams]
        if len(set(fields)) < len(fields):
            raise RuntimeError(f"CTFDeserializer: every stream needs a field of its own, got {fields}")
        self._settings: dict[str, Any] = {"chunkSizeInBytes": CHUNK_SIZE, "skipSequenceIds": False}
        self._has_warned = False

    def __setitem__(self, setting: str, value: Any) -> None:
        """Change a setting of the engine's: ``chunkSizeInBytes``, or ``skipSequenceIds`` to make every line a sequence.

        Raises:
            KeyError: there is no such setting.
        """
        if setting not in self._settings:
            raise KeyError(f"CTFDeserializer has no setting '{setting}'; it has {', '.join(self._settings)}")
        self._settings[setting] = value
        for made in ("_index", "_chunks", "_infos"):
            self.__dict__.pop(made, None)

    def stream_infos(self) -> list[StreamInformation]:
        return [
            StreamInformation(s.name, i, "sparse" if s.is_sparse else "dense", np.float32, (s.dim,), s.defines_mb_size)
            for i, s in enumerate(self._streams)
        ]

    def chunk_infos(self) -> list[ChunkInfo]:
        return self._infos

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        part = slice(self._chunks[chunk], self._chunks[chunk + 1])
        return SequenceInfos(self._index.lengths[part], self._index.keys[part])

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        first, last = self._chunks[chunk], self._chunks[chunk + 1]
        parts = [self._read(start, stop, errors) for start, stop in self._spans(first, last)]
        return {stream.name: join(stream, [part[i] for part in parts]) for i, stream in enumerate(self._streams)}

    # ---- where sequences are ----

    @cached_property
    def _index(self) -> Index:
        counted = [stream.stream_alias for stream in self._streams if stream.defines_mb_size]
        return make_index(self._path, bool(self._settings["skipSequenceIds"]), counted[0] if len(counted) == 1 else "")

    @cached_property
    def _chunks(self) -> Any:
        """The first sequence of each chunk, and their number at the end."""
        slots = (self._index.starts[:-1] - self._index.starts[0]) // max(int(self._settings["chunkSizeInBytes"]), 1)
        return np.concatenate([[0], np.flatnonzero(np.diff(slots)) + 1, [len(slots)]])

    @cached_property
    def _infos(self) -> list[ChunkInfo]:
        sums = np.concatenate([[0], np.cumsum(self._index.lengths)])[self._chunks]
        return [ChunkInfo(int(n), int(samples)) for n, samples in zip(np.diff(self._chunks), np.diff(sums), strict=True)]

    @cached_property
    def _first_lines(self) -> Any:
        """Number of the line with which each sequence begins, from 1."""
        return np.concatenate([[0], np.cumsum(self._index.lines)]) + self._index.skipped + 1

    def _spans(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Sequences *first* to *last* in runs of about SCAN_SIZE bytes."""
        starts = self._index.starts
        while first < last:
            stop = int(np.searchsorted(starts, starts[first] + SCAN_SIZE))
            stop = min(max(stop, first + 1), last)
            yield first, stop
            first = stop

    # ---- what they hold ----

    def _read(self, first: int, last: int, errors: Errors) -> list[Part]:
        begin, end = int(self._index.starts[first]), int(self._index.starts[last])
        try:
            with open(self._path, "rb") as file:
                file.seek(begin)
                text = file.read(end - begin)
        except OSError as error:
            raise RuntimeError(f"cannot read the text file '{self._path}': {error.strerror or error}") from None
        if len(text) < end - begin:
            raise RuntimeError(f"the text file '{self._path}' has become shorter since it was first read: it had {end} bytes or more")
        if not text.endswith(b"\n"):
            text += b"\n"
        lines = self._index.lines[first:last]
        return self._scan(text, first, lines) or self._read_slowly(text, first, lines, errors)

    def _scan(self, text: bytes, first: int, lines: Any) -> list[Part] | None:
        """Read in bulk; None if something is wrong, or not plain."""
        samples = scan(text, self._streams)
        if samples is None:
            return None
        found = [part_of(stream, one, lines) for stream, one in zip(self._streams, samples, strict=True)]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found) or faults(parts, lines).any():
            return None
        for part in parts:
            if part.short is not None:
                self._warn(int(self._first_lines[first]) + part.short)
        return parts

    def _read_slowly(self, text: bytes, first: int, lines: Any, errors: Errors) -> list[Part]:
        """Read line by line, and leave out sequences in which something is wrong."""
        rows = iter(text.split(b"\n"))
        found = []
        for number, count in enumerate(lines.tolist(), first):
            try:
                found.append(self._sequence(list(islice(rows, count)), int(self._first_lines[number])))
            except ValueError as error:
                errors.leave_out(error)
                found.append([[] for _ in self._streams])
        return [part_of_lists([sequence[i] for sequence in found]) for i in range(len(self._streams))]

    def _sequence(self, lines: list[bytes], first_line: int) -> list[list[tuple[list[float], list[int]]]]:
        """For each stream its samples in one sequence."""
        found: list[list[tuple[list[float], list[int]]]] = [[] for _ in self._streams]
        for number, line in enumerate(lines, first_line):
            try:
                for sample in read_line(line.removesuffix(b"\r"), self._streams):
                    found[sample.stream].append((sample.values, sample.indices))
                    stream = self._streams[sample.stream]
                    if not stream.is_sparse and len(sample.values) < stream.dim:
                        self._warn(number)
            except ValueError as error:
                raise ValueError(f"{self._path}, line {number}: {error}") from None
        last = first_line + len(lines) - 1
        where = f"{self._path}, line {first_line}" if last == first_line else f"{self._path}, lines {first_line} to {last}"
        for stream, samples in zip(self._streams, found, strict=True):
            if not samples:
                raise ValueError(f"{where}: the sequence has no sample of |{stream.stream_alias}; expected at least one of every stream")
            if len(samples) > len(lines):
                raise ValueError(f"{where}: {len(samples)} samples of |{stream.stream_alias} in {len(lines)} lines; expected one in a line")
        longest = max(map(len, found))
        if longest < len(lines):
            raise ValueError(
                f"{where}: {len(lines)} lines, but no stream has more than {longest} samples; expected one with a sample for each line"
            )
        return found

    def _warn(self, line: int) -> None:
        if not self._has_warned:
            self._has_warned = True
            dims = ", ".join(f"|{stream.stream_alias} {stream.dim}" for stream in self._streams if not stream.is_sparse)
            warnings.warn(
                f"{self._path}, line {line}: fewer numbers than a dense sample has ({dims}); the rest is taken for zeros, here and below",
                UserWarning,
                stacklevel=2,
            )


def _configuration(name: str, stream: Mapping[str, Any]) -> StreamConfiguration:
    given = [key for key in FOREIGN if stream.get(key) is not None]
    if given:
        raise ValueError(f"CTFDeserializer: stream '{name}' has {', '.join(given)}, which mean nothing for text files")
    if stream.get("max_sequence_length", 65535) != 65535:
        raise NotImplementedError(f"CTFDeserializer: max_sequence_length, as stream '{name}' has it, is not implemented for text files")
    field, dim = stream.get("stream_alias"), stream.get("dim")
    if not field:
        raise ValueError(f"CTFDeserializer: stream '{name}' names no field of the file; say StreamDef(field=..., shape=...)")
    if isinstance(dim, (tuple, list)) and len(dim) == 1:
        dim = dim[0]
    if not isinstance(dim, int) or dim < 1:
        raise ValueError(f"CTFDeserializer: stream '{name}' needs a shape, a positive number of elements, got {dim!r}; reshape them later")
    return StreamConfiguration(name, dim, bool(stream.get("is_sparse")), field, bool(stream.get("defines_mb_size")))
