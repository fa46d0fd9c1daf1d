"""Reads text with the compiled :mod:`kernel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..streams import StreamConfiguration
from . import kernel
from .samples import Part, csr, index_type
from .tables import FULL, KINDS, Buffers, Streams

BITS = {np.dtype(np.float32): np.dtype(np.uint32), np.dtype(np.float64): np.dtype(np.uint64)}


def scan(text: Any, starts: Any, lines: Any, streams: Sequence[StreamConfiguration], dtype: Any) -> tuple[list[Part], int]:
    """Read sequences up to the first that must be left to the grammar.

    Args:
        text: bytes of whole lines, the last with its end.
        starts: where in it each sequence starts, and where the last one ends.
        lines: number of each sequence's first line, and of the line after the last one.
        streams: the fields to read.
        dtype: type of the numbers.

    Returns:
        For each stream what has been read, and the number of sequences that have been.
    """
    wanted = _wanted(streams)
    buffers = _first_buffers(streams, len(text), len(starts) - 1, int(lines[-1] - lines[0]), np.dtype(dtype))
    kind = KINDS[np.dtype(dtype)]
    place, why = kernel.read(text, starts, lines, 0, wanted, buffers, kind)
    while why == FULL:
        buffers = _grown(buffers, wanted.dims)
        place, why = kernel.read(text, starts, lines, place, wanted, buffers, kind)
    return [_part(buffers, number, stream, place) for number, stream in enumerate(streams)], place


def try_out() -> None:
    """Read a line."""
    text = np.frombuffer(b"|a 1:2\n", np.uint8)
    scan(text, np.array([0, len(text)]), np.array([0, 1]), [StreamConfiguration("a", 2, True, "a")], np.float32)


def _wanted(streams: Sequence[StreamConfiguration]) -> Streams:
    names = [stream.stream_alias.encode() for stream in streams]
    return Streams(
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum([len(name) for name in names], dtype=np.int64),
        np.array([stream.dim for stream in streams], np.int64),
        np.array([stream.is_sparse for stream in streams]),
    )


def _first_buffers(streams: Sequence[StreamConfiguration], size: int, sequences: int, lines: int, dtype: Any) -> Buffers:
    """Arrays of the estimated sizes; memory that is not written to costs nothing."""
    values = [size // 8 + 1 if stream.is_sparse else min(lines * stream.dim, size // 2 + stream.dim) for stream in streams]
    rows = [lines + 2 for _ in streams]
    return _buffers(values, rows, sequences, dtype, index_type(streams, size))


def _buffers(values: Sequence[int], rows: Sequence[int], sequences: int, dtype: Any, of_indices: Any) -> Buffers:
    first_value, first_row = (np.cumsum([0, *rooms]) for rooms in (values, rows))
    numbers = np.empty(first_value[-1], dtype)
    ends = np.empty(first_row[-1], of_indices)
    ends[first_row[:-1]] = 0
    count = len(values)
    return Buffers(
        values=numbers,
        bits=numbers.view(BITS[dtype]),
        indices=np.empty(first_value[-1], of_indices),
        ends=ends,
        first_value=first_value,
        first_row=first_row,
        counts=np.tile(np.array([0, 0, -1]), (count, 1)),
        work=np.zeros((count, 3), np.int64),
        unordered=np.zeros(count, bool),
        full=np.zeros(count, bool),
        lengths=np.zeros((count, sequences), np.int64),
    )


def _grown(old: Buffers, dims: Any) -> Buffers:
    """Larger arrays for the streams that are full, with their contents."""
    values, rows = np.diff(old.first_value), np.diff(old.first_row)
    values = np.where(old.full, values * 2 + dims, values)
    rows = np.where(old.full, rows * 2, rows)
    new = _buffers(values.tolist(), rows.tolist(), 0, old.values.dtype, old.indices.dtype)
    for stream, (count, held, _) in enumerate(old.counts.tolist()):
        source, target = old.first_value[stream], new.first_value[stream]
        new.values[target : target + count] = old.values[source : source + count]
        new.indices[target : target + count] = old.indices[source : source + count]
        source, target = old.first_row[stream], new.first_row[stream]
        new.ends[target : target + held + 1] = old.ends[source : source + held + 1]
    return new._replace(counts=old.counts, unordered=old.unordered, lengths=old.lengths)


def _part(buffers: Buffers, number: int, stream: StreamConfiguration, sequences: int) -> Part:
    count, rows, short = buffers.counts[number].tolist()
    lengths = buffers.lengths[number, :sequences]
    first = buffers.first_value[number]
    values = buffers.values[first : first + count]
    if not stream.is_sparse:
        return Part(lengths, values.reshape(rows, stream.dim), None if short < 0 else short)
    first_row = buffers.first_row[number]
    ends = buffers.ends[first_row : first_row + rows + 1]
    is_ordered = not buffers.unordered[number]
    return Part(lengths, csr(values, buffers.indices[first : first + count], ends, stream.dim, is_ordered))
