"""The samples of a stream that have been read, combined to sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.types.csr import CsrMatrix
from ..deserializer import StreamData
from ..rows import join_rows
from ..streams import StreamConfiguration
from .grammar import Sample


class Part(NamedTuple):
    """Some sequences of a stream.

    Attributes:
        lengths: samples of each sequence.
        rows: all samples, as an array or CSR matrix.
        short: the line of the first dense sample that lacks numbers; None if there is none.
    """

    lengths: Any
    rows: Any
    short: int | None = None


def csr(values: Any, indices: Any, ends: Any, width: int, is_ordered: bool) -> Any:
    """Sparse samples; the values of several pairs with one index are added up."""
    rows = CsrMatrix(values, indices, ends, width)
    if is_ordered:
        return rows
    matrix = rows.tocsr()
    matrix.sum_duplicates()
    return matrix


def index_type(streams: Sequence[StreamConfiguration], size: int) -> Any:
    """The type of whole numbers that holds every index, and how many there are in a text of this size."""
    return np.dtype(np.int32 if max(size, *(stream.dim for stream in streams), 0) < 2**31 else np.int64)


def part_of_sequence(stream: StreamConfiguration, samples: Sequence[tuple[int, Sample]], dtype: Any, size: int) -> Part:
    """One sequence of samples, which come with the numbers of their lines, of a text of this size."""
    counts = np.array([len(sample.values) for _, sample in samples], np.int64)
    values = np.array([value for _, sample in samples for value in sample.values], dtype)
    lengths = np.array([len(samples)])
    if not stream.is_sparse:
        short = next((line for line, sample in samples if len(sample.values) < stream.dim), None)
        return Part(lengths, filled(values, counts, stream.dim), short)
    type_ = index_type([stream], size)
    indices = np.array([index for _, sample in samples for index in sample.indices], type_)
    return Part(lengths, csr(values, indices, ends_of(counts, type_), stream.dim, False))


def ends_of(counts: Any, dtype: Any) -> Any:
    """Where rows of so many numbers each start, and where the last one ends."""
    ends = np.zeros(len(counts) + 1, dtype)
    np.cumsum(counts, out=ends[1:])
    return ends


def filled(values: Any, counts: Any, width: int) -> Any:
    """Rows of so many numbers each, with zeros behind."""
    if (counts == width).all():
        return values.reshape(-1, width)
    rows = np.zeros((len(counts), width), values.dtype)
    rows[np.arange(width) < counts[:, None]] = values
    return rows


def join(parts: Sequence[Part]) -> StreamData:
    """One part after another."""
    lengths = np.concatenate([part.lengths for part in parts])
    rows = [part.rows for part in parts if part.rows.shape[0]] or [parts[0].rows]
    return StreamData.of_lengths(rows[0] if len(rows) == 1 else join_rows(rows), lengths)
