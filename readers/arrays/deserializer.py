"""The deserializer of NumPy's files."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ...core.common.cached_property import cached_property
from ...core.common.dtypes import is_float_type
from ..deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData
from ..rows import one_hot_rows
from ..streams import StreamInformation

CHUNK_SIZE = 16 << 20
"""Bytes that the streams of a chunk take."""


class NumpyDeserializer(Deserializer):
    """Reads arrays from ``.npy`` files, by memory map, or from an ``.npz`` file: rows along the first axis are samples.

    Whole numbers become float32.  With *lengths* rows are steps of sequences; an array with a row for each sequence has one sample in each.

    Args:
        files: by the stream's name a ``.npy`` file or an array, or the name of an ``.npz`` file, whose arrays are the streams.
        classes: by the stream's name how many classes there are, where its numbers stand for one-hot vectors: such a stream is sparse.
        lengths: steps of each sequence: an array, a ``.npy`` file, or the name of an array in the ``.npz`` file.

    Raises:
        ValueError: no arrays, or *classes* of a stream that does not exist.
        RuntimeError: a file is missing or is not an array, or rows and *lengths* are incompatible.

    >>> x, y = np.arange(6).reshape(3, 2), np.array([1, 0, 1])
    >>> source = C.io.MinibatchSource(C.io.NumpyDeserializer({"x": x, "y": y}, classes={"y": 2}), randomize=False)
    >>> minibatch = source.next_minibatch(2)
    >>> minibatch[source.streams.x].asarray().tolist(), minibatch[source.streams.y].asarray().tolist()
    ([[[0.0, 1.0]], [[2.0, 3.0]]], [[[0.0, 1.0]], [[1.0, 0.0]]])
    """

    def __init__(self, files: Any, classes: Mapping[str, int] | None = None, lengths: Any = None) -> None:
        self._classes = dict(classes or {})
        self._arrays, steps = _arrays(files, lengths)
        missing = sorted(set(self._classes) - set(self._arrays))
        if not self._arrays or missing:
            raise ValueError(f"NumpyDeserializer: expected arrays and classes of these, got arrays {list(self._arrays)}, classes {classes}")
        self._steps = None if steps is None else _lengths(steps)
        rows = {name: array.shape[0] if array.ndim else 0 for name, array in self._arrays.items()}
        count = next(iter(rows.values())) if self._steps is None else len(self._steps)
        total = count if self._steps is None else int(self._steps.sum())
        wrong = {name: n for name, n in rows.items() if n not in (count, total) or not n}
        if wrong:
            wanted = f"{total} steps, or {count} sequences" if self._steps is not None else f"{count} samples, as the first has"
            raise RuntimeError(f"NumpyDeserializer: expected rows for {wanted}; got {wrong}")
        self._count = count

    def stream_infos(self) -> list[StreamInformation]:
        return [self._info(i, name, array) for i, (name, array) in enumerate(self._arrays.items())]

    def _info(self, number: int, name: str, array: Any) -> StreamInformation:
        if name in self._classes:
            return StreamInformation(name, number, "sparse", np.float32, (self._classes[name],))
        dtype = array.dtype.type if is_float_type(array.dtype.type) else np.float32
        return StreamInformation(name, number, "dense", dtype, array.shape[1:] or (1,))

    def chunk_infos(self) -> Sequence[ChunkInfo]:
        bounds = self._bounds.tolist()
        ends = bounds if self._steps is None else self._starts[bounds].tolist()
        return [ChunkInfo(last - first, end - start) for (first, last), (start, end) in zip(pairwise(bounds), pairwise(ends), strict=True)]

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        first, last = self._bounds[chunk : chunk + 2]
        return SequenceInfos(np.diff(self._starts_in(first, last)), np.arange(first, last))

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        first, last = self._bounds[chunk : chunk + 2]
        starts = self._starts_in(first, last)
        found: Chunk = {}
        for info, array in zip(self.stream_infos(), self._arrays.values(), strict=True):
            if array.shape[0] != self._count or self._steps is None:
                found[info.name] = StreamData(self._rows(info, array, starts[0], starts[-1]), starts - starts[0])
            else:
                found[info.name] = StreamData.of_steps(self._rows(info, array, first, last))
        return found

    def _rows(self, info: StreamInformation, array: Any, first: int, last: int) -> Any:
        part = array[first:last]
        if info.is_sparse:
            return one_hot_rows(part, self._classes[info.name], f"NumpyDeserializer: stream '{info.name}', row {first}", info.dtype)
        return np.array(part, info.dtype).reshape(-1, *info.sample_shape)  # a copy: the file may be mapped

    @cached_property
    def _starts(self) -> Any:
        return np.concatenate([[0], np.cumsum(np.asarray(self._steps))])

    def _starts_in(self, first: int, last: int) -> Any:
        """Where some sequences start, and where the last one ends."""
        return np.arange(first, last + 1) if self._steps is None else self._starts[first : last + 1]

    @cached_property
    def _bounds(self) -> Any:
        """The first sequence of each chunk, and their number."""
        nbytes = sum(info.bytes_of_sample for info in self.stream_infos())
        steps = max(CHUNK_SIZE // nbytes, 1)
        if self._steps is None:
            return np.append(np.arange(0, self._count, steps), self._count)
        slots = self._starts[:-1] // steps
        return np.concatenate([[0], np.flatnonzero(np.diff(slots)) + 1, [self._count]])


def _arrays(files: Any, lengths: Any) -> tuple[dict[str, Any], Any]:
    """Arrays by name, and those of the lengths."""
    if isinstance(files, (str, os.PathLike)):
        with _loaded(files) as held:
            found = {name: _member(files, held, name) for name in held.files}
        if isinstance(lengths, str) and lengths in found:
            lengths = found.pop(lengths)
    else:
        found = {name: _array(given) for name, given in files.items()}
    return found, None if lengths is None else _array(lengths)


def _array(given: Any) -> Any:
    return _loaded(given) if isinstance(given, (str, os.PathLike)) else np.asarray(given)


def _loaded(path: Any) -> Any:
    """An array by memory map, or the arrays of an ``.npz`` file."""
    try:
        return np.load(path, mmap_mode="r" if Path(path).suffix == ".npy" else None, allow_pickle=False)
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error, MemoryError) as error:
        raise RuntimeError(f"NumpyDeserializer: cannot read arrays from '{path}': {error}") from None


def _member(path: Any, held: Any, name: str) -> Any:
    """An array of an ``.npz`` file."""
    try:
        return held[name]
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error, NotImplementedError, MemoryError) as error:
        raise RuntimeError(f"NumpyDeserializer: cannot read the array '{name}' from '{path}': {type(error).__name__}: {error}") from None


def _lengths(given: Any) -> Any:
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given) or (given < 1).any():
        raise RuntimeError(f"NumpyDeserializer: lengths must be whole numbers from 1, got {given!r:.100}")
    return np.array(given, np.int64)
