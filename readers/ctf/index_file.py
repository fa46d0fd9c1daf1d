"""Indices of large texts in files: beside the text, or in the cache folder if that folder is not writable.  They are made once."""

from __future__ import annotations

import os
import struct
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...core.common.lock import ForkSafeLock
from ...core.common.thresholds import thresholds
from ...core.storage.trusted import Untrusted, open_trusted, warn_of, write_trusted
from .cache import cache_folder
from .index import Beginning, Index, Layout, Settings, beginning_of, layout_of, rows_of
from .text import TextFile

END = struct.Struct("<8s32sqqI")
"""End of an index file: what it is, the text's fingerprint, number of rows, lines skipped, and a check sum of all rows."""
MAGIC = b"ctfindx1"
CHECKED = 1 << 18
"""Rows that are checked in one go."""


class NotAnIndex(Exception):
    """A file is not, or no longer, the index of a text."""


def index_of(text: TextFile, settings: Settings, keep: bool = True) -> Index:
    """The index of a text, read from a file or made.

    Args:
        text: the text.
        settings: the settings that the index depends on.
        keep: whether that of a large text is kept in a file for the next time.

    Raises:
        RuntimeError: the text is empty, cannot be read or begins with neither a sequence id nor a field.
    """
    beginning = beginning_of(text)
    layout = layout_of(beginning, settings)
    if text.size < thresholds.ctf_index_kept:
        return Index(np.concatenate(list(rows_of(text, beginning, settings))), layout, beginning.skipped)
    fingerprint = text.fingerprint(MAGIC, *settings)
    rows = _kept(text, beginning, settings, fingerprint) if keep else None
    return Index(rows or _unnamed(text, beginning, settings), layout, beginning.skipped)


class Rows:
    """The table of an index in a file, of which slices are read; several threads may do so.

    Args:
        file: the file, which is closed when the rows are not needed any more.
        count: how many rows there are, from the beginning of the file.
        dtype: type of a row.
    """

    def __init__(self, file: BinaryIO, count: int, dtype: Any) -> None:
        self._file, self._count, self._dtype = file, count, dtype
        self._lock = ForkSafeLock()
        weakref.finalize(self, file.close)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, part: slice) -> Any:
        first, last, _ = part.indices(self._count)
        return np.frombuffer(self._read(first * self._dtype.itemsize, max(last - first, 0) * self._dtype.itemsize), self._dtype)

    def _read(self, start: int, size: int) -> bytes:
        if hasattr(os, "pread"):  # a position would be shared with forked processes
            return os.pread(self._file.fileno(), size, start)
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)


def _kept(text: TextFile, beginning: Beginning, settings: Settings, fingerprint: bytes) -> Rows | None:
    """The rows of a file that exists or can be written; None if neither."""
    layout = layout_of(beginning, settings)
    places = _places(text, fingerprint)
    for place in places:
        try:
            return _opened(place, text, layout, fingerprint)
        except Untrusted as error:
            warn_of(error.place, error.why, "The index of the text is recreated")
        except (OSError, NotAnIndex):
            continue  # it is made again
    for place in places:
        try:
            write_trusted(place, _pieces(text, beginning, settings, fingerprint), Path(text.plain))
            return _opened(place, text, layout, fingerprint)
        except OSError:
            continue  # the folder is not writable
    return None


def _places(text: TextFile, fingerprint: bytes) -> list[Path]:
    beside, folder = Path(f"{text.plain}.index"), cache_folder()
    return [beside] if folder is None else [beside, folder / f"{beside.name}.{fingerprint.hex()[:32]}"]


def _unnamed(text: TextFile, beginning: Beginning, settings: Settings) -> Rows:
    """The rows in a temporary file, which is deleted when it is closed."""
    file: Any = tempfile.TemporaryFile()  # noqa: SIM115  (the rows close it)
    count = 0
    for rows in rows_of(text, beginning, settings):
        file.write(rows.tobytes())
        count += len(rows)
    file.flush()
    return Rows(file, count, layout_of(beginning, settings).dtype)


def _pieces(text: TextFile, beginning: Beginning, settings: Settings, fingerprint: bytes) -> Iterator[bytes]:
    count = check = 0
    for rows in rows_of(text, beginning, settings):
        piece = rows.tobytes()
        count, check = count + len(rows), zlib.crc32(piece, check)
        yield piece
    yield END.pack(MAGIC, fingerprint, count, beginning.skipped, check)


def _opened(place: Path, text: TextFile, layout: Layout, fingerprint: bytes) -> Rows:
    """The rows of an index file that has been checked.

    Raises:
        NotAnIndex: it is another file, of another text, or damaged.
        Untrusted: somebody other than the author of the text may have written it.
        OSError: it cannot be read.
    """
    file = open_trusted(place, Path(text.plain))
    size = os.fstat(file.fileno()).st_size
    file.seek(max(size - END.size, 0))
    end = file.read(END.size)
    rows = Rows(file, (size - END.size) // layout.dtype.itemsize, layout.dtype)
    if len(end) < END.size:
        raise NotAnIndex
    magic, of, count, _, check = END.unpack(end)
    if magic != MAGIC or of != fingerprint or count != len(rows) or count < 2 or count * layout.dtype.itemsize + END.size != size:
        raise NotAnIndex
    _check(rows, text.size, check)
    return rows


def _check(rows: Rows, size: int, check: int) -> None:
    """Compare rows with their check sum, and see that they describe parts of a text of this size, one after another."""
    found, before = 0, -1
    for first in range(0, len(rows), CHECKED):
        part = rows[first : first + CHECKED]
        found = zlib.crc32(part.tobytes(), found)
        starts = part["start"]
        if starts[0] <= before or (np.diff(starts) <= 0).any():
            raise NotAnIndex
        for name in ("line", "sample"):
            if name in part.dtype.names and (np.diff(part[name], prepend=0) < 0).any():
                raise NotAnIndex
        before = int(starts[-1])
    if found != check or before != size:
        raise NotAnIndex
