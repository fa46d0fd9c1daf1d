"""Several deserializers as one: sequences that have the same key belong together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.common.lock import ForkSafeLock
from ..core.common.user_frame import warn_user
from .deserializer import UNKNOWN, Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData, estimated_bytes
from .rows import Picks, take_rows
from .streams import StreamInformation

KEPT = 64 << 20
"""Bytes of the others' chunks that are kept, since the next chunk of the leading one may need them as well."""


class Bundle(Deserializer):
    """Follows the sequences of one deserializer, the primary or else the first, and adds those of the others with the same keys; a
    sequence that one of them lacks is left out.  A minibatch counts the samples of the longest, or of the one with the stream that
    defines its size.

    Args:
        deserializers: two or more.

    Raises:
        RuntimeError: no sequence is in all of them, several are primary, or sizes are known only when chunks are read.
    """

    def __init__(self, deserializers: Sequence[Deserializer]) -> None:
        primary = [part for part in deserializers if part.is_primary]
        if len(primary) > 1:
            raise RuntimeError(f"one deserializer at most may be primary, got {len(primary)} of {len(deserializers)}")
        self._all = list(deserializers)
        self._leading = primary[0] if primary else deserializers[0]
        if self._leading.broadcast:
            streams = sorted(self._leading.broadcast)
            raise RuntimeError(f"{type(self._leading).__name__} leads, so its streams {streams} cannot be broadcast")
        self._others = [_Index(part) for part in deserializers if part is not self._leading]
        infos = [info for part in deserializers for info in part.stream_infos()]
        self._streams = [
            StreamInformation(info.name, i, info.storage_format, info.dtype, info.sample_shape, info.m_defines_mb_size)
            for i, info in enumerate(infos)
        ]
        ordered = [self._leading, *(other.part for other in self._others)]
        defining = [any(info.m_defines_mb_size for info in part.stream_infos()) for part in ordered]
        self._defining = defining.index(True) if any(defining) else None
        self._match()

    def _match(self) -> None:
        """Find the chunks of the leading deserializer with a sequence that all others have, and these sequences."""
        self._chunks: list[int] = []
        self._infos: list[ChunkInfo] = []
        missing = 0
        for chunk, info in enumerate(self._leading.chunk_infos()):
            if info.samples == UNKNOWN:
                raise RuntimeError(f"{type(self._leading).__name__} cannot be read together with others: it does not know sizes of chunks")
            numbers, lengths, _, _ = self._found(chunk)
            missing += info.sequences - len(numbers)
            if len(numbers):
                nbytes = estimated_bytes(info, self._leading.stream_infos()) * len(numbers) / info.sequences
                nbytes += sum(other.bytes_of_sequence for other in self._others) * len(numbers)
                self._chunks.append(chunk)
                self._infos.append(ChunkInfo(len(numbers), int(lengths.sum()), int(nbytes)))
        if not self._chunks:
            raise RuntimeError("the deserializers have no sequence in common: no key (sequence id) of the leading one is in all others")
        if missing:
            warn_user(f"{missing} sequences of the leading deserializer are left out: the others lack them")

    def _found(self, chunk: int) -> tuple[Any, Any, Any, list[Any]]:
        """The sequences of a leading chunk that all others have: numbers, lengths, keys, and where they are in each of the others."""
        infos = self._leading.sequence_infos(chunk)
        keys = np.asarray(infos.keys)
        places = [other.places(keys) for other in self._others]
        numbers = np.flatnonzero(np.min(places, axis=0) >= 0)
        places = [place[numbers] for place in places]
        lengths = [np.asarray(infos.lengths)[numbers], *(other.lengths[place] for other, place in zip(self._others, places, strict=True))]
        counted = np.max(lengths, axis=0) if self._defining is None else lengths[self._defining]
        return numbers, counted, keys[numbers], places

    def stream_infos(self) -> list[StreamInformation]:
        return self._streams

    def chunk_infos(self) -> list[ChunkInfo]:
        return self._infos

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        _, lengths, keys, _ = self._found(self._chunks[chunk])
        return SequenceInfos(lengths, keys)

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        numbers, _, _, places = self._found(self._chunks[chunk])
        found = {name: data.take(numbers) for name, data in self._leading.get_chunk(self._chunks[chunk], errors).items()}
        lengths = np.max([data.lengths for data in found.values()], axis=0)
        for other, place in zip(self._others, places, strict=True):
            more = other.get(place, errors)
            found |= more | {name: _repeated(name, more[name], lengths) for name in other.part.broadcast}
        return _readable({info.name: found[info.name] for info in self._streams})

    @property
    def transforms(self) -> bool:
        return any(part.transforms for part in self._all)

    def transform(self, sequence: dict[str, Any], key: int, seed: int) -> dict[str, Any]:
        for part in self._all:
            if part.transforms:
                sequence = sequence | part.transform({info.name: sequence[info.name] for info in part.stream_infos()}, key, seed)
        return sequence

    def files(self) -> list[str]:
        return [path for part in self._all for path in part.files()]

    def describe(self) -> dict[str, Any]:
        return {"deserializers": [part.describe() for part in self._all]}


def _repeated(name: str, data: StreamData, lengths: Any) -> StreamData:
    """The one sample of each sequence so many times; none where it could not be read."""
    if data.lengths.max(initial=0) > 1:
        raise RuntimeError(f"stream '{name}' is broadcast: expected one sample in each sequence, got {data.lengths.max()}")
    times = np.where(data.lengths > 0, lengths, 0)
    return StreamData.of_lengths(take_rows(data.rows, np.repeat(data.starts[:-1], times)), times)


class _Index:
    """Finds the sequences of a deserializer by their keys; the first one where a key comes again.

    Attributes:
        part: the deserializer.
        lengths: samples of its sequences, in the order of the data.
        bytes_of_sequence: bytes that one takes in memory, on average.
    """

    def __init__(self, part: Deserializer) -> None:
        infos = part.chunk_infos()
        if any(info.samples == UNKNOWN for info in infos):
            raise RuntimeError(f"{type(part).__name__} cannot be read together with others: it does not know sizes of chunks")
        sequences = [part.sequence_infos(chunk) for chunk in range(len(infos))]
        self.part = part
        self.lengths = np.concatenate([one.lengths for one in sequences])
        self._bounds = np.cumsum([0, *(info.sequences for info in infos)])
        self._keys, self._first = np.unique(_comparable(np.concatenate([one.keys for one in sequences])), return_index=True)
        self.bytes_of_sequence = sum(estimated_bytes(info, part.stream_infos()) for info in infos) / max(int(self._bounds[-1]), 1)
        self._kept: OrderedDict[int, Chunk] = OrderedDict()
        self._lock = ForkSafeLock()

    def places(self, keys: Any) -> Any:
        """By key the number of a sequence in all the data, -1 where there is none."""
        wanted = _comparable(keys)
        at = np.minimum(self._keys.searchsorted(wanted), len(self._keys) - 1)
        return np.where(self._keys[at] == wanted, self._first[at], -1)

    def get(self, places: Any, errors: Errors) -> Chunk:
        """The sequences at these places."""
        chunks = self._bounds.searchsorted(places, side="right") - 1
        picks = Picks(chunks, places - self._bounds[chunks])
        held = [self._chunk(chunk, errors) for chunk in picks.parts]
        return {info.name: picks.of([data[info.name] for data in held]) for info in self.part.stream_infos()}

    def _chunk(self, chunk: int, errors: Errors) -> Chunk:
        with self._lock:
            data = self._kept.get(chunk)
            if data is not None:
                self._kept.move_to_end(chunk)
                return data
        data = self.part.get_chunk(chunk, errors)
        with self._lock:
            self._kept[chunk] = data
            while len(self._kept) > 1 and sum(one.nbytes for kept in self._kept.values() for one in kept.values()) > KEPT:
                self._kept.popitem(last=False)
        return data


def _comparable(keys: Any) -> Any:
    """Keys of one type: whole numbers of 64 bits, or text."""
    keys = np.asarray(keys)
    return keys.astype(np.uint64) if keys.dtype.kind in "iub" else keys.astype(str)


def _readable(chunk: Chunk) -> Chunk:
    """A chunk in which a sequence that one stream lacks is in none."""
    there = np.min([data.lengths for data in chunk.values()], axis=0) > 0
    if there.all():
        return chunk
    numbers = np.flatnonzero(there)
    return {name: StreamData.of_lengths(data.take(numbers).rows, np.where(there, data.lengths, 0)) for name, data in chunk.items()}
