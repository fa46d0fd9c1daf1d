"""Columns of a table as rows of streams: numbers, classes, and several columns side by side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from cntk.core.common.shape import Shape, size_of
from cntk.core.graph.foreign import as_data
from cntk.core.types.csr import csr_of, is_csr
from cntk.eval.rows import rows_of_column
from cntk.eval.signature import TensorInfo
from cntk.eval.tables import Table, values_of
from cntk.readers.rows import StreamData
from cntk.readers.streams import StreamInformation

MISSING = ("NoneType", "NAType", "NaTType")
"""Types of what stands for a value that is missing."""


class Column(ABC):
    """A column of a table, and what is made of it.

    Args:
        name: the column's name.
        is_sequence: whether each row has a sequence of values.

    Attributes:
        name, is_sequence: as above.
        shape: of what is made of one value.
    """

    shape: Shape

    def __init__(self, name: str, is_sequence: bool) -> None:
        self.name, self.is_sequence = name, is_sequence

    @abstractmethod
    def read(self, table: Table, dtype: Any) -> StreamData:
        """The rows of a table.

        Raises:
            ValueError: values are missing, or are not what they are to be.
        """

    def error(self, what: str) -> ValueError:
        """An error about this column."""
        return ValueError(f"from_data: the column {self.name!r} {what}")


class NumberColumn(Column):
    """Numbers, or arrays of numbers, as they are.

    Args:
        name, is_sequence: see :class:`Column`.
        shape: of a sample, or of a step.
        is_sparse: whether they are CSR rows.
    """

    def __init__(self, name: str, shape: Shape, is_sequence: bool, is_sparse: bool = False) -> None:
        super().__init__(name, is_sequence)
        self.shape, self.is_sparse = shape, is_sparse

    def read(self, table: Table, dtype: Any) -> StreamData:
        info = TensorInfo(self.name, np.dtype(dtype), self.shape, "sequence" if self.is_sequence else None, self.is_sparse)
        try:
            found = rows_of_column(info, table.column(self.name))
        except ValueError as error:
            raise self.error(f"cannot be read as {self._described()}: {error}") from None
        values = found.rows.data if is_csr(found.rows) else found.rows
        if np.isnan(values).any():
            rows = np.isnan(values.reshape(len(values), -1)).any(axis=1)
            raise self.error(
                f"has {np.count_nonzero(rows)} missing values (NaN) in the {len(values)} that were read here, the first of them number "
                f"{rows.argmax()}; put numbers in their place, as with .fillna(value), or leave their rows out, as with .dropna()"
            )
        return found

    def _described(self) -> str:
        what = "numbers" if self.shape == (1,) else f"numbers of shape {self.shape}"
        return f"sequences of {what}" if self.is_sequence else what


class ClassColumn(Column):
    """Values that name classes, or are their numbers: their numbers, or one-hot vectors.

    Args:
        name, is_sequence: see :class:`Column`.
        classes: what classes are called, or how many there are.
        is_index: whether it becomes the number of the class in place of a vector.
        leaves_unknown: whether a value that is no class becomes a vector of zeros.
    """

    def __init__(self, name: str, is_sequence: bool, classes: Sequence[Any] | int, is_index: bool, leaves_unknown: bool) -> None:
        super().__init__(name, is_sequence)
        self.classes, self.is_index, self._leaves_unknown = classes, is_index, leaves_unknown
        self._numbers = {} if isinstance(classes, int) else {value: number for number, value in enumerate(classes)}
        self.count = classes if isinstance(classes, int) else len(self._numbers)
        self.shape = (1,) if is_index else (self.count,)

    def read(self, table: Table, dtype: Any) -> StreamData:
        """The numbers of the classes, -1 where there is none."""
        given = table.column(self.name)
        numbers, lengths = self._by_name(given) if self._is_named(given) else self._by_number(given)
        wrong = (numbers < 0) | (numbers >= self.count)
        if wrong.any():
            numbers[wrong] = -1
        return StreamData.of_steps(numbers) if lengths is None else StreamData.of_lengths(numbers, lengths)

    def _is_named(self, given: Any) -> bool:
        """Whether values are looked up; whole numbers are numbers of classes where these are called otherwise."""
        return bool(self._numbers) and not (isinstance(first_of(given), (int, np.integer)) and isinstance(next(iter(self._numbers)), str))

    def _by_name(self, given: Any) -> tuple[Any, Any]:
        values, lengths = flattened(values_of(given))
        try:
            return np.fromiter(map(self._numbers.__getitem__, values), np.int64, len(values)), lengths
        except (KeyError, TypeError):
            found = (self._numbers.get(self._known(value, place), -1) for place, value in enumerate(values))
            return np.fromiter(found, np.int64, len(values)), lengths

    def _known(self, value: Any, place: int) -> Any:
        """A value, if it names a class or may be left out."""
        if is_missing(value):
            raise self.error(
                f"has no value at place {place} of those that were read here; put one in its place, as with .fillna(value), or leave out "
                "its row, as with .dropna()"
            )
        if not self._leaves_unknown and value not in self._numbers:
            raise self._unknown(value)
        return value

    def _by_number(self, given: Any) -> tuple[Any, Any]:
        try:
            given = as_data(f"from_data: the column {self.name!r}", given)
            lengths = None
            if isinstance(given, (list, tuple)):
                given, lengths = flattened(given)
            found = np.asarray(given)
            numbers = found.astype(np.int64)
        except (TypeError, ValueError) as error:
            raise self.error(f"is to have numbers of {self.count} classes: {error}") from None
        if found.ndim > 1 and lengths is None:
            lengths, numbers = np.full(len(found), size_of(found.shape[1:])), numbers.reshape(-1)
        wrong = (numbers != found.reshape(-1)) | (numbers < 0) | (numbers >= self.count)
        if wrong.any() and not self._leaves_unknown:
            raise self._unknown(found.reshape(-1)[wrong.argmax()])
        return numbers, lengths

    def _unknown(self, value: Any) -> ValueError:
        value = value.item() if hasattr(value, "item") else value
        listed = f"numbers from 0 to {self.count - 1}" if not self._numbers else ", ".join(map(repr, list(self._numbers)[:8]))
        more = ", …" if len(self._numbers) > 8 else ""
        remedy = "" if self.is_index else ", or say unknown='zeros' for vectors of zeros in such places"
        wanted = "[all that occur]" if self._numbers else "how many there are"
        return self.error(
            f"has the value {value!r:.60}, which is none of its {self.count} classes ({listed}{more}); "
            f"say classes={{{self.name!r}: {wanted}}}{remedy}"
        )


class Stream:
    """A stream, and the columns that are side by side in it.

    Args:
        name: the stream's name.
        columns: its columns.
        dtype: type of its elements.

    Raises:
        ValueError: what is side by side does not fit together.
    """

    def __init__(self, name: str, columns: Sequence[Column], dtype: Any) -> None:
        self.name, self.columns, self.dtype = name, list(columns), dtype
        self.is_sparse = all(isinstance(column, ClassColumn) and not column.is_index for column in columns)
        self.shape = columns[0].shape if len(columns) == 1 else (sum(size_of(column.shape) for column in columns),)
        if len(columns) == 1 and isinstance(columns[0], NumberColumn):
            self.is_sparse = columns[0].is_sparse
        elif any(isinstance(column, NumberColumn) and column.is_sparse for column in columns):
            raise ValueError(f"from_data: the stream {name!r} has CSR matrices beside other columns; give each a stream of its own")

    @property
    def is_sequence(self) -> bool:
        """Whether any of its columns has sequences."""
        return any(column.is_sequence for column in self.columns)

    def info(self, number: int) -> StreamInformation:
        """Its description."""
        return StreamInformation(self.name, number, "sparse" if self.is_sparse else "dense", self.dtype, self.shape)

    def read(self, table: Table) -> StreamData:
        """The rows of a table.

        Raises:
            ValueError: values are missing or are not what they are to be, or sequences side by side have unequal lengths.
        """
        found = [column.read(table, self.dtype) for column in self.columns]
        first = found[0]
        for column, data in zip(self.columns, found, strict=True):
            if not np.array_equal(data.starts, first.starts):
                raise column.error(f"has sequences of other lengths than {self.columns[0].name!r}, beside which it is in {self.name!r}")
        if len(found) == 1 and isinstance(self.columns[0], NumberColumn):
            return first
        rows = self._sparse([data.rows for data in found]) if self.is_sparse else self._dense([data.rows for data in found])
        return StreamData.of_steps(rows) if first.is_single else StreamData(rows, first.starts)

    def _sparse(self, numbers: Sequence[Any]) -> Any:
        """One-hot vectors side by side."""
        before = np.cumsum([0, *(size_of(column.shape) for column in self.columns)])
        joined = np.stack(numbers, axis=1)
        known = joined >= 0
        indices = (joined + before[:-1])[known].astype(np.int32)
        return csr_of(np.ones(len(indices), self.dtype), indices, known.sum(axis=1), int(before[-1]))

    def _dense(self, parts: Sequence[Any]) -> Any:
        rows = np.zeros((len(parts[0]), size_of(self.shape)), self.dtype)
        start = 0
        for column, part in zip(self.columns, parts, strict=True):
            width = size_of(column.shape)
            if isinstance(column, ClassColumn) and not column.is_index:
                known = np.flatnonzero(part >= 0)
                rows[known, start + part[known]] = 1
            else:
                rows[:, start : start + width] = part.reshape(len(part), width)
            start += width
        return rows.reshape(-1, *self.shape)


class Streams:
    """All streams of a source.

    Args:
        streams: these.

    Attributes:
        columns: names of the columns that they take.
        classes: by column with classes what these are called, or how many there are.
    """

    def __init__(self, streams: Sequence[Stream]) -> None:
        self.streams = list(streams)
        self.columns = list(dict.fromkeys(column.name for stream in streams for column in stream.columns))
        self.classes: dict[str, Any] = {
            column.name: column.classes for stream in streams for column in stream.columns if isinstance(column, ClassColumn)
        }

    def infos(self) -> list[StreamInformation]:
        """Their descriptions."""
        return [stream.info(number) for number, stream in enumerate(self.streams)]

    @property
    def have_sequences(self) -> bool:
        """Whether there are any."""
        return any(stream.is_sequence for stream in self.streams)

    def read(self, table: Table) -> dict[str, StreamData]:
        """The rows of a table, by stream."""
        return {stream.name: stream.read(table) for stream in self.streams}


def values_in(columns: Mapping[str, Any]) -> int:
    """How many rows columns have.

    Raises:
        ValueError: they differ.
    """
    counts = {name: column.shape[0] if hasattr(column, "shape") else len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"from_data: all columns need the same number of rows, got {counts}")
    return next(iter(counts.values()), 0)


def first_of(column: Any) -> Any:
    """The first value that is there, out of lists too; None if there is none among the first thousand."""
    for value in values_of(first_rows(column, 1000)):
        found = first_of(value) if is_list(value) and len(value) else value
        if not is_list(found) and not is_missing(found):
            return found.item() if hasattr(found, "item") else found
    return None


def first_rows(column: Any, count: int) -> Any:
    """At most so many rows of a column."""
    return column.iloc[:count] if hasattr(column, "iloc") else column[:count]


def flattened(values: Sequence[Any]) -> tuple[Any, Any]:
    """Values out of lists of any length, nested or not, and how many belong to each; None where there are no lists."""
    if not any(map(is_list, values)):
        return values, None
    parts = [flattened(value)[0] if is_list(value) else [value] for value in values]
    return list(chain.from_iterable(parts)), [len(part) for part in parts]


def is_list(value: Any) -> bool:
    """Whether it holds several values."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict)) and getattr(value, "ndim", 1) > 0


def is_missing(value: Any) -> bool:
    """Whether it says that there is no value."""
    return type(value).__name__ in MISSING or (isinstance(value, (float, np.floating)) and bool(np.isnan(value)))
