"""Sequences that lie one after another in the rows of an array or CSR matrix, picked and joined without a loop over them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.common.cached_property import cached_property
from ..core.types.csr import CsrMatrix, csr_of, is_csr
from ..core.types.sparse import join, parts_of


class StreamData:
    """What a chunk, or a minibatch, holds of one stream: samples one after another, and where each sequence starts.

    Attributes:
        rows: array ``(samples, *sample shape)``, CSR matrix ``(samples, elements)``, SciPy's or :class:`~cntk.core.types.csr.CsrMatrix`, or
            one-dimensional array of objects that the deserializer makes samples of when they are served.
        starts: for each sequence its first sample, and the number of all samples at the end.

    >>> from cntk.extend import StreamData
    >>> data = StreamData.of_lengths(np.array([[1], [2], [3]]), [2, 1])
    >>> len(data), data.lengths, data.sequence(0).tolist()
    (2, array([2, 1]), [[1], [2]])
    """

    def __init__(self, rows: Any, starts: Any) -> None:
        self.rows, self.starts = rows, np.asarray(starts)

    @classmethod
    def of_lengths(cls, rows: Any, lengths: Any) -> StreamData:
        """Samples *rows* that make sequences of these *lengths*."""
        return cls(rows, np.concatenate([[0], np.cumsum(lengths)]))

    @classmethod
    def of_steps(cls, rows: Any) -> StreamData:
        """Samples *rows* of which each is a sequence."""
        made = cls(rows, np.arange(rows.shape[0] + 1))
        made.is_single = True
        return made

    def __len__(self) -> int:
        """How many sequences there are."""
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> Any:
        """Samples of each sequence; one that could not be read has none."""
        return np.diff(self.starts)

    @cached_property
    def is_single(self) -> bool:
        """Whether every sequence has one sample."""
        return len(self.starts) == self.rows.shape[0] + 1 and bool((self.lengths == 1).all())

    @property
    def nbytes(self) -> int:
        """Bytes in memory; of objects, those that say how long they are."""
        rows = self.rows
        if is_csr(rows):
            held = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
        elif rows.dtype == object:
            held = sum(len(item) for item in rows if isinstance(item, bytes))
        else:
            held = rows.nbytes
        return int(held + self.starts.nbytes)

    def sequence(self, number: int) -> Any:
        """The samples of one sequence."""
        return self.rows[self.starts[number] : self.starts[number + 1]]

    def take(self, numbers: Any) -> StreamData:
        """The sequences of these numbers, in this order, or of a slice; a copy."""
        if isinstance(numbers, slice):
            starts = self.starts[numbers.start : numbers.stop + 1]
            rows = self.rows[starts[0] : starts[-1]]
            rows = rows if is_csr(rows) else rows.copy()
            return StreamData.of_steps(rows) if self.is_single else StreamData(rows, starts - starts[0])
        if self.is_single:
            return StreamData.of_steps(take_rows(self.rows, numbers))
        starts = self.starts[numbers]
        lengths = self.starts[np.add(numbers, 1)] - starts
        return StreamData.of_lengths(take_rows(self.rows, ranges(starts, lengths)), lengths)


class Picks:
    """Sequences that are picked out of several parts.

    Args:
        parts: for each the part that it is in.
        numbers: for each its number there.

    Attributes:
        parts: those parts that have any, in order.
    """

    def __init__(self, parts: Any, numbers: Any) -> None:
        order = np.argsort(parts, kind="stable")
        ordered = parts[order]
        cuts = np.flatnonzero(np.diff(ordered, prepend=-1)).tolist()
        self.parts: list[int] = ordered[cuts].tolist()
        bounds = [*cuts, len(order)]
        self._places = [order[start:stop] for start, stop in pairwise(bounds)]
        self._numbers = [numbers[places] for places in self._places]
        self._count = len(order)

    def of(self, data: Sequence[StreamData]) -> StreamData:
        """The sequences in the order in which they were picked, given what the :attr:`parts` hold."""
        rows = [one.rows for one in data]
        if all(one.is_single for one in data):
            return StreamData.of_steps(_placed(rows, self._numbers, self._places, self._count))
        firsts = [one.starts[numbers] for one, numbers in zip(data, self._numbers, strict=True)]
        lengths = [one.lengths[numbers] for one, numbers in zip(data, self._numbers, strict=True)]
        starts = _starts(lengths, self._places, self._count)
        targets = [ranges(starts[places], length) for places, length in zip(self._places, lengths, strict=True)]
        return StreamData(_placed(rows, list(map(ranges, firsts, lengths)), targets, int(starts[-1])), starts)


def _starts(lengths: Sequence[Any], places: Sequence[Any], count: int, dtype: Any = np.int64) -> Any:
    """Where each of so many parts starts, and where the last one ends, given the lengths of those at *places*."""
    starts = np.zeros(count + 1, dtype)
    for length, place in zip(lengths, places, strict=True):
        starts[place + 1] = length
    return np.cumsum(starts, out=starts)


def _placed(parts: Sequence[Any], sources: Sequence[Any], targets: Sequence[Any], count: int) -> Any:
    """So many rows, of which those of the parts at *sources* are put at *targets*."""
    dtype = np.result_type(*(part.dtype for part in parts))
    if not is_csr(parts[0]):
        rows = np.empty((count, *parts[0].shape[1:]), dtype)
        for part, source, target in zip(parts, sources, targets, strict=True):
            rows[target] = part[source]
        return rows
    counts = [part.indptr[source + 1] - part.indptr[source] for part, source in zip(parts, sources, strict=True)]
    indptr = _starts(counts, targets, count, np.result_type(*(part.indptr.dtype for part in parts)))
    data = np.empty(indptr[-1], dtype)
    indices = np.empty(indptr[-1], np.result_type(*(part.indices.dtype for part in parts)))
    for part, source, target, held in zip(parts, sources, targets, counts, strict=True):
        elements, places = ranges(part.indptr[source], held), ranges(indptr[target], held)
        data[places], indices[places] = part.data[elements], part.indices[elements]
    return CsrMatrix(data, indices, indptr, parts[0].shape[1])


def joined(parts: Sequence[StreamData]) -> StreamData:
    """Sequences of several, one after another."""
    if len(parts) == 1:
        return parts[0]
    return StreamData.of_lengths(join_rows([part.rows for part in parts]), np.concatenate([part.lengths for part in parts]))


def ranges(starts: Any, lengths: Any) -> Any:
    """Numbers that count up from each start, so many, one after another: for starts 3, 9 and lengths 2, 1 it is 3, 4, 9."""
    if len(lengths) and (lengths == lengths[0]).all():
        return (np.asarray(starts)[:, np.newaxis] + np.arange(lengths[0])).ravel()
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


def take_rows(rows: Any, index: Any) -> Any:
    """Rows of an array or CSR matrix."""
    if not is_csr(rows):
        return rows.take(index, axis=0)
    counts = np.diff(rows.indptr)[index] if 2 * len(index) > rows.shape[0] else rows.indptr[np.add(index, 1)] - rows.indptr[index]
    where = ranges(rows.indptr[index], counts)
    return csr_of(rows.data[where], rows.indices[where], counts, rows.shape[1])


def require_one_shape(name: str, parts: Sequence[Any]) -> None:
    """See that samples of the stream *name* have one shape.

    Raises:
        RuntimeError: they do not.
    """
    shapes = sorted({part.shape[1:] for part in parts})
    if len(shapes) > 1:
        found = " and ".join(map(str, shapes[:2]))
        raise RuntimeError(f"stream '{name}': samples of one minibatch must have one shape, got {found}; scale images to one size")


def join_rows(parts: Sequence[Any]) -> Any:
    """Arrays or CSR matrices below each other."""
    if not is_csr(parts[0]):
        return np.concatenate(parts)
    return CsrMatrix(*join([parts_of(part) for part in parts]), parts[0].shape[1])


def one_hot_rows(classes: Any, count: int, where: str, dtype: Any = np.float32) -> Any:
    """A one-hot CSR row for each class number.

    Raises:
        ValueError: a number is not a class; *where* says what was read.
    """
    numbers = np.asarray(classes).reshape(-1)
    wrong = (numbers < 0) | (numbers >= count) | (numbers != np.floor(numbers))
    if wrong.any():
        raise ValueError(f"{where}: expected class numbers from 0 to {count - 1}, got {numbers[wrong.argmax()]}, {wrong.argmax()} further")
    return csr_of(np.ones(len(numbers), dtype), numbers.astype(np.int32), np.ones(len(numbers), np.intp), count)
