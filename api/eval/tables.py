"""Tables of pandas, Polars and Arrow, and dictionaries of columns, behind one interface; none of the libraries is imported here first."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cntk.core.common.dtypes import is_half
from cntk.eval.rows import rows_of_column
from cntk.readers.rows import StreamData

if TYPE_CHECKING:
    from cntk.eval.signature import TensorInfo


Results = Mapping["TensorInfo", StreamData]
"""Results of a model, by output."""


class Table(ABC):
    """Columns of equal lengths.

    Args:
        data: the table as its library has it.

    Attributes:
        data: as above.
        names: of the columns, in order.
    """

    names: Sequence[str] = ()

    def __init__(self, data: Any) -> None:
        self.data = data

    @abstractmethod
    def __len__(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def column(self, name: str) -> Any:
        """A column as its library has it."""

    @abstractmethod
    def part(self, start: int, stop: int) -> Table:
        """The rows from one to another."""

    @abstractmethod
    def made(self, kept: Sequence[str], columns: Results) -> Any:
        """A table of the library with these columns of this one, and new ones."""

    def rows(self, info: TensorInfo, name: str) -> StreamData:
        """A column as rows of an input."""
        try:
            return rows_of_column(info, self.column(name))
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from None


class PandasTable(Table):
    """A DataFrame of pandas; the result has the same index."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self.names = [str(label) for label in data.columns]

    def __len__(self) -> int:
        return len(self.data)

    def column(self, name: str) -> Any:
        return self.data.iloc[:, self.names.index(name)]

    def part(self, start: int, stop: int) -> Table:
        return PandasTable(self.data.iloc[start:stop])

    def made(self, kept: Sequence[str], columns: Results) -> Any:
        pandas: Any = sys.modules["pandas"]
        new = {info.name: pandas.Series(_cells(info, column), index=self.data.index) for info, column in columns.items()}
        return pandas.DataFrame({**{name: self.column(name) for name in kept}, **new}, index=self.data.index)


class PolarsTable(Table):
    """A DataFrame of Polars."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self.names = data.columns

    def __len__(self) -> int:
        return len(self.data)

    def column(self, name: str) -> Any:
        return self.data[name]

    def part(self, start: int, stop: int) -> Table:
        return PolarsTable(self.data[start:stop])

    def made(self, kept: Sequence[str], columns: Results) -> Any:
        import polars

        return polars.DataFrame(
            [*(self.data[name] for name in kept), *(self._series(polars, info, column) for info, column in columns.items())]
        )

    @staticmethod
    def _series(polars: Any, info: TensorInfo, column: StreamData) -> Any:
        rows = polars.Series(info.name, _numbers(column.rows))
        if info.sequence_axis is None:
            return rows
        return polars.Series(info.name, [rows[start:stop] for start, stop in pairwise(column.starts.tolist())], polars.List(rows.dtype))


class ArrowTable(Table):
    """A table or record batch of PyArrow."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self.names = data.schema.names

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def column(self, name: str) -> Any:
        return self.data.column(name)

    def part(self, start: int, stop: int) -> Table:
        return ArrowTable(self.data.slice(start, stop - start))

    def made(self, kept: Sequence[str], columns: Results) -> Any:
        arrays = {
            **{name: self.column(name) for name in kept},
            **{info.name: arrow_column(info, column) for info, column in columns.items()},
        }
        return type(self.data).from_arrays(list(arrays.values()), names=list(arrays))


class Columns(Table):
    """A dictionary of columns, such as a reader gives."""

    def __init__(self, data: Mapping[str, Any], count: int) -> None:
        super().__init__(data)
        self.names, self._count = list(data), count

    def __len__(self) -> int:
        return self._count

    def column(self, name: str) -> Any:
        return self.data[name]

    def part(self, start: int, stop: int) -> Table:
        part = slice(start, stop)
        taken = {name: column.take(part) if isinstance(column, StreamData) else column[part] for name, column in self.data.items()}
        return Columns(taken, stop - start)

    def made(self, kept: Sequence[str], columns: Results) -> Any:
        return {**{name: self.data[name] for name in kept}, **{info.name: column for info, column in columns.items()}}


def table_of(data: Any) -> Table | None:
    """Data as a table; None if it is none.

    Raises:
        ImportError: it is a table of a library that exports Arrow's data, and PyArrow, which reads it, is not installed.
        TypeError: it is a table that has yet to be computed.
    """
    pandas, polars, pyarrow = (_imported(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return PandasTable(data)
    if polars is not None and isinstance(data, polars.DataFrame):
        return PolarsTable(data)
    if polars is not None and isinstance(data, polars.LazyFrame):
        raise TypeError("Predictor: a LazyFrame of Polars has no rows before it is computed; give frame.collect()")
    if pyarrow is not None and isinstance(data, (pyarrow.Table, pyarrow.RecordBatch)):
        return ArrowTable(data)
    if hasattr(data, "__arrow_c_stream__") and (hasattr(data, "columns") or hasattr(data, "column_names")):
        return ArrowTable(arrow(f"a {type(data).__name__}").table(data))
    return None


def values_of(column: Any) -> list[Any]:
    """The values of a column of any library as Python's."""
    for convert in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, convert):
            found: list[Any] = getattr(column, convert)()
            return found
    return list(column)


def arrow(what: str) -> Any:
    """The package pyarrow.

    Raises:
        ImportError: it is not installed, so that *what* cannot be read or written.
    """
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"{what} is read and written by PyArrow; install it with: pip install 'opencntk[parquet]'") from None
    return pyarrow


def _imported(name: str) -> Any:
    """A package that the program has imported; None if it has not, so that it cannot have objects of it."""
    return sys.modules.get(name)


def arrow_column(info: TensorInfo, column: StreamData) -> Any:
    """Rows as an array of PyArrow: of numbers, of lists of a fixed length, and of lists of these for sequences."""
    pyarrow = arrow("a table")
    numbers = np.ascontiguousarray(_numbers(column.rows))
    array = pyarrow.array(numbers.reshape(-1))
    for size in reversed(numbers.shape[1:]):
        array = pyarrow.FixedSizeListArray.from_arrays(array, size)
    if info.sequence_axis is None:
        return array
    return pyarrow.LargeListArray.from_arrays(pyarrow.array(column.starts, pyarrow.int64()), array)


def _cells(info: TensorInfo, column: StreamData) -> Any:
    """Rows as what pandas has in its cells: numbers, or arrays."""
    numbers = _numbers(column.rows)
    if info.sequence_axis is None and numbers.ndim == 1:
        return numbers
    parts = numbers if info.sequence_axis is None else [numbers[start:stop] for start, stop in pairwise(column.starts.tolist())]
    cells = np.empty(len(column), object)
    for place, part in enumerate(parts):
        cells[place] = part
    return cells


def _numbers(rows: Any) -> Any:
    """Elements as tables have them: single ones as numbers, and those of 16 bits, which not all tables have, as float32."""
    if rows.shape[1:] == (1,):
        rows = rows[:, 0]
    return rows.astype(np.float32) if is_half(rows.dtype) else rows
