"""NumPy's archives: an array for each input and output; of sequences all steps one after another, and the lengths."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cntk.eval.files.base import Block, Sink, Source, Written, numbers_of
from cntk.eval.predictor import Predictor
from cntk.eval.rows import has_steps
from cntk.eval.tables import Columns, Table
from cntk.readers.rows import StreamData

COPIED = 1 << 20
"""Bytes that are copied at once."""


class NpzSource(Source):
    """Reads NPZ part by part, compressed or not, without unpickling.

    Sequences have their lengths in the array of the name that :meth:`Signature.lengths_name` gives, for padded ones as well; without it
    all have the steps of the second axis.
    """

    def __init__(self, path: str, predictor: Predictor) -> None:
        super().__init__(path, predictor)
        self._lengths: dict[str, Any] = {}
        self._padded: set[str] = set()
        with self._opened() as archive:
            names = [os.path.splitext(name)[0] for name in archive.namelist() if name.endswith(".npy")]
            self._needed = self.columns(names)
            members = {name: _Member(archive, name, path) for name in self._needed}
            for info, wanted in predictor.columns_of_inputs(names).items():
                lengths = predictor.signature.lengths_name(info)
                if info.sequence_axis and lengths in names:
                    found = _Member(archive, lengths, path)
                    self._lengths |= dict.fromkeys(wanted, found.read(found.count))
                    self._padded |= {name for name in wanted if has_steps(info, members[name])}
        counts = {name: len(self._lengths[name]) if name in self._lengths else one.count for name, one in members.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(f"'{path}': the arrays have unequal numbers of rows: {counts}")
        for name, lengths in self._lengths.items():
            self._require_steps(name, lengths, members[name])
        self.count = next(iter(counts.values()))

    def tables(self, first: int) -> Iterator[Table]:
        assert self.count is not None
        with self._opened() as archive:
            members = {name: _Member(archive, name, self.path) for name in self._needed}
            for name, member in members.items():
                member.skip(self._entries(name, 0, first))
            for start in range(first, max(self.count, first + 1), self.predictor.batch_rows):
                stop = min(start + self.predictor.batch_rows, self.count)
                yield Columns({name: self._part(name, member, start, stop) for name, member in members.items()}, stop - start)

    def _part(self, name: str, member: _Member, start: int, stop: int) -> Any:
        array = member.read(self._entries(name, start, stop))
        if name not in self._lengths:
            return array
        lengths = self._lengths[name][start:stop]
        if name in self._padded:
            array = array[np.arange(array.shape[1]) < lengths[:, np.newaxis]]
        return StreamData.of_lengths(array, lengths)

    def _entries(self, name: str, start: int, stop: int) -> int:
        """How many entries of an array's first axis these rows have."""
        if name in self._lengths and name not in self._padded:
            return int(self._lengths[name][start:stop].sum())
        return stop - start

    def _require_steps(self, name: str, lengths: Any, member: _Member) -> None:
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or lengths.min(initial=1) < 1:
            raise ValueError(
                f"'{self.path}': the lengths of sequences must be whole numbers of 1 at least, got {lengths.dtype} {lengths.shape}"
            )
        steps, wanted = (member.shape[1], lengths.max(initial=0)) if name in self._padded else (member.count, lengths.sum())
        if steps < wanted or (name not in self._padded and steps != wanted):
            raise ValueError(f"'{self.path}': the array {name!r} has {steps} steps, and the lengths of its sequences say {wanted}")

    def _opened(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except zipfile.BadZipFile as error:
            raise ValueError(f"cannot read '{self.path}' as NumPy's archive: {error}") from None


class _Member:
    """An array of an archive, read from its beginning on.

    Attributes:
        shape, dtype: as arrays have them.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str, path: str) -> None:
        self._shown = f"the array {name!r} of '{path}'"
        self._stream = archive.open(f"{name}.npy")
        try:
            version = np.lib.format.read_magic(self._stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            self.shape, is_fortran, self.dtype = read(self._stream)
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"cannot read {self._shown}: {error}") from None
        if self.dtype.hasobject:
            raise ValueError(f"{self._shown} holds Python's objects, which are not read; save numbers")
        if is_fortran and len(self.shape) > 1:
            raise ValueError(f"{self._shown} has its columns one after another; save np.ascontiguousarray of it, to be read row by row")
        if not self.shape:
            raise ValueError(f"{self._shown} is a single number, and one for each row is needed")

    @property
    def count(self) -> int:
        """Entries of the first axis."""
        return int(self.shape[0])

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    def skip(self, entries: int) -> None:
        """Leave out the next entries of the first axis."""
        left = entries * self._entry_bytes()
        while left:
            left -= len(self._bytes(min(left, COPIED)))

    def read(self, entries: int) -> Any:
        """The next entries of the first axis."""
        data = self._bytes(entries * self._entry_bytes())
        return np.frombuffer(data, self.dtype).reshape(entries, *self.shape[1:])

    def _entry_bytes(self) -> int:
        return int(np.prod(self.shape[1:], dtype=np.int64)) * int(self.dtype.itemsize)

    def _bytes(self, count: int) -> bytes:
        try:
            data = self._stream.read(count)
        except (zipfile.BadZipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{self._shown} is damaged: {error}") from None
        if len(data) < count:
            raise ValueError(f"{self._shown} is damaged: it ends early")
        return data


class NpzSink(Sink):
    """Writes NPZ, uncompressed; columns that are passed on must be numbers."""

    def piece(self, block: Block) -> Iterable[bytes]:
        arrays: dict[str, Any] = {}
        for name, parts in block.kept.items():
            rows = numbers_of(name, parts)
            if not rows.is_single:
                raise ValueError(f"keep: the column {name!r} has sequences, which are passed on to Parquet files alone")
            arrays[name] = rows.rows
        for info, rows in block.results.items():
            arrays[info.name] = rows.rows
            if info.sequence_axis:
                arrays[self.predictor.signature.lengths_name(info)] = rows.lengths.astype(np.int64)
        written = io.BytesIO()
        np.savez(written, allow_pickle=False, **arrays)
        return [written.getvalue()]

    def whole(self, pieces: Sequence[str]) -> Iterable[bytes]:
        with np.load(pieces[0]) as first:
            names = list(first)
        written = Written()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for name in names:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    self._write_header(stream, pieces, name)
                    for piece in pieces:
                        with np.load(piece) as part:
                            stream.write(np.ascontiguousarray(part[name]).tobytes())
                        yield from written.taken()
        yield from written.taken()

    def _write_header(self, stream: Any, pieces: Sequence[str], name: str) -> None:
        """The header of an array that is put together from those of all pieces."""
        members = []
        for piece in pieces:
            with zipfile.ZipFile(piece) as archive:
                members.append(_Member(archive, name, piece))
        if len({(member.shape[1:], member.dtype) for member in members}) > 1:
            raise ValueError(f"{name!r} has results of unequal shapes, which make no array; write Parquet instead")
        header = np.lib.format.header_data_from_array_1_0(np.empty((0, *members[0].shape[1:]), members[0].dtype))
        header["shape"] = (sum(member.count for member in members), *members[0].shape[1:])
        np.lib.format.write_array_header_2_0(stream, header)
