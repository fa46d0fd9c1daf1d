"""The layout of a binary file: a signature, chunks, a header that describes streams and chunks, and the header's position.

All numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

MAGIC = 0x636E746B5F62696E
VERSION = 1
START = struct.Struct("<QI")
HEADER = struct.Struct("<QII")
NAME = struct.Struct("<BI")
ELEMENTS = struct.Struct("<BI")
CHUNK = struct.Struct("<qII")
END = struct.Struct("<q")
ELEMENT_TYPES: tuple[type[np.floating[Any]], ...] = (np.float32, np.float64)
LONGEST_NAME = 1 << 16


class StreamLayout(NamedTuple):
    """A stream of a file: its name, whether it is sparse, the type of its elements, and how many a sample has."""

    name: str
    is_sparse: bool
    dtype: Any
    dim: int


class ChunkLayout(NamedTuple):
    """Where a chunk begins, its sequences, and the samples of the longest stream in all of them."""

    offset: int
    sequences: int
    samples: int


class Layout(NamedTuple):
    """Streams and chunks of a file, and where its header begins."""

    streams: list[StreamLayout]
    chunks: list[ChunkLayout]
    header: int


class Damaged(ValueError):
    """A file is not a binary file of CNTK's, or damaged, at some byte."""

    def __init__(self, byte: int, message: str) -> None:
        super().__init__(message)
        self.byte = byte


def read_layout(file: BinaryIO, size: int) -> Layout:
    """Read the header of a file of *size* bytes.

    Raises:
        Damaged: the header is invalid.
    """
    reader = _Reader(file, 0, size)
    magic, version = reader.take(START)
    if magic != MAGIC:
        raise Damaged(0, "expected a file in CNTK's binary format, which begins with b'nib_ktnc'")
    if version != VERSION:
        raise Damaged(8, f"expected version {VERSION} of the format, got {version}")
    if size < START.size + HEADER.size + END.size:
        raise Damaged(size, "the file ends before its header")
    file.seek(size - END.size)
    (begin,) = END.unpack(file.read(END.size))
    if not START.size <= begin <= size - END.size - HEADER.size:
        raise Damaged(size - END.size, f"the header should begin at byte {begin}, which lies outside; is the file complete?")
    reader = _Reader(file, begin, size - END.size)
    magic, chunks, streams = reader.take(HEADER)
    if magic != MAGIC:
        raise Damaged(begin, "expected the header, which begins with b'nib_ktnc'")
    layout = Layout([_stream(reader) for _ in range(streams)], [ChunkLayout(*reader.take(CHUNK)) for _ in range(chunks)], begin)
    _check(layout)
    return layout


def header_of(layout: Layout) -> bytes:
    """The header, and what follows it."""
    pieces = [HEADER.pack(MAGIC, len(layout.chunks), len(layout.streams))]
    for stream in layout.streams:
        name = stream.name.encode()
        pieces += [NAME.pack(stream.is_sparse, len(name)), name, ELEMENTS.pack(ELEMENT_TYPES.index(stream.dtype), stream.dim)]
    pieces += [CHUNK.pack(*chunk) for chunk in layout.chunks]
    return b"".join([*pieces, END.pack(layout.header)])


class _Reader:
    """Reads one item after another from a part of a file."""

    def __init__(self, file: BinaryIO, begin: int, end: int) -> None:
        self._file, self._end, self.at = file, end, begin
        file.seek(begin)

    def take(self, what: struct.Struct) -> tuple[Any, ...]:
        return what.unpack(self.bytes(what.size))

    def bytes(self, count: int) -> bytes:
        found = self._file.read(min(count, self._end - self.at))
        if len(found) < count:
            raise Damaged(self.at + len(found), "the file ends before its header does")
        self.at += count
        return found


def _stream(reader: _Reader) -> StreamLayout:
    at = reader.at
    is_sparse, length = reader.take(NAME)
    if is_sparse > 1:
        raise Damaged(at, f"expected a stream, which begins with 0 (dense) or 1 (sparse), got {is_sparse}")
    if length > LONGEST_NAME:
        raise Damaged(at + 1, f"expected the name of a stream, got one of {length} bytes")
    try:
        name = reader.bytes(length).decode()
    except UnicodeDecodeError:
        raise Damaged(at + NAME.size, "expected the name of a stream in UTF-8") from None
    element, dim = reader.take(ELEMENTS)
    if element >= len(ELEMENT_TYPES):
        raise Damaged(reader.at - ELEMENTS.size, f"stream '{name}': expected elements of type 0 (float) or 1 (double), got {element}")
    if not 0 < dim < 2**31:
        raise Damaged(reader.at - 4, f"stream '{name}': expected 1 to {2**31 - 1} elements, got {dim}")
    return StreamLayout(name, bool(is_sparse), ELEMENT_TYPES[element], dim)


def _check(layout: Layout) -> None:
    if not layout.streams or not layout.chunks:
        raise Damaged(layout.header + 8, f"the file has {len(layout.streams)} streams and {len(layout.chunks)} chunks; expected some")
    before = START.size
    for number, (chunk, end) in enumerate(zip(layout.chunks, chunk_ends(layout), strict=True)):
        if chunk.offset < before or chunk.offset + 4 * chunk.sequences > end:
            raise Damaged(layout.header, f"chunk {number} of {chunk.sequences} sequences cannot lie at bytes {chunk.offset} to {end}")
        before = chunk.offset


def chunk_ends(layout: Layout) -> Sequence[int]:
    """Where each chunk ends."""
    return [*(chunk.offset for chunk in layout.chunks[1:]), layout.header]
