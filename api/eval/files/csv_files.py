"""CSV files: a column a number; vectors take several columns, sequences a cell with lists in brackets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np

from cntk.eval.files.base import Block, Sink, Source, text_of_numbers
from cntk.eval.signature import TensorInfo
from cntk.eval.tables import Columns, Table
from cntk.readers.rows import StreamData

LONGEST_CELL = 2**31 - 1
"""Characters, which Python's reader limits to fewer."""
COPIED = 1 << 20
"""Bytes of a piece that are copied at once."""


class CsvSource(Source):
    """Reads CSV, with the names of columns in the first line; of files that end in ``.tsv`` tabs separate cells."""

    def tables(self, first: int) -> Iterator[Table]:
        with open(self.path, encoding="utf-8-sig", newline="") as file:
            lines = self._lines(file)
            names = next(lines, [])
            if not names:
                raise ValueError(f"'{self.path}' is empty; the first line has the names of the columns")
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"'{self.path}' has several columns called {twice[0]!r}")
            places = {name: names.index(name) for name in self.columns(names)}
            rows = islice(lines, first, None)
            number = first
            while (batch := list(islice(rows, self.predictor.batch_rows))) or number == first:
                self._require_whole(batch, len(names), number)
                kept = self.predictor.kept_columns(names)
                yield _CsvColumns({name: [row[place] for row in batch] for name, place in places.items()}, len(batch), number, kept)
                number += len(batch)
                if not batch:
                    return

    def _lines(self, file: Any) -> Iterator[list[str]]:
        csv.field_size_limit(LONGEST_CELL)
        try:
            yield from (row for row in csv.reader(file, delimiter=_delimiter(self.path), strict=True) if row)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"'{self.path}' is not CSV in UTF-8: {error}") from None

    def _require_whole(self, batch: Sequence[list[str]], count: int, first: int) -> None:
        for number, row in enumerate(batch, first):
            if len(row) != count:
                raise ValueError(f"'{self.path}', row {number}: {len(row)} cells, but the first line names {count} columns")


class _CsvColumns(Columns):
    """Cells as texts; the columns of inputs as numbers, or lists of them."""

    def __init__(self, data: Any, count: int, first: int, kept: Sequence[str]) -> None:
        super().__init__(data, count)
        self._first, self._kept = first, kept

    def part(self, start: int, stop: int) -> Table:
        return _CsvColumns({name: cells[start:stop] for name, cells in self.data.items()}, stop - start, self._first + start, self._kept)

    def rows(self, info: TensorInfo, name: str) -> StreamData:
        cells = self.data[name]
        kinds = (np.int64, np.float64) if info.is_sparse else (np.float64,)
        for kind in kinds:
            try:
                return Columns({name: _values(cells, kind)}, len(cells)).rows(info, name)
            except _NoNumbersError:
                continue
        wrong = next(number for number, cell in enumerate(cells) if not _is_number(cell))
        raise ValueError(
            f"column {name!r}, row {self._first + wrong}: expected a number, or numbers in brackets as [1, 2], got {cells[wrong]!r:.60}"
        )


class _NoNumbersError(Exception):
    """Cells hold something else than numbers of a type."""


def _values(cells: Sequence[str], kind: Any) -> Any:
    """Cells as an array of numbers, or as lists of them."""
    try:
        if any(cell.lstrip().startswith("[") for cell in cells):
            return [np.array(json.loads(cell)) for cell in cells]
        return np.array(cells, kind)
    except (ValueError, OverflowError):
        raise _NoNumbersError from None


def _is_number(cell: str) -> bool:
    try:
        _values([cell], np.float64)
    except _NoNumbersError:
        return False
    return True


class CsvSink(Sink):
    """Writes CSV: outputs of several elements as columns ``z_0``, ``z_1``; sequences as lists of steps in brackets."""

    def piece(self, block: Block) -> Iterable[bytes]:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=_delimiter(self.path), lineterminator="\n")
        kept = [[cell for part in parts for cell in _texts(part)] for parts in block.kept.values()]
        results = block.results
        header = [name for info, rows in results.items() for name in _names(info, rows)]
        writer.writerow([*block.kept, *header])
        columns = [_cells(info, rows) for info, rows in results.items()]
        for row in zip(*kept, *columns, strict=True):
            writer.writerow([*row[: len(kept)], *chain.from_iterable(row[len(kept) :])])
        return [text.getvalue().encode()]

    def whole(self, pieces: Sequence[str]) -> Iterable[bytes]:
        for number, piece in enumerate(pieces):
            with open(piece, "rb") as file:
                header = file.readline()
                if not number:
                    yield header
                while data := file.read(COPIED):
                    yield data


def _names(info: TensorInfo, rows: StreamData) -> list[str]:
    elements = int(np.prod(rows.rows.shape[1:]))
    return [info.name] if info.sequence_axis or elements == 1 else [f"{info.name}_{i}" for i in range(elements)]


def _cells(info: TensorInfo, rows: StreamData) -> list[list[str]]:
    """The cells of each row."""
    texts = text_of_numbers(rows.rows)
    if info.sequence_axis is None:
        return [text.split(" ") for text in texts]
    steps = [text if rows.rows.ndim == 1 else f"[{text.replace(' ', ', ')}]" for text in texts]
    return [[f"[{', '.join(steps[start:stop])}]"] for start, stop in pairwise(rows.starts.tolist())]


def _texts(part: Any) -> list[Any]:
    """A column that is passed on, as what its cells hold."""
    if isinstance(part, StreamData):
        return [json.dumps(part.sequence(i).tolist()) for i in range(len(part))]
    values = part.to_pylist() if hasattr(part, "to_pylist") else part.tolist() if isinstance(part, np.ndarray) else part
    return [json.dumps(value) if isinstance(value, list) else value for value in values]


def _delimiter(path: str) -> str:
    return "\t" if path.lower().endswith(".tsv") else ","
