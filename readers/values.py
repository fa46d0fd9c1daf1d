"""A stream's data in a minibatch as a Value, which is padded only when the padded array is accessed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..core.common.cached_property import cached_property
from ..core.common.shape import Shape, size_of
from ..core.types.csr import csr_of, is_csr
from ..core.values.value import NDArrayView, Value
from .rows import StreamData


class SequencesValue(Value):
    """A value of sequences that lie one after another in rows.

    Args:
        data: the sequences.
        shape: of a sample.
        device: its device.
        continues: for each sequence the number of the one in the previous minibatch that it continues, -1 if it is new.
    """

    def __init__(self, data: StreamData, shape: Shape, device: Any = None, continues: Any = None) -> None:
        self._data, self._on = data, device
        self._sample_shape: Shape = shape if is_csr(data.rows) else data.rows.shape[1:]  # free axes have a size here
        self._lease = None
        self._continues = continues
        self.seq_starts = None if continues is None else (continues < 0).tolist()

    @property
    def continues(self) -> Any:
        return self._continues

    @property
    def sample_shape(self) -> Shape:
        return self._sample_shape

    def in_samples(self, shape: Shape) -> SequencesValue:
        rows = self._data.rows
        data = self._data if is_csr(rows) else StreamData(rows.reshape(-1, *shape), self._data.starts)
        return SequencesValue(data, shape, self._on, self._continues)

    @property
    def packed(self) -> tuple[Any, Any]:
        return self._rows, self._data.lengths

    @cached_property
    def _rows(self) -> Any:
        """Rows of steps; a CSR matrix has as many rows for a step as its static shape has without the last axis."""
        rows, per_step = self._data.rows, size_of(self._sample_shape[:-1])
        if not is_csr(rows):
            return rows
        return rows.tocsr() if per_step == 1 else rows.tocsr().reshape(-1, self._sample_shape[-1]).tocsr()

    @cached_property
    def _lengths(self) -> list[int]:
        return self._data.lengths.tolist()

    @cached_property
    def _view(self) -> NDArrayView:
        data, shape = self._data, self.shape
        per_step = size_of(self._sample_shape[:-1]) if is_csr(data.rows) else 1
        if is_csr(data.rows):
            rows = _padded(data, shape[1])
            rows = rows if per_step == 1 else rows.reshape(-1, shape[-1]).tocsr()
            return NDArrayView.from_csr(rows, self._on, borrow=True, shape=shape)
        if data.rows.shape[0] == shape[0] * shape[1]:
            dense = data.rows.reshape(shape)
        else:
            dense = np.zeros(shape, data.rows.dtype)
            dense[np.arange(shape[1]) < data.lengths[:, np.newaxis]] = data.rows
        return NDArrayView.from_dense(np.ascontiguousarray(dense), self._on, borrow=True)

    @property
    def shape(self) -> Shape:
        data = self._data
        return (len(data), 1 if data.is_single else int(data.lengths.max()), *self._sample_shape)

    @property
    def dtype(self) -> Any:
        return self._data.rows.dtype.type

    @property
    def is_sparse(self) -> bool:
        return is_csr(self._data.rows)

    @cached_property
    def _sequences(self) -> list[Any] | None:
        if not self.is_sparse:
            return None
        bounds = self._data.starts * size_of(self._sample_shape[:-1])
        return [self._rows[start:stop] for start, stop in pairwise(bounds.tolist())]

    def as_sequences(self, variable: Any = None) -> list[Any]:
        if self.is_sparse:
            return super().as_sequences(variable)
        rows = self._data.rows.copy()
        return [rows[start:stop] for start, stop in pairwise(self._data.starts.tolist())]


def _padded(data: StreamData, longest: int) -> Any:
    """CSR rows with empty ones behind each sequence that is shorter than the longest."""
    rows, lengths = data.rows, data.lengths
    if rows.shape[0] == len(lengths) * longest:
        return rows.tocsr()
    counts = np.zeros((len(lengths), longest), np.intp)
    counts[np.arange(longest) < lengths[:, np.newaxis]] = np.diff(rows.indptr)
    return csr_of(rows.data, rows.indices, counts.ravel(), rows.shape[1]).tocsr()
