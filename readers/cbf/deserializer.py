"""The deserializer of CNTK's binary format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.common.cached_property import cached_property
from ...core.common.user_frame import user_line
from ...core.types.arguments import mapping
from ..deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos
from ..streams import StreamInformation
from .chunk import WORD, read_stream
from .layout import Damaged, Layout, chunk_ends, read_layout


class CBFDeserializer(Deserializer):
    """Reads CNTK's binary format, which ``cntk ctf2bin`` makes of text files.

    All streams of a file are served, with the shapes and element types in the file.

    Args:
        filename: the file.
        streams: new names: by the stream's name a ``StreamDef`` whose ``field`` is that in the file.  Streams that are not listed keep
            theirs.  A ``shape`` and ``is_sparse`` that are given must be those of the file.

    Raises:
        ValueError: no file name, or a stream that the file does not have, or has with other properties.
        RuntimeError: the file cannot be read, is of another format or damaged.  These errors are raised when a
            ``MinibatchSource`` is made of it, or reads.

    >>> C.io.CBFDeserializer("")
    Traceback (most recent call last):
    ValueError: CBFDeserializer: no file name is given...
    """

    multithreaded = True

    def __init__(self, filename: str, streams: Mapping[str, Mapping[str, Any]] = {}) -> None:
        self._path = os.fspath(filename)
        if not self._path:
            raise ValueError(f"CBFDeserializer: no file name is given\n[CALL STACK]\n{user_line()}")
        self._wanted = dict(mapping("CBFDeserializer", "streams", streams))
        defining = [name for name, stream in self._wanted.items() if stream.get("defines_mb_size")]
        if defining:
            raise ValueError(f"CBFDeserializer: {defining} cannot define the minibatch size: files tell the longest stream's length alone")
        self.is_primary = any(stream.get("is_primary", False) for stream in self._wanted.values())

    def stream_infos(self) -> list[StreamInformation]:
        return self._infos

    def chunk_infos(self) -> list[ChunkInfo]:
        ends = chunk_ends(self._layout)
        return [ChunkInfo(c.sequences, c.samples, end - c.offset) for c, end in zip(self._layout.chunks, ends, strict=True)]

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        before = sum(one.sequences for one in self._layout.chunks[:chunk])
        one = self._layout.chunks[chunk]
        lengths = self._words(one.offset, one.offset + one.sequences * WORD).astype(np.int64)
        if lengths.sum() != one.samples:
            raise RuntimeError(f"{self._path}, byte {one.offset}: chunk {chunk} has not as many samples as the header says")
        return SequenceInfos(lengths, np.arange(before, before + one.sequences, dtype=np.uint64))

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        one = self._layout.chunks[chunk]
        words = self._words(one.offset, chunk_ends(self._layout)[chunk])
        at, found = one.sequences, {}
        try:
            for stream, info in zip(self._layout.streams, self._infos, strict=True):
                found[info.name], at = read_stream(words, at, stream, one.sequences)
            if (np.max([data.lengths for data in found.values()], axis=0) != words[: one.sequences]).any():
                raise Damaged(0, f"chunk {chunk}: its sequences are not as long as their longest streams")
        except Damaged as error:
            raise RuntimeError(f"{self._path}, byte {one.offset + error.byte}: {error}") from None
        return found

    def files(self) -> list[str]:
        return [self._path]

    def describe(self) -> dict[str, Any]:
        streams = {name: {"alias": stream.get("stream_alias") or name} for name, stream in self._wanted.items()}
        return {"type": "CNTKBinaryFormatDeserializer", "file": self._path, "input": streams}

    @cached_property
    def _layout(self) -> Layout:
        try:
            with open(self._path, "rb") as file:
                return read_layout(file, os.fstat(file.fileno()).st_size)
        except OSError as error:
            raise RuntimeError(f"cannot read the binary file '{self._path}': {error.strerror or error}") from None
        except Damaged as error:
            raise RuntimeError(f"{self._path}, byte {error.byte}: {error}") from None

    @cached_property
    def _infos(self) -> list[StreamInformation]:
        there = {stream.name: stream for stream in self._layout.streams}
        names = {name: name for name in there}
        for name, wanted in self._wanted.items():
            field = wanted.get("stream_alias") or name
            field = field if field in there else name
            if field not in there:
                raise ValueError(f"{self._path} has no stream '{wanted.get('stream_alias') or name}'; it has {', '.join(there)}")
            stream, dim = there[field], wanted.get("dim")
            if dim not in (None, stream.dim, (stream.dim,)) or (dim is not None and bool(wanted.get("is_sparse")) != stream.is_sparse):
                kind = "sparse" if stream.is_sparse else "dense"
                raise ValueError(f"{self._path}: stream '{field}' is {kind} with {stream.dim} elements there, not as in its StreamDef")
            names[field] = name
        return [
            StreamInformation(names[s.name], i, "sparse" if s.is_sparse else "dense", s.dtype, (s.dim,))
            for i, s in enumerate(self._layout.streams)
        ]

    def _words(self, begin: int, end: int) -> Any:
        """Numbers of four bytes, as many as there are whole ones."""
        count = (end - begin) // WORD
        try:
            found = np.fromfile(self._path, "<u4", count, offset=begin)
        except OSError as error:
            raise RuntimeError(f"cannot read the binary file '{self._path}': {error.strerror or error}") from None
        if len(found) < count:
            raise RuntimeError(f"the binary file '{self._path}' has become shorter since it was first read: it ends before byte {end}")
        return found
