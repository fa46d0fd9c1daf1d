"""The interface of formats: streams, and sequences in chunks.

A chunk is read in one go, so that a file may be larger than the memory.  How many sequences it has and how long they are is
best known without reading it; that is all that is needed to put them in order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.common.displayed import Displayed
from ..core.common.lock import ForkSafeLock
from .rows import StreamData
from .streams import StreamInformation

__all__ = ["UNKNOWN", "Chunk", "ChunkInfo", "Deserializer", "Errors", "SequenceInfos", "StreamData"]

BYTES_OF_SEQUENCE = 32
"""Estimated bytes for a sequence's starts in a few streams, its length, and its place in the order."""

UNKNOWN = -1
"""Number of sequences and samples of a chunk that must be read to know them."""


class ChunkInfo(NamedTuple):
    """Size of a chunk: number of sequences, of samples in all of them, and of bytes that it takes in memory.

    Without the last it is estimated from the streams.  Sequences and samples are :data:`UNKNOWN` where only reading tells.
    """

    sequences: int
    samples: int
    nbytes: int = 0


class SequenceInfos(NamedTuple):
    """The sequences of a chunk: samples of each, and its key, by which deserializers that are read together find each other's."""

    lengths: Any
    keys: Any


Chunk = dict[str, StreamData]
"""The data of a chunk, by the stream's name; a sequence that could not be read has no samples in any stream."""


class Errors:
    """Counts sequences that could not be read, and raises an error above a limit; used by several threads.

    Args:
        limit: how many sequences may be left out.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._seen: set[str] = set()
        self._lock = ForkSafeLock()

    def leave_out(self, error: Exception) -> None:
        """Leave a sequence out because of *error*; the same error, met again in another sweep, counts once.

        Raises:
            RuntimeError: more sequences than the limit have been left out.
        """
        with self._lock:
            self._seen.add(str(error))
            too_many = len(self._seen) > self.limit
        if too_many:
            allowed = f" (max_errors={self.limit} sequences were left out before)" if self.limit else ""
            raise RuntimeError(f"{error}{allowed}") from None


class Deserializer(Displayed, ABC):
    """Base class of formats.  It keeps no position: several minibatch sources may read from one.

    Attributes:
        broadcast: names of streams with one sample a sequence that stands for as many as the leading deserializer has.
        is_primary: whether it leads where several are read together; if none is, the first does.

    >>> from cntk.extend import ChunkInfo, Deserializer, SequenceInfos, StreamData, StreamInformation
    >>> class Squares(Deserializer):
    ...     '''Chunks of two squares each, every one a sequence of one step.'''
    ...     def stream_infos(self):
    ...         return [StreamInformation('square', 0, 'dense', np.float32, (1,))]
    ...
    ...     def chunk_infos(self):
    ...         return [ChunkInfo(sequences=2, samples=2)] * 3
    ...
    ...     def sequence_infos(self, chunk):
    ...         return SequenceInfos(lengths=[1, 1], keys=[2 * chunk, 2 * chunk + 1])
    ...
    ...     def get_chunk(self, chunk, errors):
    ...         numbers = np.arange(2 * chunk, 2 * chunk + 2, dtype=np.float32)
    ...         return {'square': StreamData.of_steps(numbers[:, None] ** 2)}
    >>> source = C.io.MinibatchSource(Squares(), randomize=False, max_sweeps=1)
    >>> source.next_minibatch(6)[source.streams.square].asarray().ravel()
    array([ 0.,  1.,  4.,  9., 16., 25.], dtype=float32)
    """

    is_primary: bool = False
    broadcast: frozenset[str] = frozenset()

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
        """The sequences of a chunk, in the order of the data; of one whose size is unknown, once it has been read."""

    @abstractmethod
    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        """Read a chunk; *errors* counts each sequence that cannot be read, and raises an error above its limit.

        Several threads read at once.
        """

    def transform(self, sequence: dict[str, Any], key: int, seed: int) -> dict[str, Any]:
        """Transform a sequence of a chunk just before it goes into a minibatch.

        A chunk may hold images as they are in their files, as an array of objects.  Several threads call this at once.  Random numbers
        must depend on *key* and *seed* alone.

        Args:
            sequence: by stream its samples, as ``StreamData.sequence`` gives them.
            key: the sequence's key.
            seed: the source's seed and the number of the sweep, added.

        Raises:
            ValueError: it cannot be read, and is left out.
        """
        return sequence

    @property
    def transforms(self) -> bool:
        """Whether :meth:`transform` does anything."""
        return type(self).transform is not Deserializer.transform

    def files(self) -> list[str]:
        """Paths of the files that hold the data or list it, by which a checkpoint recognises its data."""
        return []

    def describe(self) -> dict[str, Any]:
        """Its entry in a configuration: its ``type``, and what belongs to it, such as ``file`` and ``input``."""
        return {"type": type(self).__name__}


def estimated_bytes(info: ChunkInfo, streams: Sequence[StreamInformation]) -> int:
    """Bytes that a chunk takes in memory, with what is kept to find its sequences."""
    if info.nbytes or info.samples == UNKNOWN:
        return info.nbytes
    return info.samples * sum(stream.bytes_of_sample for stream in streams) + info.sequences * BYTES_OF_SEQUENCE
