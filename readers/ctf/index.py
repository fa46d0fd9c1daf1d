"""The positions of sequences in a text, found in one pass over its line ends.

An index is a table with a row for each sequence, and one for the end.  That of a small text is an array; that of a large one lies in a
file, of which the rows of a chunk are read when they are needed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from .text import NEWLINE, TextFile

BLOCK = 1 << 22
"""Bytes read in one go."""

LONGEST_LINE = 1 << 28
"""Bytes of a line; one is read as a whole."""

PIPE, RETURN, ZERO = ord("|"), ord("\r"), ord("0")
ENDS_NAME = np.isin(np.arange(256), list(b" \t|\n"))
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LARGEST_ID = 2**64 - 1
_SAFE_DIGITS = 19
"""The number of digits that always fit into 64 bits."""
_LONGEST_ID = 1000
"""Digits, leading zeros included."""


class Settings(NamedTuple):
    """The settings that an index depends on.

    Attributes:
        by_line: whether every line is a sequence, whatever it begins with.
        counted: the field whose samples make the length of a sequence, which is 1 without one; lines do where there is no name.
    """

    by_line: bool = False
    counted: str = ""


class Layout(NamedTuple):
    """Which columns a table has: each start, and line, id and samples before it where they do not follow from that."""

    has_ids: bool
    has_samples: bool

    @property
    def dtype(self) -> Any:
        """Type of a row."""
        columns = [("start", "<i8")]
        columns += [("line", "<i8"), ("key", "<u8")] if self.has_ids else []
        return np.dtype(columns + ([("sample", "<i8")] if self.has_samples else []))


class Index:
    """The sequences of a text.

    Args:
        rows: the table, anything of which a slice is an array.
        layout: its columns.
        skipped: lines before the first sequence.
    """

    def __init__(self, rows: Any, layout: Layout, skipped: int) -> None:
        self._rows, self._layout, self._skipped = rows, layout, skipped

    def __len__(self) -> int:
        return len(self._rows) - 1

    @property
    def has_ids(self) -> bool:
        """Whether sequences have ids."""
        return self._layout.has_ids

    def starts(self, first: int, last: int) -> Any:
        """The byte at which each of these sequences begins, and the one where the last of them ends."""
        return self._column("start", first, last)

    def lines(self, first: int, last: int) -> Any:
        """Number, from 1, of the line with which each of these sequences begins, and of the line behind them."""
        found = self._column("line", first, last) if self._layout.has_ids else np.arange(first, last + 1)
        return found + (self._skipped + 1)

    def lengths(self, first: int, last: int) -> Any:
        """Samples of each of these sequences."""
        if self._layout.has_samples:
            return np.maximum(np.diff(self._column("sample", first, last)), 1)
        return np.diff(self.lines(first, last))

    def samples(self, first: int, last: int) -> int:
        """Samples of all these sequences."""
        if self._layout.has_samples:
            return int(self.lengths(first, last).sum())
        return int(self.lines(last, last)[0] - self.lines(first, first)[0])

    def keys(self, first: int, last: int) -> Any:
        """The ids of these sequences; without ids, their numbers."""
        if self._layout.has_ids:
            return self._column("key", first, last)[:-1]
        return np.arange(first, last, dtype=np.uint64)

    def chunks(self, size: int) -> Any:
        """The first sequence of each part of the text, which has at most *size* bytes or one sequence, and their number at the end."""
        found, begin, block = [0], int(self.starts(0, 0)[0]), 1 << 20
        for first in range(0, len(self), block):
            starts = self.starts(first, min(first + block, len(self)))
            while starts[-1] - begin > size:
                place = max(int(starts.searchsorted(begin + size, side="right")) - 1, found[-1] + 1 - first)
                found.append(first + place)
                begin = int(starts[place])
        return np.array(found if found[-1] == len(self) else [*found, len(self)])

    def _column(self, name: str, first: int, last: int) -> Any:
        return np.ascontiguousarray(self._rows[first : last + 1][name])


class Beginning(NamedTuple):
    """Where the first line of a text starts, how many empty lines come before, and whether it begins with an id."""

    start: int
    skipped: int
    has_id: bool


def beginning_of(text: TextFile) -> Beginning:
    """Look at the first line.

    Raises:
        RuntimeError: the text is empty, or begins with neither a sequence id nor a field.
    """
    start, skipped, size = 0, 0, 1 << 10
    while start < text.size:
        head = text.read(start, min(start + size, text.size)).tobytes()
        if not start and head.startswith(BYTE_ORDER_MARK):
            start = len(BYTE_ORDER_MARK)
            continue
        rest = head.lstrip(b"\r\n")
        skipped += head[: len(head) - len(rest)].count(b"\n")
        if rest:
            start += len(head) - len(rest)
            first = rest[:1]
            if first not in b"|0123456789 \t":
                raise RuntimeError(
                    f"{text.path}, line {skipped + 1}: expected a sequence id (digits) or a field (|name values), "
                    f"the line begins with {first!r}"
                )
            return Beginning(start, skipped, first.isdigit())
        start, size = start + size, 1 << 20
    raise RuntimeError(f"the text file '{text.path}' is empty; expected lines such as: 0 |name 1 2")


def layout_of(beginning: Beginning, settings: Settings) -> Layout:
    """The columns that the index of a text has."""
    return Layout(beginning.has_id and not settings.by_line, bool(settings.counted))


def rows_of(text: TextFile, beginning: Beginning, settings: Settings) -> Iterator[Any]:
    """The rows of the table, some at a time, the end's last.

    If the text begins with an id, consecutive lines with the same one make a sequence, and a line without one continues it.  Otherwise
    every line is a sequence.

    Raises:
        RuntimeError: an id is too large, or a line too long.
    """
    layout = layout_of(beginning, settings)
    lines = samples = 0
    current: int | None = None
    end = beginning.start
    counted = settings.counted.encode()
    each = _in_threads if text.size > BLOCK else map
    for part in each(lambda block: _part(block[0], block[1], layout, counted), _blocks(text, beginning.start)):
        if part.fault:
            line, id_ = part.fault
            raise RuntimeError(
                f"{text.path}, line {beginning.skipped + lines + line}, column 1: the sequence id {id_} is larger than {LARGEST_ID}"
            )
        rows = part.rows
        if layout.has_ids:
            rows["line"] += lines
            rows = rows[(part.leading > 0) + (current is not None and part.first_id == current) :]
            current = part.last_id if part.last_id is not None else current
        if layout.has_samples:
            rows["sample"] += samples
        yield rows
        lines += part.lines
        samples += part.samples
        end = part.end
    row = np.zeros(1, layout.dtype)
    row["start"] = min(end, text.size)
    if layout.has_ids:
        row["line"] = lines
    if layout.has_samples:
        row["sample"] = samples
    yield row


class Part(NamedTuple):
    """The sequences that begin in some lines of a text, the first line beginning one for now.

    Attributes:
        rows: of the table; lines and samples are counted from the first line.
        lines, samples, end: how many there are, and where the last line ends.
        leading: how many lines come before the first that has an id.
        first_id, last_id: ids, None where there are none.
        fault: a line, from 1, whose id is too large, and the id; None if there is none.
    """

    rows: Any
    lines: int
    samples: int
    end: int
    leading: int = 0
    first_id: int | None = None
    last_id: int | None = None
    fault: tuple[int, str] | None = None


def _part(offset: int, block: Any, layout: Layout, counted: bytes) -> Part:
    line_starts = np.concatenate([[0], np.flatnonzero(block[:-1] == NEWLINE) + 1])
    count, end = len(line_starts), offset + len(block)
    ids, has_id = np.empty(0, np.uint64), np.empty(0, bool)
    new = np.arange(count)
    if layout.has_ids:
        ids, has_id, fault = _ids(block, line_starts)
        if fault:
            return Part(None, count, 0, end, fault=fault)
        given = np.flatnonzero(has_id)
        fresh = given[np.concatenate([[True], ids[given][1:] != ids[given][:-1]])] if len(given) else given
        new = fresh if len(given) and not given[0] else np.concatenate([[0], fresh])
    rows = np.zeros(len(new), layout.dtype)
    rows["start"] = line_starts[new] + offset
    samples = 0
    if layout.has_samples:
        pipes = np.flatnonzero(block == PIPE)
        pipes = pipes[named(block, pipes, counted)]
        rows["sample"] = np.searchsorted(pipes, line_starts[new])
        samples = len(pipes)
    if not layout.has_ids:
        return Part(rows, count, samples, end)
    rows["line"], rows["key"] = new, ids[new]
    if not len(given):
        return Part(rows, count, samples, end, count)
    return Part(rows, count, samples, end, int(given[0]), int(ids[given[0]]), int(ids[given[-1]]))


def named(text: Any, pipes: Any, name: bytes) -> Any:
    """Which of the fields that begin at *pipes* are called *name*; the text ends with a newline."""
    last = len(text) - 1
    same = pipes + len(name) < last
    for place, char in enumerate(name, 1):
        same &= text[np.minimum(pipes + place, last)] == char
    behind = np.minimum(pipes + len(name) + 1, last)
    ends_line = (text[behind] == RETURN) & (text[np.minimum(behind + 1, last)] == NEWLINE)
    return same & (ENDS_NAME[text[behind]] | ends_line)


def _blocks(text: TextFile, start: int) -> Iterator[tuple[int, Any]]:
    """Whole lines, some at a time, with the place of each in the text."""
    while start < text.size:
        size = BLOCK
        while True:
            stop = min(start + size, text.size)
            block = text.read(start, stop)
            if stop == text.size:
                break
            lines = np.flatnonzero(block[-(1 << 16) : stop - start][::-1] == NEWLINE)
            if not len(lines):
                lines = np.flatnonzero(block[: stop - start][::-1] == NEWLINE)
            if len(lines):
                block = block[: stop - start - int(lines[0])]
                break
            if size >= LONGEST_LINE:
                raise RuntimeError(
                    f"{text.path}, byte {start + 1}: the line that begins here has more than {LONGEST_LINE >> 20} MiB; "
                    "expected a sample of each stream a line"
                )
            size *= 2  # not one line ends in it
        yield start, block
        start += len(block)


def _in_threads(work: Any, items: Iterable[Any]) -> Iterator[Any]:
    """The results of *work* for the items, in their order, a few at once."""
    threads = min(os.cpu_count() or 1, 4)
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Any] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _ids(block: Any, starts: Any) -> tuple[Any, Any, tuple[int, str] | None]:
    """The id of each line, which lines have one, and the first, counted from 1, whose id is too large, with the id."""
    ids = np.zeros(len(starts), np.uint64)
    active = np.ones(len(starts), bool)
    has_id = active
    for place in range(_SAFE_DIGITS + 1):
        digits = block[np.minimum(starts + place, len(block) - 1)] - np.uint8(ZERO)  # other bytes are 10 or more, as unsigned numbers
        active = active & (digits < 10)
        if place == 0:
            has_id = active
        if not active.any():
            break
        if place == _SAFE_DIGITS:
            for line in np.flatnonzero(active).tolist():
                digits = _leading_digits(block[starts[line] : starts[line] + _LONGEST_ID].tobytes())
                if len(digits) == _LONGEST_ID or int(digits) > LARGEST_ID:
                    return ids, has_id, (line + 1, digits[:40].decode())
                ids[line] = int(digits)
        else:
            ids = np.where(active, ids * np.uint64(10) + digits, ids)
    return ids, has_id, None


def _leading_digits(text: bytes) -> bytes:
    return text[: len(text) - len(text.lstrip(b"0123456789"))]
