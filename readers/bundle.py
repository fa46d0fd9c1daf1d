"""Several deserializers as one: sequences that have the same key belong together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData
from .streams import StreamInformation


class Bundle(Deserializer):
    """Follows the first deserializer's sequences and adds those of the others with the same keys; a sequence that one of them lacks is
    left out.  A minibatch counts the samples of the longest, or of the one with the stream that defines its size.

    Args:
        deserializers: two or more.

    Raises:
        RuntimeError: no sequence is in all of them.
    """

    def __init__(self, deserializers: Sequence[Deserializer]) -> None:
        self._first, *self._others = deserializers
        infos = [info for part in deserializers for info in part.stream_infos()]
        self._streams = [
            StreamInformation(info.name, i, info.storage_format, info.dtype, info.sample_shape, info.m_defines_mb_size)
            for i, info in enumerate(infos)
        ]
        self._kept: list[dict[int, Chunk]] = [{} for _ in self._others]
        self._match([any(info.m_defines_mb_size for info in part.stream_infos()) for part in deserializers])

    def _match(self, defining: list[bool]) -> None:
        """For each chunk: the numbers of the sequences that are everywhere, where they lie in the others, and their lengths."""
        places = [_places(other) for other in self._others]
        self._chunks: list[int] = []  # of the first deserializer, those with a sequence that is everywhere
        self._numbers: list[list[int]] = []
        self._places: list[list[Any]] = []
        self._infos: list[SequenceInfos] = []
        missing = 0
        for chunk in range(len(self._first.chunk_infos())):
            infos = self._first.sequence_infos(chunk)
            found = [[place.get(key) for place in places] for key in infos.keys.tolist()]
            numbers = [i for i, row in enumerate(found) if None not in row]
            missing += len(found) - len(numbers)
            if not numbers:
                continue
            where = np.array([found[i] for i in numbers], np.int64).reshape(len(numbers), len(places), 3)
            lengths = np.stack([infos.lengths[numbers], *where[:, :, 2].T])
            counted = lengths[defining.index(True)] if any(defining) else lengths.max(0)
            self._chunks.append(chunk)
            self._numbers.append(numbers)
            self._places.append([where[:, i, :2] for i in range(len(places))])
            self._infos.append(SequenceInfos(counted, infos.keys[numbers]))
        if not self._chunks:
            raise RuntimeError("the deserializers have no sequence in common: no key (sequence id) of the first is in all others")
        if missing:
            warnings.warn(f"{missing} sequences of the first deserializer are left out: the others lack them", UserWarning, stacklevel=4)

    def stream_infos(self) -> list[StreamInformation]:
        return self._streams

    def chunk_infos(self) -> list[ChunkInfo]:
        return [ChunkInfo(len(infos.lengths), int(infos.lengths.sum())) for infos in self._infos]

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        return self._infos[chunk]

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        numbers, first = self._numbers[chunk], self._first.get_chunk(self._chunks[chunk], errors)
        found = {name: _joined([(data, i) for i in numbers]) for name, data in first.items()}
        for i, other in enumerate(self._others):
            places = self._places[chunk][i].tolist()
            needed = {part for part, _ in places}
            self._kept[i] = {part: self._kept[i].get(part) or other.get_chunk(part, errors) for part in needed}
            for info in other.stream_infos():
                found[info.name] = _joined([(self._kept[i][part][info.name], number) for part, number in places])
        return found


def _places(deserializer: Deserializer) -> dict[int, tuple[int, int, int]]:
    """By key the chunk, number and length of a sequence; the first one where a key comes again."""
    found: dict[int, tuple[int, int, int]] = {}
    for chunk in range(len(deserializer.chunk_infos())):
        infos = deserializer.sequence_infos(chunk)
        for number, (key, length) in enumerate(zip(infos.keys.tolist(), infos.lengths.tolist(), strict=True)):
            found.setdefault(key, (chunk, number, length))
    return found


def _joined(places: list[tuple[StreamData, int]]) -> StreamData:
    """Sequences from anywhere, one after another."""
    parts = [data.sequence(number) for data, number in places]
    if hasattr(parts[0], "tocsr"):
        from scipy.sparse import vstack

        rows = vstack(parts, format="csr")
    else:
        rows = np.concatenate(parts)
    return StreamData.of_lengths(rows, [part.shape[0] for part in parts])
