"""Files in CNTK's text format: a field for each input and output."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cntk.eval.files.base import Block, Sink, Source, numbers_of, text_of_numbers
from cntk.eval.predictor import Predictor
from cntk.eval.signature import TensorInfo
from cntk.eval.tables import Columns, Table
from cntk.io.stream_def import StreamDef, StreamDefs
from cntk.readers.ctf.deserializer import CTFDeserializer
from cntk.readers.deserializer import Errors
from cntk.readers.rows import StreamData

LOOKED_AT = 1 << 16
"""Bytes at the beginning of a file that tell its fields, and which of them are sparse."""
COPIED = 1 << 20
"""Bytes of a piece that are copied at once."""
_FIELD = re.compile(rb"\|([^#\s|][^\s|]*)[ \t]*([^|\r\n]*)")


class CtfSource(Source):
    """Reads CNTK's text format; every sequence is a row.  A field may be sparse where the input is dense, and the other way round."""

    def __init__(self, path: str, predictor: Predictor) -> None:
        super().__init__(path, predictor)
        fields = self._fields()
        if predictor.kept_columns([]):
            raise ValueError("keep: fields of CNTK's text format are not passed on; rows keep their order")
        streams: dict[str, Any] = {}
        for info, names in predictor.columns_of_inputs(list(fields)).items():
            if None in info.shape:
                raise ValueError(f"'{path}': CNTK's text format does not tell the sizes of free axes, which the input {info} has")
            size = 1 if len(names) > 1 else int(np.prod([size or 0 for size in info.shape]))
            streams |= {name: StreamDef(field=name, shape=size, is_sparse=fields[name]) for name in names}
        self._deserializer = CTFDeserializer(path, StreamDefs(**streams))
        if any(info.dtype == np.float64 for info in predictor.signature.inputs):
            self._deserializer["precision"] = "double"
        self._chunks = self._read(self._deserializer.chunk_infos)
        self.count = sum(chunk.sequences for chunk in self._chunks)

    def tables(self, first: int) -> Iterator[Table]:
        before, size = 0, self.predictor.batch_rows
        for number, chunk in enumerate(self._chunks):
            skipped = max(first - before, 0)
            before += chunk.sequences
            if skipped >= chunk.sequences:
                continue
            table = Columns(self._read(lambda number=number: self._deserializer.get_chunk(number, Errors())), chunk.sequences)
            for start in range(skipped, chunk.sequences, size):
                yield table.part(start, min(start + size, chunk.sequences))

    def _fields(self) -> dict[str, bool]:
        """The fields, and whether each is sparse."""
        opened: Any = gzip.open if self.path.endswith(".gz") else open
        with opened(self.path, "rb") as file:
            found = [(name.decode(errors="replace"), b":" in numbers) for name, numbers in _FIELD.findall(file.read(LOOKED_AT))]
        if not found:
            raise ValueError(f"'{self.path}' has no fields, such as '|x 1 2', and is not in CNTK's text format")
        return {name: any(sparse for other, sparse in found if other == name) for name, _ in found}

    @staticmethod
    def _read(read: Any) -> Any:
        try:
            return read()
        except RuntimeError as error:
            raise ValueError(str(error)) from None


class CtfSink(Sink):
    """Writes CNTK's text format: a line for each row, or for each step, with the number of the sequence in front."""

    def piece(self, block: Block) -> Iterable[bytes]:
        fields = {TensorInfo(name, np.dtype(np.float32)): numbers_of(name, parts) for name, parts in block.kept.items()} | block.results
        columns = [_lines(info, rows) for info, rows in fields.items()]
        with_steps = any(info.sequence_axis for info in fields)
        lines = []
        for number, row in enumerate(zip(*columns, strict=True), block.first):
            for step in range(max(map(len, row))):
                texts = " ".join(steps[step] for steps in row if step < len(steps))
                lines.append(f"{number} {texts}\n" if with_steps else f"{texts}\n")
        return ["".join(lines).encode()]

    def whole(self, pieces: Sequence[str]) -> Iterable[bytes]:
        for piece in pieces:
            with open(piece, "rb") as file:
                while data := file.read(COPIED):
                    yield data


def _lines(info: TensorInfo, rows: StreamData) -> list[list[str]]:
    """The field of each step of each row."""
    if not re.fullmatch(r"[^#\s|][^\s|]*", info.name):
        raise ValueError(f"{info.name!r} cannot be the name of a field; give the output another name, or write Parquet")
    texts = [f"|{info.name} {text}" for text in text_of_numbers(rows.rows)]
    return [texts[start:stop] for start, stop in pairwise(rows.starts.tolist())]
