"""What formats of files have in common: sources give parts of tables, sinks make files of results."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cntk.core.graph.foreign import as_data
from cntk.eval.predictor import Predictor
from cntk.eval.rows import joined_result
from cntk.eval.signature import TensorInfo
from cntk.eval.tables import Table
from cntk.readers.rows import StreamData, joined


class Source(ABC):
    """Reads a file part by part.

    Args:
        path: the file.
        predictor: says which columns are needed, and how many rows at once.

    Attributes:
        path, predictor: as above.
        count: how many rows there are; None where that is not known beforehand.
    """

    count: int | None = None

    def __init__(self, path: str, predictor: Predictor) -> None:
        self.path, self.predictor = path, predictor

    @abstractmethod
    def tables(self, first: int) -> Iterator[Table]:
        """The rows from *first* on, in tables of ``predictor.batch_rows`` rows at most; one table at least, which may be empty.

        Raises:
            ValueError: the file is damaged, or holds no numbers where some are needed.
        """

    def columns(self, names: Sequence[str]) -> list[str]:
        """Those columns, of all that the file has, that are needed."""
        needed = {name for wanted in self.predictor.columns_of_inputs(names).values() for name in wanted}
        return [name for name in names if name in needed or name in self.predictor.kept_columns(names)]


class Block:
    """Results that go to a file together.

    Attributes:
        first: number of the first row.
        count: how many rows there are.
        nbytes: memory of the results.
        kept: by column that is passed on its parts, one after another.
    """

    def __init__(self, first: int) -> None:
        self.first, self.count, self.nbytes = first, 0, 0
        self._results: dict[TensorInfo, list[StreamData]] = {}
        self.kept: dict[str, list[Any]] = {}

    def add(self, table: Table, results: Mapping[TensorInfo, StreamData], kept: Sequence[str]) -> None:
        """Append results for the rows of a table, and columns of that."""
        for info, rows in results.items():
            self._results.setdefault(info, []).append(rows)
            self.nbytes += rows.nbytes
        for name in kept:
            self.kept.setdefault(name, []).append(table.column(name))
        self.count += len(table)

    @property
    def results(self) -> dict[TensorInfo, StreamData]:
        """Rows by output."""
        return {info: joined(parts) for info, parts in self._results.items()}


class Sink(ABC):
    """Makes a file of results: of each block a piece, and the file of all pieces.

    Args:
        path: the file.
        predictor: says what is written.
    """

    def __init__(self, path: str, predictor: Predictor) -> None:
        self.path, self.predictor = path, predictor

    @abstractmethod
    def piece(self, block: Block) -> Iterable[bytes]:
        """The content of the piece of a block."""

    @abstractmethod
    def whole(self, pieces: Sequence[str]) -> Iterable[bytes]:
        """The content of the file, given the paths of its pieces, which are read one by one."""


class Written(io.RawIOBase):
    """A file that libraries write to, whose bytes are taken as they come."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._waiting.append(piece)
        self._length += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._length

    def taken(self) -> list[bytes]:
        """What has been written since the last time."""
        waiting, self._waiting = self._waiting, []
        return waiting


def numbers_of(name: str, parts: Sequence[Any]) -> StreamData:
    """A column that is passed on, as numbers.

    Raises:
        ValueError: it holds something else.
    """
    data = [part if isinstance(part, StreamData) else as_data(f"column {name!r}", part) for part in parts]
    rows = [part if isinstance(part, StreamData) else _rows(name, part) for part in data]
    return joined(rows)


def _rows(name: str, part: Any) -> StreamData:
    if isinstance(part, list) and part and isinstance(part[0], np.ndarray):
        return joined_result(TensorInfo(name, part[0].dtype, (), "sequence"), part)
    array = np.asarray(part)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"column {name!r} holds {array.dtype} data, and files of this format have numbers alone; leave it out of keep")
    return StreamData.of_steps(array)


def text_of_numbers(rows: Any) -> list[str]:
    """Rows of numbers as texts, with as many digits as their type needs, separated by spaces."""
    flat = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
    if flat.dtype.kind in "iub":
        return [" ".join(map(str, row)) for row in flat.astype(np.int64 if flat.dtype.kind != "u" else np.uint64).tolist()]
    form = " ".join(["%.17g" if flat.dtype == np.float64 else "%.9g"] * flat.shape[1])
    return [form % tuple(row) for row in flat.tolist()]
