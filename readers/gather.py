"""Collects sequences from the chunks of a window for the streams of a minibatch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .chunks import Chunks
from .deserializer import Chunk, Deserializer, Errors
from .pool import Call, Pool
from .randomizer import Window
from .rows import Picks, StreamData, join_rows, require_one_shape

Streams = dict[str, StreamData]
"""By the stream's name the sequences of a minibatch."""


class Gatherer:
    """Picks sequences out of chunks, and transforms them if the deserializer does.

    Args:
        deserializer: of the sequences.
        chunks: where they are.
        errors: counts sequences that cannot be transformed, which are left out.
        seed: of the transforms; the number of the sweep is added.
        threads: how many transform, as a share of the processors' number if there are any.
    """

    def __init__(self, deserializer: Deserializer, chunks: Chunks, errors: Errors, seed: int, threads: int) -> None:
        self._deserializer, self._chunks, self._errors, self._seed = deserializer, chunks, errors, seed
        self._names = [info.name for info in deserializer.stream_infos()]
        self._pool = Pool((os.cpu_count() or 1) if threads and deserializer.transforms else 0)

    def gather(self, window: Window, places: Any) -> Streams | None:
        """The sequences at *places* of a window, in this order, without those that cannot be read; None if none is left."""
        if window.is_one_chunk and isinstance(places, slice) and not self._deserializer.transforms:
            return self._readable(self._of_chunk(window.extent.chunks[0], places)) if places.start < places.stop else None
        parts, numbers = window.sequences(places)
        if not len(parts):
            return None
        if self._deserializer.transforms:
            return self._transformed(window, parts, numbers)
        return self._readable(self._picked(window.extent.chunks, parts, numbers))

    def stop(self) -> None:
        """Stop the threads."""
        self._pool.stop()

    def renew(self) -> None:
        """Forget threads that are gone after a fork."""
        self._pool = Pool(self._pool.threads)

    def _of_chunk(self, chunk: int, numbers: Any) -> Streams:
        data = self._chunks.get(chunk)
        return {name: data[name].take(numbers) for name in self._names}

    def _picked(self, chunks: Sequence[int], parts: Any, numbers: Any) -> Streams:
        if len(chunks) == 1:
            return self._of_chunk(chunks[0], numbers)
        picks = Picks(parts, numbers)
        held = [self._chunks.get(chunks[part]) for part in picks.parts]
        return {name: picks.of([data[name] for data in held]) for name in self._names}

    def _readable(self, found: Streams) -> Streams | None:
        """Without the sequences that could not be read; None if none is left."""
        first = found[self._names[0]]
        if first.is_single:
            return found
        readable = np.flatnonzero(first.lengths)
        if len(readable) == len(first.lengths):
            return found
        return {name: data.take(readable) for name, data in found.items()} if len(readable) else None

    # ---- with transforms ----

    def _transformed(self, window: Window, parts: Any, numbers: Any) -> Streams | None:
        chunks = window.extent.chunks
        used = {part: (self._chunks.get(chunks[part]), self._chunks.keys(chunks[part])) for part in np.unique(parts).tolist()}
        wanted = [(*used[part], number) for part, number in zip(parts.tolist(), numbers.tolist(), strict=True)]
        seed = self._seed + window.extent.sweep
        if self._pool.threads:
            calls = [self._pool.submit(self._one, data, keys[number], number, seed) for data, keys, number in wanted]
            made = _results(calls)
        else:
            made = [self._one(data, keys[number], number, seed) for data, keys, number in wanted]
        readable = [sequences for sequences in made if sequences is not None]
        return {name: _of_sequences(name, [one[name] for one in readable]) for name in self._names} if readable else None

    def _one(self, data: Chunk, key: Any, number: int, seed: int) -> dict[str, Any] | None:
        sequence = {name: data[name].sequence(number) for name in self._names}
        if not sequence[self._names[0]].shape[0]:
            return None
        try:
            return self._deserializer.transform(sequence, key, seed)
        except ValueError as error:
            self._errors.leave_out(error)
            return None


def _results(calls: list[Call[Any]]) -> list[Any]:
    try:
        return [call.result() for call in calls]
    finally:
        for call in calls:
            call.cancel()


def _of_sequences(name: str, sequences: list[Any]) -> StreamData:
    require_one_shape(name, sequences)
    return StreamData.of_lengths(join_rows(sequences), [part.shape[0] for part in sequences])
