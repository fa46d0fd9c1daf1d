"""Utterances: sequences of frames that have names."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ...core.common.cached_property import cached_property
from ..deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData

CHUNK_BYTES = 32 << 20
"""Bytes of a chunk in memory."""

LARGEST_NUMBER = 2**64 - 1


class Utterance(NamedTuple):
    """Where an utterance is.

    Attributes:
        name: its name, without the extension of a file.
        frames: how many it has.
        path: the file.
        start: its first frame there, or the byte at which it begins.
        line: line of the list or of the file that names it, or the byte, from 1.
    """

    name: str
    frames: int
    path: str
    start: int
    line: int


def logical_name(path: str) -> str:
    """The name by which files of features and of labels find each other: without ``*/`` before it and without extension."""
    folder, slash, file = path.removeprefix("*/").rpartition("/")
    return folder + slash + (file.rpartition(".")[0] or file)


def key_of(name: str) -> int:
    """The key of the utterance called *name*: itself, if it is a number, so that other files may give it as the sequence id; else a hash
    that does not depend on the run."""
    digits = name.lstrip("0")[:21]  # one more than the largest number has
    if name.isascii() and name.isdigit() and int(digits or "0") <= LARGEST_NUMBER:
        return int(digits or "0")
    return int.from_bytes(hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=8).digest(), "little")


def one_dim(kind: str, name: str, stream: Mapping[str, Any]) -> int:
    """Elements of a sample, as the description of the stream called *name* gives them.

    Raises:
        ValueError: it gives none, or a field.
    """
    if stream.get("stream_alias") is not None:
        raise ValueError(f"{kind}: stream '{name}' has the field {stream['stream_alias']!r}, but these files have no fields")
    dim = stream.get("dim")
    if isinstance(dim, (tuple, list)) and len(dim) == 1:
        dim = dim[0]
    if not isinstance(dim, int) or dim < 1:
        raise ValueError(f"{kind}: stream '{name}' needs a shape, a positive number of elements, got {dim!r}")
    return dim


class OpenFile:
    """The file that was read from last; it stays open for the utterances that follow in it."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._file: BinaryIO | None = None

    def at(self, path: str, position: int = 0) -> BinaryIO:
        """A file, opened where it is another one, at a position.

        Raises:
            OSError: it cannot be opened.
        """
        if self._file is None or path != self._path:
            self.__exit__()
            self._file, self._path = open(path, "rb"), path  # noqa: SIM115  (closed when another one is read from, or none)
        self._file.seek(position)
        return self._file

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None


class UtteranceDeserializer(Deserializer):
    """Base class: one stream, whose sequences are utterances.

    Args:
        name: the stream's name.
        stream: its ``StreamDef``.
        bytes_of_frame: memory that a frame takes.
    """

    def __init__(self, name: str, stream: Mapping[str, Any], bytes_of_frame: int) -> None:
        self._name, self._bytes_of_frame = name, bytes_of_frame
        self._longest = stream.get("max_sequence_length", 65535)
        self.is_primary = bool(stream.get("is_primary"))

    @abstractmethod
    def _find(self) -> Sequence[Utterance]:
        """All utterances, in the order of the data."""

    @abstractmethod
    def _frames(self, utterance: Utterance, files: OpenFile) -> Any:
        """The frames of one, as an array, read from one of the *files*.

        Raises:
            ValueError: it cannot be read.
        """

    @abstractmethod
    def _rows(self, frames: Any) -> Any:
        """What is served of frames."""

    @cached_property
    def _utterances(self) -> list[Utterance]:
        return [utterance for utterance in self._find() if utterance.frames <= self._longest]

    @cached_property
    def _lengths(self) -> Any:
        return np.array([utterance.frames for utterance in self._utterances], np.int64)

    @cached_property
    def _bounds(self) -> Any:
        """The first utterance of each chunk, and their number at the end."""
        before = np.cumsum(self._lengths) - self._lengths
        slots = before * self._bytes_of_frame // CHUNK_BYTES
        return np.concatenate([[0], np.flatnonzero(np.diff(slots)) + 1, [len(slots)]]) if len(slots) else np.zeros(1, np.int64)

    def chunk_infos(self) -> list[ChunkInfo]:
        sums = np.concatenate([[0], np.cumsum(self._lengths)])[self._bounds]
        sizes = zip(np.diff(self._bounds).tolist(), np.diff(sums).tolist(), strict=True)
        return [ChunkInfo(utterances, frames, frames * self._bytes_of_frame) for utterances, frames in sizes]

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        part = slice(self._bounds[chunk], self._bounds[chunk + 1])
        keys = [key_of(utterance.name) for utterance in self._utterances[part]]
        return SequenceInfos(self._lengths[part], np.array(keys, np.uint64))

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        parts, lengths = [], []
        with OpenFile() as files:
            for utterance in self._utterances[self._bounds[chunk] : self._bounds[chunk + 1]]:
                try:
                    parts.append(self._frames(utterance, files))
                    lengths.append(len(parts[-1]))
                except ValueError as error:
                    errors.leave_out(error)
                    lengths.append(0)
        return {self._name: StreamData.of_lengths(self._rows(parts), lengths)}
