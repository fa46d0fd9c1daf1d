"""The chunks that are in memory: those of the window, and the next ones, which threads read ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .deserializer import UNKNOWN, Chunk, Deserializer, Errors, estimated_bytes
from .pool import Call, Pool


class Chunks:
    """Reads chunks, and keeps as many as a limit allows.

    Args:
        deserializer: reads them.
        errors: counts sequences that cannot be read, which are left out.
        threads: how many read ahead; with 0 chunks are read when they are asked for.
        limit: bytes that chunks may take, unless those that are needed at the same time take more.

    Raises:
        RuntimeError: there are no sequences.
    """

    def __init__(self, deserializer: Deserializer, errors: Errors, threads: int, limit: int) -> None:
        self._deserializer, self._errors, self.limit = deserializer, errors, limit
        self._pool = Pool(threads)
        infos = deserializer.chunk_infos()
        streams = deserializer.stream_infos()
        self._counted = [info.name for info in streams if info.m_defines_mb_size] or [info.name for info in streams]
        self._nbytes = np.array([estimated_bytes(info, streams) for info in infos], np.int64)
        self._samples = np.array([info.samples for info in infos], np.int64)
        self._sequences = np.array([info.sequences for info in infos], np.int64)
        self.count = len(infos)
        self.are_known = bool((self._samples != UNKNOWN).all())
        if not self.count or (self.are_known and not self.samples):
            raise RuntimeError("there are no sequences to read")
        self._lengths: dict[int, Any] = {}  # of chunks that had to be read to know them
        self._held: dict[int, Chunk | Call[Chunk]] = {}

    @property
    def samples(self) -> int:
        """Samples of all chunks, if they are known."""
        return int(self._samples.sum())

    @property
    def sequences(self) -> int:
        """Sequences of all chunks, if they are known."""
        return int(self._sequences.sum())

    # ---- sizes ----

    def before(self, order: Any) -> tuple[Any, Any, Any] | None:
        """See :class:`~cntk.readers.randomizer.Sizes`."""
        if not self.are_known:
            return None
        nbytes, samples, sequences = (np.concatenate([[0], np.cumsum(of[order])]) for of in (self._nbytes, self._samples, self._sequences))
        return nbytes, samples, sequences

    def of(self, chunk: int) -> tuple[int, int]:
        """See :class:`~cntk.readers.randomizer.Sizes`."""
        self.lengths(chunk)
        return int(self._nbytes[chunk]), int(self._samples[chunk])

    def lengths(self, chunk: int) -> Any:
        """Samples of each sequence of a chunk; as many as the longest stream has, or the one that defines the minibatch size."""
        if self.are_known:
            return np.asarray(self._deserializer.sequence_infos(chunk).lengths)
        if chunk not in self._lengths:
            data = self.get(chunk)
            lengths = np.max([data[name].lengths for name in self._counted], axis=0)
            self._nbytes[chunk] = sum(stream.nbytes for stream in data.values())
            self._samples[chunk] = lengths.sum()
            self._lengths[chunk] = None if (lengths == 1).all() else lengths
        lengths = self._lengths[chunk]
        return np.ones(self._samples[chunk], np.int8) if lengths is None else lengths

    def keys(self, chunk: int) -> Any:
        """The keys of the sequences of a chunk that has been read."""
        return self._deserializer.sequence_infos(chunk).keys

    # ---- data ----

    def get(self, chunk: int) -> Chunk:
        """The data of a chunk, read now if no thread has begun to."""
        held = self._held.get(chunk)
        if isinstance(held, Call):
            self._held.pop(chunk)
            held = None if held.cancel() else held.result()
        if held is None:
            held = self._read(chunk)
        self._held[chunk] = held
        return held

    def keep(self, needed: Sequence[int], next: Sequence[int]) -> None:
        """Drop chunks that are not *needed*, and begin to read these and those that come *next*, as many as the limit allows."""
        wanted = dict.fromkeys(needed)
        taken = sum(self._size(chunk) for chunk in wanted)
        for chunk in next:
            taken += 0 if chunk in wanted else self._size(chunk)
            if taken > self.limit:
                break
            wanted[chunk] = None
        for chunk in [chunk for chunk in self._held if chunk not in wanted]:
            held = self._held.pop(chunk)
            if isinstance(held, Call):
                held.cancel()
        if self._pool.threads:
            for chunk in wanted:
                if chunk not in self._held:
                    self._held[chunk] = self._pool.submit(self._read, chunk)

    def stop(self) -> None:
        """Stop the threads."""
        self._pool.stop()

    def renew(self) -> None:
        """Drop everything after a fork, in which the threads are gone."""
        self._pool = Pool(self._pool.threads)
        self._held = {}

    def _size(self, chunk: int) -> int:
        """Bytes of a chunk: as it is, as it was, or the mean of those that have been read."""
        known = int(self._nbytes[chunk])
        return known or int(self._nbytes.sum() / max(np.count_nonzero(self._nbytes), 1))

    def _read(self, chunk: int) -> Chunk:
        return self._deserializer.get_chunk(chunk, self._errors)
