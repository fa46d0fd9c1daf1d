"""Streams of a reader: their descriptions, and their data in minibatches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..core.common.dtypes import DataType, as_dtype, data_type_of
from ..core.common.shape import Shape, as_shape, size_of
from ..core.graph.tensor import SharedArrayMixin
from ..core.values.value import Value

STORAGE_FORMATS = ("dense", "sparse")

BYTES_OF_SPARSE_SAMPLE = 64
"""Five numbers with their indices, and where they start."""


class StreamInformation:
    """Describes a stream; equal descriptions are equal, so that one serves as the key of a minibatch's data.

    Args:
        name: the stream's name.
        stream_id: its number in the source.
        storage_format: ``'dense'`` or ``'sparse'``.
        dtype: NumPy type of the elements.
        shape: shape of a sample.
        defines_mb_size: whether the samples of this stream alone are counted when a minibatch is filled.

    Raises:
        ValueError: another storage format, or an invalid element type.

    >>> C.io.StreamInformation("labels", 1, "sparse", np.float32, (10,))
    labels([10])
    """

    def __init__(self, name: str, stream_id: int, storage_format: str, dtype: Any, shape: Any, defines_mb_size: bool = False) -> None:
        if storage_format not in STORAGE_FORMATS:
            raise ValueError(f"StreamInformation '{name}': the storage format must be 'dense' or 'sparse', got {storage_format!r}")
        self.m_name = name
        self.m_id = stream_id
        self.storage_format = storage_format
        self.dtype = as_dtype(dtype)
        self.sample_shape: Shape = as_shape(shape)
        self.m_defines_mb_size = bool(defines_mb_size)

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.m_name

    @property
    def is_sparse(self) -> bool:
        """Whether samples come as CSR rows."""
        return self.storage_format == "sparse"

    @property
    def elements(self) -> int:
        """How many elements a sample has."""
        return size_of(self.sample_shape)

    @property
    def bytes_of_sample(self) -> int:
        """Bytes that a sample takes in memory, estimated for a sparse one."""
        known = size_of([max(dim, 1) for dim in self.sample_shape])
        return BYTES_OF_SPARSE_SAMPLE if self.is_sparse else known * np.dtype(self.dtype).itemsize

    @property
    def m_storage_format(self) -> int:
        """Number of the storage format, as the engine has it: 0 dense, 1 sparse."""
        return STORAGE_FORMATS.index(self.storage_format)

    @property
    def m_element_type(self) -> DataType:
        """Number of the element type."""
        return data_type_of(self.dtype)

    def _key(self) -> tuple[Any, ...]:
        return self.m_id, self.m_name, self.storage_format, self.dtype, self.sample_shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamInformation) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.m_id, self.m_name))

    def __repr__(self) -> str:
        return f"{self.m_name}({list(self.sample_shape)})"


@dataclass(frozen=True)
class StreamConfiguration:
    """Declares which field of a text file becomes a stream.

    Attributes:
        name: the stream's name.
        dim: number of elements of a sample.
        is_sparse: whether samples are written as ``index:value``.
        stream_alias: name of the field in the file.
        defines_mb_size: whether the samples of this stream alone are counted when a minibatch is filled.

    >>> C.io.StreamConfiguration('words', dim=1000, is_sparse=True, stream_alias='w')
    StreamConfiguration(name='words', dim=1000, is_sparse=True, stream_alias='w', defines_mb_size=False)
    """

    name: str
    dim: int
    is_sparse: bool = False
    stream_alias: str = ""
    defines_mb_size: bool = False


class MinibatchData(SharedArrayMixin, NDArrayOperatorsMixin):
    """One stream's share of a minibatch.

    It takes part in arithmetic as the array that ``asarray`` gives.

    Args:
        value: the data.
        num_sequences: how many sequences it holds.
        num_samples: how many samples (steps) it holds.
        sweep_end: whether a sweep over the data ends in the minibatch.

    >>> C.io.MinibatchData(C.Value(np.ones((2, 1, 3), np.float32)), 2, 2, False)
    MinibatchData(data=Value([2 x 1 x 3], CPU), samples=2, seqs=2)
    >>> (2 * C.io.MinibatchData(C.Value(np.ones((1, 1, 3), np.float32)), 1, 1, False) + 1).tolist()
    [[[3.0, 3.0, 3.0]]]
    """

    __eq__: Any = object.__eq__
    __ne__: Any = object.__ne__
    __hash__ = object.__hash__

    def __init__(self, value: Value, num_sequences: int, num_samples: int, sweep_end: bool) -> None:
        self.data = value
        self.num_sequences = self.number_of_sequences = num_sequences
        self.num_samples = self.number_of_samples = num_samples
        self.end_of_sweep = self.sweep_end = sweep_end

    @property
    def value_to_feed(self) -> Value:
        """The data for a function's input."""
        return self.data

    @property
    def shape(self) -> Shape:
        """Shape with batch and sequence axis: ``(sequences, steps of the longest, *sample shape)``."""
        return self.data.shape

    @property
    def mask(self) -> Any:
        """Array ``(sequences, longest)``: 2 at a sequence's start, 1 at its other steps, 0 for padding.

        Raises:
            AttributeError: all sequences are equally long, so that nothing is padded.
        """
        return self.data.mask

    @property
    def is_sparse(self) -> bool:
        """Whether the data is CSR."""
        return self.data.is_sparse

    def as_sequences(self, variable: Any = None) -> list[Any]:
        """The sequences one by one, without padding.

        Args:
            variable: the input they are for; needed where the data is sparse.

        Raises:
            ValueError: the data is sparse and *variable* is missing.
        """
        return self.data.as_sequences(variable)

    def _to_array(self) -> Any:
        return self.data._to_array()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(one.asarray() if isinstance(one, MinibatchData) else one for one in inputs), **options)

    def _shown(self) -> tuple[Any, bool]:
        return self.data._shown()

    def __len__(self) -> int:
        return self.num_sequences

    def __repr__(self) -> str:
        return f"MinibatchData(data={self.data!r}, samples={self.num_samples}, seqs={self.num_sequences})"
