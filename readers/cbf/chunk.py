"""The sequences of a chunk: first the length of each, then, stream by stream, the samples of one after another.

A dense sequence is the number of its samples, and their elements.  A sparse one is the number of its samples, that of all pairs, the
values, the indices, and how many pairs each sample has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.types.csr import csr_matrix_of
from ..deserializer import StreamData
from .layout import Damaged, StreamLayout

WORD = 4
"""Bytes of most numbers; those of a double are two of them."""


def read_stream(words: Any, at: int, stream: StreamLayout, sequences: int) -> tuple[StreamData, int]:
    """Read a stream.

    Args:
        words: a chunk, as numbers of four bytes.
        at: where the stream begins in them.

    Returns:
        Its data, and where it ends.

    Raises:
        Damaged: the data is not a valid stream; the byte is counted from the chunk's beginning.
    """
    width = np.dtype(stream.dtype).itemsize // WORD
    if stream.is_sparse:
        return _sparse(words, at, stream, sequences, width)
    firsts, counts, end = _dense_places(words, at, stream, sequences, width)
    values = _gathered(words, firsts, counts * (stream.dim * width)).view(stream.dtype)
    return StreamData.of_lengths(values.reshape(-1, stream.dim), counts), end


def _dense_places(words: Any, at: int, stream: StreamLayout, sequences: int, width: int) -> tuple[Any, Any, int]:
    """Where the elements of each sequence begin, how many samples it has, and where the last one ends."""
    counts = np.empty(sequences, np.int64)
    firsts = np.empty(sequences, np.int64)
    numbers = memoryview(words)
    for number in range(sequences):
        count = numbers[at] if at < len(numbers) else 0
        end = at + 1 + count * stream.dim * width
        if at >= len(numbers) or end > len(numbers):
            raise Damaged(at * WORD, f"stream '{stream.name}': sequence {number} of {count} samples does not fit into its chunk")
        counts[number], firsts[number] = count, at + 1
        at = end
    return firsts, counts, at


def _sparse(words: Any, at: int, stream: StreamLayout, sequences: int, width: int) -> tuple[StreamData, int]:
    counts, pairs, firsts = (np.empty(sequences, np.int64) for _ in range(3))
    numbers = memoryview(words)
    for number in range(sequences):
        count, held = (numbers[at], numbers[at + 1]) if at + 1 < len(numbers) else (0, 0)
        end = at + 2 + held * (width + 1) + count
        if at + 1 >= len(numbers) or end > len(numbers):
            raise Damaged(
                at * WORD, f"stream '{stream.name}': sequence {number} of {count} samples and {held} pairs does not fit into its chunk"
            )
        counts[number], pairs[number], firsts[number] = count, held, at + 2
        at = end
    values = _gathered(words, firsts, pairs * width).view(stream.dtype)
    indices = _gathered(words, firsts + pairs * width, pairs)
    sizes = _gathered(words, firsts + pairs * (width + 1), counts).astype(np.int64)
    of_sequence = np.add.reduceat(np.append(sizes, 0), np.cumsum(counts) - counts) * (counts > 0) if sequences else sizes
    if (of_sequence != pairs).any():
        wrong = int(np.flatnonzero(of_sequence != pairs)[0])
        raise Damaged(
            int(firsts[wrong]) * WORD, f"stream '{stream.name}': the samples of sequence {wrong} have not as many pairs as it has"
        )
    if indices.max(initial=0) >= stream.dim:
        raise Damaged(at * WORD, f"stream '{stream.name}': the index {indices.max()} lies outside 0 … {stream.dim - 1}")
    rows = _csr(values, indices.view(np.int32), sizes, stream.dim)
    return StreamData.of_lengths(rows, counts), at


def _gathered(words: Any, firsts: Any, counts: Any) -> Any:
    """So many words from each of some places, one after another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return words[np.repeat(firsts - ends + counts, counts) + np.arange(total)]


def _csr(values: Any, indices: Any, sizes: Any, width: int) -> Any:
    rows = csr_matrix_of(values, indices, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32), width)
    rows.sum_duplicates()
    return rows


def stream_bytes(data: StreamData, stream: StreamLayout) -> bytes:
    """The sequences of a stream, as they lie in a chunk."""
    rows = data.rows
    pieces: list[bytes] = []
    if not stream.is_sparse:
        rows = np.ascontiguousarray(rows, np.dtype(stream.dtype).newbyteorder("<"))
        for first, last in zip(data.starts[:-1].tolist(), data.starts[1:].tolist(), strict=True):
            pieces += [np.uint32(last - first).tobytes(), rows[first:last].tobytes()]
        return b"".join(pieces)
    values, indices = rows.data.astype(np.dtype(stream.dtype).newbyteorder("<")), rows.indices.astype("<i4")
    sizes, ends = np.diff(rows.indptr).astype("<i4"), rows.indptr.astype(np.int64)
    for first, last in zip(data.starts[:-1].tolist(), data.starts[1:].tolist(), strict=True):
        begin, end = int(ends[first]), int(ends[last])
        head = np.array([last - first, end - begin], "<u4")
        pieces += [part.tobytes() for part in (head, values[begin:end], indices[begin:end], sizes[first:last])]
    return b"".join(pieces)
