"""Parquet files: a column of numbers, or of lists of them, for each input and output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cntk.eval.files.base import Block, Sink, Source, Written
from cntk.eval.predictor import Predictor
from cntk.eval.signature import TensorInfo
from cntk.eval.tables import ArrowTable, Table, arrow, arrow_column
from cntk.readers.rows import StreamData

GROUP_ROWS = 1 << 16
"""Rows of a row group, as far as pieces that are smaller make up so many."""


class ParquetSource(Source):
    """Reads Parquet, the columns that are needed."""

    def __init__(self, path: str, predictor: Predictor) -> None:
        super().__init__(path, predictor)
        with self._opened() as file:
            self.count = file.metadata.num_rows

    def tables(self, first: int) -> Iterator[Table]:
        with self._opened() as file:
            columns = self.columns(file.schema_arrow.names)
            groups, before = list(range(file.metadata.num_row_groups)), 0
            while groups and before + file.metadata.row_group(groups[0]).num_rows <= first:
                before += file.metadata.row_group(groups.pop(0)).num_rows
            if self.count == 0:
                yield ArrowTable(file.schema_arrow.empty_table().select(columns))
            yield from map(ArrowTable, self._from_row(first - before, self._batches(file, groups, columns)))

    def _from_row(self, first: int, batches: Iterator[Any]) -> Iterator[Any]:
        """Batches from a row on, cut as if all before had been read: beside other rows a row may be rounded otherwise."""
        if first == 0:
            yield from batches
            return
        from pyarrow import Table

        size, held, count = self.predictor.batch_rows, [], 0
        for batch in batches:
            held.append(batch.slice(min(first, batch.num_rows)))
            count += held[-1].num_rows
            first = max(first - batch.num_rows, 0)
            while count >= size:
                table = Table.from_batches(held)
                yield table.slice(0, size)
                held, count = table.slice(size).to_batches(), count - size
        if count:
            yield Table.from_batches(held)

    def _batches(self, file: Any, groups: list[int], columns: list[str]) -> Iterator[Any]:
        try:
            yield from file.iter_batches(self.predictor.batch_rows, groups, columns, use_threads=False)
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot read '{self.path}': {error}") from None

    def _opened(self) -> Any:
        arrow(f"'{self.path}'")
        from pyarrow import parquet

        try:
            return parquet.ParquetFile(self.path)
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot read '{self.path}': {error}") from None


class ParquetSink(Sink):
    """Writes Parquet: vectors as lists of a fixed length, sequences as lists of these."""

    def __init__(self, path: str, predictor: Predictor) -> None:
        super().__init__(path, predictor)
        arrow(f"'{path}'")

    def piece(self, block: Block) -> Iterable[bytes]:
        from pyarrow import parquet

        pyarrow = arrow(f"'{self.path}'")
        columns = {name: _joined(parts) for name, parts in block.kept.items()}
        columns |= {info.name: arrow_column(info, rows) for info, rows in block.results.items()}
        written = Written()
        parquet.write_table(pyarrow.table(columns), written, row_group_size=max(block.count, 1))
        return written.taken()

    def whole(self, pieces: Sequence[str]) -> Iterable[bytes]:
        from pyarrow import parquet

        pyarrow = arrow(f"'{self.path}'")
        written = Written()
        waiting: list[Any] = []
        with parquet.ParquetWriter(written, parquet.read_schema(pieces[0])) as writer:
            for number, piece in enumerate(pieces, 1):
                waiting.append(parquet.read_table(piece, use_threads=False))
                if sum(table.num_rows for table in waiting) >= GROUP_ROWS or number == len(pieces):
                    table = pyarrow.concat_tables(waiting)
                    writer.write_table(table, row_group_size=max(table.num_rows, 1))
                    waiting.clear()
                    yield from written.taken()
        yield from written.taken()


def _column(part: Any) -> Any:
    """A part of a column that is passed on."""
    pyarrow = arrow("a table")
    if isinstance(part, np.ndarray):
        return arrow_column(TensorInfo("", part.dtype), StreamData.of_steps(part))
    if isinstance(part, StreamData):
        return arrow_column(TensorInfo("", part.rows.dtype, (), "sequence"), part)
    return part if isinstance(part, (pyarrow.Array, pyarrow.ChunkedArray)) else pyarrow.array(part)


def _joined(parts: Sequence[Any]) -> Any:
    pyarrow = arrow("a table")
    arrays = [_column(part) for part in parts]
    return pyarrow.chunked_array([chunk for one in arrays for chunk in (one.chunks if isinstance(one, pyarrow.ChunkedArray) else [one])])
