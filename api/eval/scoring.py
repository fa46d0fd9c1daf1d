"""Models applied to files, so that what was done before a kill need not be done again."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any

from cntk.core.storage.file_lock import FileLock
from cntk.core.storage.files import make_folders, status_of, write_file
from cntk.eval.files import sink_of, source_of
from cntk.eval.files.base import Block
from cntk.eval.predictor import Predictor, stamp_of

PIECE_BYTES = 32 << 20
PIECE_SECONDS = 10.0
"""A piece is written when it has so many bytes, or when the last one is so long ago."""
_PIECE = re.compile(r"(\d{15})-(\d{15})")
Progress = Callable[[int, "int | None"], Any]


def predict_file(predictor: Predictor, source: Any, target: Any, restart: bool = False, progress: Progress | None = None) -> int:
    """Apply a model to a file, and write the results, row by row in the same order, to another.

    Formats are CSV, NPZ, CNTK's text format and Parquet, by the suffix.  A part of the file is in memory at a time.  Results are kept in
    pieces, in the folder ``<target>.pieces``, until all are there and the file is written, as a whole; a run that was killed is taken up
    where the last piece ends, unless the model, the file or what is asked for has changed.

    Args:
        predictor: the model.
        source: the file with the data.
        target: the file to write.
        restart: whether pieces of an earlier run are thrown away.
        progress: called with the number of rows that are done, and of all where that is known.

    Returns:
        How many rows there are.

    Raises:
        ValueError: the suffix of a file is that of no format, the two are the same, or the data does not fit.
        OSError: a file cannot be read or written, or another process is writing the same one.

    >>> import pathlib, tempfile
    >>> x = C.input_variable(2, name='x')
    >>> predictor = C.eval.Predictor(C.layers.Dense(1, init=1, name='z')(x))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data, results = pathlib.Path(folder, 'data.csv'), pathlib.Path(folder, 'results.ctf')
    ...     _ = data.write_text('x_0,x_1\\n1,2\\n3,4\\n')
    ...     C.eval.predict_file(predictor, data, results)
    ...     print(results.read_text(), end='')
    2
    |z 3
    |z 7
    """
    source, target = os.fspath(source), os.path.realpath(os.fspath(target))
    if os.path.exists(target) and os.path.samefile(source, target):
        raise ValueError(f"'{target}' is the file with the data; give another one for the results")
    status_of(target, target)  # before anything is computed
    reader, sink = source_of(source, predictor), sink_of(target, predictor)
    make_folders(os.path.dirname(target))
    with FileLock(f"{target}.lock", target):
        asked = {**predictor.description(), "source": [os.path.realpath(source), *stamp_of(source)], "target": os.path.basename(target)}
        pieces = Pieces(f"{target}.pieces", asked)
        done = pieces.begin(restart)
        try:
            for block in _blocks(predictor, reader.tables(done), done, reader.count, progress):
                pieces.add(block, sink.piece(block))
            write_file(target, sink.whole(pieces.paths()))
        except BaseException:
            if not pieces.paths():
                pieces.remove()
            raise
        pieces.remove()
    return pieces.rows


def _blocks(predictor: Predictor, tables: Iterator[Any], done: int, count: int | None, progress: Progress | None) -> Iterator[Block]:
    """Results in blocks, each of as many rows as belong into a piece."""
    block, began = Block(done), monotonic()
    for table in tables:
        block.add(table, predictor.predict_table(table), predictor.kept_columns(table.names))
        done += len(table)
        if progress is not None:
            progress(done, count)
        if block.nbytes >= PIECE_BYTES or monotonic() >= began + PIECE_SECONDS:
            yield block
            block, began = Block(done), monotonic()
    if block.count or not done:
        yield block


class Pieces:
    """The folder of the pieces of a file.

    Args:
        folder: its path.
        description: of what is computed; pieces of something else are thrown away.

    Attributes:
        rows: how many rows the pieces have.
    """

    def __init__(self, folder: str, description: dict[str, Any]) -> None:
        self._folder, self._description = folder, description
        self._about = os.path.join(folder, "about.json")
        self.rows = 0

    def begin(self, restart: bool) -> int:
        """Find the pieces that are there; the number of their rows."""
        if restart or self._found() != self._description:
            self.remove()
            make_folders(self._folder)
            write_file(self._about, [json.dumps(self._description).encode()])
        self.paths()
        return self.rows

    def add(self, block: Block, content: Any) -> None:
        """Write a piece."""
        write_file(os.path.join(self._folder, f"{block.first:015}-{block.count:015}"), content)

    def paths(self) -> list[str]:
        """The paths of the pieces, in order, as far as none is missing."""
        self.rows, found = 0, []
        for name in sorted(os.listdir(self._folder)):
            match = _PIECE.fullmatch(name)
            if match and int(match[1]) == self.rows:
                found.append(os.path.join(self._folder, name))
                self.rows += int(match[2])
        return found

    def remove(self) -> None:
        """Remove the folder."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._folder)

    def _found(self) -> Any:
        """What the pieces that are there belong to."""
        try:
            with open(self._about, encoding="utf-8") as file:
                return json.load(file)
        except (FileNotFoundError, ValueError):
            return None
