"""The deserializer of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from glob import glob
from typing import Any

import numpy as np

from ...core.types.arguments import mapping
from ..deserializer import UNKNOWN, Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData
from ..rows import one_hot_rows
from ..streams import StreamInformation


class ParquetDeserializer(Deserializer):
    """Reads columns of Parquet files; every row group is a chunk, and every row of the table a sequence.

    A value is a number or a list of numbers, nested or not: of a dense stream, as many as samples of its shape need, one after another;
    of a sparse one, class numbers, each of which is a sample, one-hot.

    Args:
        filename: the file, a pattern such as ``part-*.parquet``, or a list of files.
        streams: by the stream's name a ``StreamDef`` with the column as ``field``, its ``shape`` and ``is_sparse``.

    Raises:
        ImportError: pyarrow is not installed.
        ValueError: no streams, or one without column or shape.
        RuntimeError: a file is missing, damaged, or has no such column of numbers.

    >>> C.io.ParquetDeserializer("none.parquet", C.io.StreamDefs(x=C.io.StreamDef(field="x", shape=2)))  # doctest: +SKIP
    Traceback (most recent call last):
    RuntimeError: ParquetDeserializer: cannot read 'none.parquet': ...
    """

    def __init__(self, filename: Any, streams: Mapping[str, Mapping[str, Any]]) -> None:
        mapping("ParquetDeserializer", "streams", streams)
        self._streams = [_information(i, name, stream) for i, (name, stream) in enumerate(streams.items())]
        if not self._streams:
            raise ValueError("ParquetDeserializer: no streams are given; write StreamDefs(name=StreamDef(field=..., shape=...))")
        self._columns = {name: stream["stream_alias"] for name, stream in streams.items()}
        self._groups: list[tuple[str, int]] = []
        self._rows: list[int] = []
        self._infos: list[ChunkInfo] = []
        for path in paths_of(filename):
            self._add(path)
        if not self._groups:
            raise RuntimeError(f"ParquetDeserializer: there are no rows in {filename!r}")
        self._before = np.cumsum([0, *self._rows])

    def _add(self, path: str) -> None:
        """Note the row groups of a file."""
        with parquet_file(path) as file:
            schema = file.schema_arrow
            missing = [column for column in self._columns.values() if column not in schema.names]
            if missing:
                raise RuntimeError(f"ParquetDeserializer: '{path}' has no column {missing[0]!r}; it has {schema.names}")
            is_known = all(_has_one_sample(info, schema.field(self._columns[info.name]).type) for info in self._streams)
            for group in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                if rows:
                    self._groups.append((path, group))
                    self._rows.append(rows)
                    self._infos.append(ChunkInfo(rows, rows) if is_known else ChunkInfo(UNKNOWN, UNKNOWN))

    def files(self) -> list[str]:
        return list(dict.fromkeys(path for path, _ in self._groups))

    def stream_infos(self) -> list[StreamInformation]:
        return self._streams

    def chunk_infos(self) -> Sequence[ChunkInfo]:
        return self._infos

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        lengths = np.ones(self._rows[chunk], np.int64)
        if self._infos[chunk].samples == UNKNOWN:
            data = self.get_chunk(chunk, Errors())
            defining = [info.name for info in self._streams if info.m_defines_mb_size] or list(data)
            lengths = np.max([data[name].lengths for name in defining], axis=0)
        return SequenceInfos(lengths, np.arange(len(lengths)) + self._before[chunk])

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        path, group = self._groups[chunk]
        with parquet_file(path) as file:
            try:
                table = file.read_row_group(group, columns=list(self._columns.values()), use_threads=False)
            except (OSError, ValueError) as error:
                raise RuntimeError(f"ParquetDeserializer: cannot read row group {group} of '{path}': {error}") from None
        where = f"'{path}', row group {group}"
        return {info.name: _stream_data(where, info, table[self._columns[info.name]]) for info in self._streams}


def _information(number: int, name: str, stream: Mapping[str, Any]) -> StreamInformation:
    shape, is_sparse = stream.get("dim"), bool(stream.get("is_sparse"))
    if not stream.get("stream_alias") or shape is None:
        raise ValueError(f"ParquetDeserializer: stream '{name}' needs the column and the shape; write StreamDef(field=..., shape=...)")
    return StreamInformation(name, number, "sparse" if is_sparse else "dense", np.float32, shape, bool(stream.get("defines_mb_size")))


def paths_of(filename: Any) -> list[str]:
    """The files of a pattern, sorted, or of a list."""
    if not isinstance(filename, (str, os.PathLike)):
        return [os.fspath(path) for path in filename]
    return sorted(glob(os.fspath(filename))) or [os.fspath(filename)]


def parquet_file(path: str, who: str = "ParquetDeserializer") -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(f"{who} needs pyarrow; install it with: pip install 'opencntk[parquet]'") from None
    try:
        return parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise RuntimeError(f"{who}: cannot read '{path}': {error}") from None


def _has_one_sample(info: StreamInformation, type: Any) -> bool:
    """Whether the type of a column tells that every value is one sample."""
    from pyarrow import types

    size = 1
    while types.is_fixed_size_list(type):
        size, type = size * type.list_size, type.value_type
    is_number = types.is_integer(type) or types.is_floating(type) or types.is_boolean(type)
    return is_number and size == (1 if info.is_sparse else info.elements)


def _stream_data(where: str, info: StreamInformation, column: Any) -> StreamData:
    where = f"ParquetDeserializer: {where}, column of stream '{info.name}'"
    column = column.combine_chunks()
    counts = np.ones(len(column), np.int64)
    if column.null_count:
        raise RuntimeError(f"{where}: row {np.flatnonzero(np.asarray(column.is_null()))[0]} has no value")
    while hasattr(column, "value_lengths") or hasattr(column.type, "list_size"):
        column, counts = _opened_lists(column, counts)
    try:
        numbers = column.to_numpy(zero_copy_only=False)
        if numbers.dtype.kind not in "fiub":
            raise ValueError(f"expected numbers, or lists of them, got {column.type}")
        if info.is_sparse:
            return StreamData.of_lengths(one_hot_rows(numbers, info.elements, "class numbers", info.dtype), counts)
        lengths, rest = np.divmod(counts, info.elements)
        if rest.any() or not lengths.all():
            row = int((rest + (lengths == 0)).argmax())
            raise ValueError(f"row {row} has {counts[row]} numbers; samples of shape {info.sample_shape} take {info.elements} each")
    except ValueError as error:
        raise RuntimeError(f"{where}: {error}") from None
    return StreamData.of_lengths(numbers.astype(info.dtype, copy=False).reshape(-1, *info.sample_shape), lengths)


def _opened_lists(column: Any, counts: Any) -> tuple[Any, Any]:
    """The items of a column of lists, and how many belong to each row of the table, given how many lists do."""
    inner = np.asarray(column.value_lengths()) if hasattr(column, "value_lengths") else np.full(len(column), column.type.list_size)
    ends = np.concatenate([[0], np.cumsum(inner)])
    return column.flatten(), np.diff(ends[np.concatenate([[0], np.cumsum(counts)])])
