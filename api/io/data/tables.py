"""Data that can be read from any row on: tables, Parquet files by row groups, lists of rows, and datasets of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cntk.core.common.lock import ForkSafeLock
from cntk.eval.tables import ArrowTable, Columns, Table
from cntk.io.data.columns import Streams
from cntk.io.data.recognition import HEAD, Wishes, streams_of
from cntk.readers.deserializer import UNKNOWN, Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData
from cntk.readers.parquet.deserializer import parquet_file, paths_of
from cntk.readers.streams import StreamInformation

CHUNKS = 128
"""Chunks that a table is cut into at least, if it has enough rows: they are dealt out to workers, and all shuffled together."""

ROWS = 1 << 16
"""Rows that a chunk has at most."""


class TableDeserializer(Deserializer):
    """Reads a table part by part.

    Args:
        wishes: what streams are made of the columns.
        names: of all columns.
        rows: of each part.
        part: gives a part by its number, with some columns at least.
        head: gives the first rows in the same way; by default those of the first part.
        told: by column its classes, where the library tells them.
        files: that the table is read from.

    Raises:
        ValueError: there are no rows, or a column can be no stream.
    """

    def __init__(
        self,
        wishes: Wishes,
        names: Sequence[str],
        rows: Sequence[int],
        part: Callable[[int, Sequence[str]], Table],
        head: Callable[[Sequence[str]], Table] | None = None,
        told: Mapping[str, Any] | None = None,
        files: Sequence[str] = (),
    ) -> None:
        if not rows:
            raise ValueError("from_data: the data has no rows")
        self._rows, self._part, self._files = list(rows), part, list(files)
        self._before = np.cumsum([0, *rows])
        wanted = [column for columns in wishes.columns_of_streams(names).values() for column in columns]
        taken = list(dict.fromkeys(wanted))

        def parts() -> Iterable[Table]:
            return (part(number, taken) for number in range(len(rows)))

        first = part(0, taken).part(0, min(rows[0], HEAD)) if head is None else head(taken)
        self.streams: Streams = streams_of(wishes, names, first, parts, told or {})

    @classmethod
    def of_table(cls, wishes: Wishes, table: Table, told: Mapping[str, Any] | None = None) -> TableDeserializer:
        """Of a table in memory, of which nothing is copied but what is read."""
        return cls.of_rows(wishes, table.names, len(table), table.part, told)

    @classmethod
    def of_rows(
        cls, wishes: Wishes, names: Sequence[str], count: int, part: Callable[[int, int], Table], told: Mapping[str, Any] | None = None
    ) -> TableDeserializer:
        """Of so many rows, of which *part* gives those from one to another."""
        bounds = bounds_of(count)
        rows = np.diff(bounds).tolist()
        return cls(wishes, names, rows, lambda number, _: part(*bounds[number : number + 2]), lambda _: part(0, min(count, HEAD)), told)

    def files(self) -> list[str]:
        return self._files

    def stream_infos(self) -> list[StreamInformation]:
        return self.streams.infos()

    def chunk_infos(self) -> Sequence[ChunkInfo]:
        is_known = not self.streams.have_sequences
        return [ChunkInfo(rows, rows) if is_known else ChunkInfo(UNKNOWN, UNKNOWN) for rows in self._rows]

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        lengths = np.ones(self._rows[chunk], np.int64)
        if self.streams.have_sequences:
            lengths = np.max([data.lengths for data in self.get_chunk(chunk, Errors()).values()], axis=0)
        return SequenceInfos(lengths, np.arange(*self._before[chunk : chunk + 2]))

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        try:
            return self.streams.read(self._part(chunk, self.streams.columns))
        except ValueError as error:
            first, last = self._before[chunk : chunk + 2]
            raise ValueError(f"{error} (in the rows {first} to {last - 1})") from None


class ItemDeserializer(Deserializer):
    """Asks a dataset for its samples by number, just before they are served, so that it may draw random numbers for them anew.

    Args:
        wishes: what streams are made of the columns.
        dataset: has a length, and samples by number, each a dictionary or tuple; one thread at a time asks for them.

    Raises:
        ValueError: there are no samples, or a column can be no stream.
    """

    def __init__(self, wishes: Wishes, dataset: Any) -> None:
        self._dataset = dataset
        self._turn = ForkSafeLock()
        self._count = len(dataset)
        if not self._count:
            raise ValueError(f"from_data: the {type(dataset).__name__} is empty")
        try:
            first = [dataset[number] for number in range(min(self._count, HEAD // 10))]
        except (KeyError, TypeError) as error:
            name = type(dataset).__name__
            raise TypeError(f"from_data: the {name} gives no samples by number: {type(error).__name__}: {error}") from None
        head = records(first)
        self.streams = streams_of(wishes, head.names, head, None, {})
        self._bounds = bounds_of(self._count)

    def stream_infos(self) -> list[StreamInformation]:
        return self.streams.infos()

    def chunk_infos(self) -> Sequence[ChunkInfo]:
        return [ChunkInfo(last - first, last - first, 8 * (last - first)) for first, last in pairwise(self._bounds)]

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        first, last = self._bounds[chunk : chunk + 2]
        return SequenceInfos(np.ones(last - first, np.int64), np.arange(first, last))

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        numbers = StreamData.of_steps(np.arange(*self._bounds[chunk : chunk + 2]))
        return {info.name: numbers for info in self.stream_infos()}

    def transform(self, sequence: dict[str, Any], key: int, seed: int) -> dict[str, Any]:
        with self._turn:
            item = self._dataset[int(key)]
        try:
            return {name: data.rows for name, data in self.streams.read(records([item])).items()}
        except ValueError as error:
            raise ValueError(f"{error} (in sample {key} of the {type(self._dataset).__name__})") from None


def parquet(wishes: Wishes, given: Any) -> TableDeserializer:
    """Parquet files, read by row groups.

    Raises:
        ImportError: pyarrow is not installed.
        RuntimeError: a file is missing or damaged.
    """
    groups: list[tuple[str, int]] = []
    rows: list[int] = []
    names: list[str] = []
    for path in paths_of(given):
        with parquet_file(path, "from_data") as file:
            counts = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
            groups += [(path, group) for group, count in enumerate(counts) if count]
            rows += [count for count in counts if count]
            names = names or file.schema_arrow.names

    def part(number: int, columns: Sequence[str]) -> Table:
        path, group = groups[number]
        with parquet_file(path, "from_data") as file:
            if missing := [column for column in columns if column not in file.schema_arrow.names]:
                raise RuntimeError(f"from_data: '{path}' has no column {missing[0]!r}; it has {file.schema_arrow.names}")
            return ArrowTable(file.read_row_group(group, columns=list(columns), use_threads=False))

    return TableDeserializer(wishes, names, rows, part, files=list(dict.fromkeys(path for path, _ in groups)))


def hugging_face(wishes: Wishes, dataset: Any) -> TableDeserializer | ItemDeserializer:
    """A dataset of Hugging Face: by Arrow's tables, or sample by sample where features are decoded, as images are."""
    features = dataset.features
    columns = set(chain_of(wishes.columns_of_streams(dataset.column_names)))
    is_decoded = any(hasattr(features[name], "decode_example") for name in columns)
    if is_decoded or dataset.format["type"] not in (None, "arrow", "numpy", "torch"):
        return ItemDeserializer(wishes, dataset)
    arrow = dataset.with_format("arrow")
    told = {name: classes for name, classes in labels_of(features).items() if name in columns}

    def part(start: int, stop: int) -> Table:
        return ArrowTable(arrow[start:stop])

    return TableDeserializer.of_rows(wishes, dataset.column_names, len(dataset), part, told)


def labels_of(features: Any) -> dict[str, list[str]]:
    """The names of the classes that features of Hugging Face tell."""
    return {name: list(feature.names) for name, feature in (features or {}).items() if hasattr(feature, "names")}


def classes_told(table: Table) -> dict[str, Any]:
    """The classes that a library tells of its columns: categories of pandas, enumerations of Polars."""
    found = {name: _categories(getattr(table.column(name), "dtype", None)) for name in table.names}
    return {name: classes for name, classes in found.items() if classes is not None and len(classes)}


def _categories(dtype: Any) -> list[Any] | None:
    categories = getattr(dtype, "categories", None)
    return None if categories is None or type(dtype).__name__ == "Categorical" else list(categories)  # Polars shares those of all columns


def records(items: Sequence[Any]) -> Columns:
    """Rows, each a dictionary, a tuple or one value, as columns: of tuples, and of single values, ``x`` and ``y``, or ``x0``, ``x1``, …

    Raises:
        ValueError: rows have different columns.
    """
    rows = [as_record(item) for item in items]
    names = list(rows[0])
    for place, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            raise ValueError(f"from_data: row {place} has {', '.join(map(repr, row))}, and the first one {', '.join(map(repr, names))}")
    return Columns({name: [row[name] for row in rows] for name in names}, len(rows))


def as_record(item: Any) -> dict[str, Any]:
    """A row or a minibatch as a dictionary."""
    if isinstance(item, Mapping):
        return {str(name): value for name, value in item.items()}
    if hasattr(item, "_asdict"):
        return dict(item._asdict())
    if isinstance(item, tuple) or (isinstance(item, list) and any(hasattr(part, "shape") for part in item)):
        return dict(zip(names_of_places(len(item)), item, strict=True))
    return {"x": item}


def names_of_places(count: int) -> list[str]:
    """What columns without names are called."""
    return ["x", "y"][:count] if count < 3 else [f"x{place}" for place in range(count)]


def bounds_of(rows: int) -> list[int]:
    """Where the chunks of so many rows begin, and where the last one ends.

    Raises:
        ValueError: there are no rows.
    """
    if not rows:
        raise ValueError("from_data: the data has no rows")
    size = min(-(-rows // CHUNKS), ROWS)
    return [*range(0, rows, size), rows]


def chain_of(columns: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """All columns of streams."""
    return (name for names in columns.values() for name in names)
