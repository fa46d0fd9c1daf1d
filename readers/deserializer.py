"""What a format offers: streams, and sequences that lie in chunks.

A chunk is what is read in one go, so that a file may be larger than the memory.  How many sequences it has and how long they are is
known without reading it; that is all that is needed to put them in order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .streams import StreamInformation


class ChunkInfo(NamedTuple):
    """Size of a chunk: number of sequences, and of samples in all of them."""

    sequences: int
    samples: int


class SequenceInfos(NamedTuple):
    """The sequences of a chunk: samples of each, and its key, by which deserializers that are read together find each other's."""

    lengths: Any
    keys: Any


class StreamData:
    """What a chunk holds of one stream: samples one after another, and where each sequence starts.

    Attributes:
        rows: array ``(samples, *sample shape)`` or CSR matrix ``(samples, elements)``.
        starts: for each sequence its first sample, and the number of all samples at the end.
    """

    __slots__ = ("rows", "starts")

    def __init__(self, rows: Any, starts: Any) -> None:
        self.rows, self.starts = rows, starts

    @classmethod
    def of_lengths(cls, rows: Any, lengths: Any) -> StreamData:
        """Samples *rows* that make sequences of these *lengths*."""
        return cls(rows, np.concatenate([[0], np.cumsum(lengths)]))

    @property
    def lengths(self) -> Any:
        """Samples of each sequence; one that could not be read has none."""
        return np.diff(self.starts)

    def sequence(self, number: int) -> Any:
        """The samples of one sequence."""
        return self.rows[self.starts[number] : self.starts[number + 1]]


Chunk = dict[str, StreamData]
"""The data of a chunk, by the stream's name; a sequence that could not be read has no samples in any stream."""


class Errors:
    """Counts what could not be read, and says when it is too much.

    Args:
        limit: how many sequences may be left out.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._seen: set[str] = set()

    def leave_out(self, error: Exception) -> None:
        """Leave a sequence out because of *error*; the same error, met again in another sweep, counts once.

        Raises:
            RuntimeError: more sequences than the limit have been left out.
        """
        self._seen.add(str(error))
        if len(self._seen) > self.limit:
            allowed = f" (max_errors={self.limit} sequences were left out before)" if self.limit else ""
            raise RuntimeError(f"{error}{allowed}") from None


class Deserializer(ABC):
    """Base class of formats.  It keeps no position: several minibatch sources may read from one."""

    @abstractmethod
    def stream_infos(self) -> list[StreamInformation]:
        """The streams, numbered from 0."""

    @abstractmethod
    def chunk_infos(self) -> Sequence[ChunkInfo]:
        """The chunks, in the order of the data; each has a sequence at least.

        Raises:
            RuntimeError: the data is missing or of another format.
        """

    @abstractmethod
    def sequence_infos(self, chunk: int) -> SequenceInfos:
        """The sequences of a chunk, in the order of the data."""

    @abstractmethod
    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        """Read a chunk; *errors* is told of each sequence that cannot be read, and raises when it has had enough."""
