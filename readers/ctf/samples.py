"""What has been read of a stream, put together to sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..deserializer import StreamData
from ..streams import StreamConfiguration
from .scan import Samples


class Part(NamedTuple):
    """Some sequences of a stream.

    Attributes:
        lengths: samples of each sequence.
        counts: how many numbers, or pairs, each sample has.
        values: the numbers of all.
        indices: where the stream is sparse, the index of each number.
        short: the line, from 0, of the first dense sample that lacks numbers; None if there is none.
    """

    lengths: Any
    counts: Any
    values: Any
    indices: Any
    short: int | None = None


def part_of(stream: StreamConfiguration, samples: Samples, lines: Any) -> Part | None:
    """Samples dealt out to sequences of so many *lines* each; None if one of them has too many numbers or too large an index."""
    limit = stream.dim - 1 if stream.is_sparse else stream.dim
    if (samples.indices if stream.is_sparse else samples.counts).max(initial=0) > limit:
        return None
    sequence_of = np.repeat(np.arange(len(lines)), lines)
    lengths = np.bincount(sequence_of[samples.lines], minlength=len(lines))
    short = None if stream.is_sparse else next(iter(samples.lines[samples.counts < stream.dim].tolist()), None)
    return Part(lengths, samples.counts, samples.values, samples.indices, short)


def part_of_lists(sequences: Sequence[Sequence[tuple[list[float], list[int]]]]) -> Part:
    """The same of lists: for each sequence its samples, each the numbers and their indices."""
    samples = [sample for sequence in sequences for sample in sequence]
    values = [value for values, _ in samples for value in values]
    indices = [index for _, indices in samples for index in indices]
    return Part(
        np.array([len(sequence) for sequence in sequences]),
        np.array([len(values) for values, _ in samples], np.int64),
        np.array(values, np.float64),
        np.array(indices, np.int64),
    )


def faults(parts: Sequence[Part], lines: Any) -> Any:
    """Which sequences lack a stream, or have not as many samples as *lines*."""
    lengths = np.stack([part.lengths for part in parts])
    return (lengths.min(0) == 0) | (lengths.max(0) != lines)


def join(stream: StreamConfiguration, parts: Sequence[Part]) -> StreamData:
    """One part after another, as float32 rows."""
    counts = np.concatenate([part.counts for part in parts])
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, as it does for float64
        values = np.concatenate([part.values for part in parts]).astype(np.float32)
    lengths = np.concatenate([part.lengths for part in parts])
    if stream.is_sparse:
        return StreamData.of_lengths(_csr(values, np.concatenate([part.indices for part in parts]), counts, stream.dim), lengths)
    if (counts == stream.dim).all():
        return StreamData.of_lengths(values.reshape(-1, stream.dim), lengths)
    rows = np.zeros((len(counts), stream.dim), np.float32)
    rows[np.arange(stream.dim) < counts[:, None]] = values
    return StreamData.of_lengths(rows, lengths)


def _csr(values: Any, indices: Any, counts: Any, width: int) -> Any:
    from scipy.sparse import csr_matrix

    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = csr_matrix((values, indices.astype(np.int64), starts), shape=(len(counts), width))
    rows.sum_duplicates()
    return rows
