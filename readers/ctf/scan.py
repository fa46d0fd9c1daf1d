"""Reads plain text in bulk with NumPy: the same as :mod:`grammar` line by line, in a few passes over all bytes at once.

At anything unusual it gives up and leaves the text to the grammar, which reports what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..rows import ranges
from ..streams import StreamConfiguration
from .numbers import PADDING, are_digits, numbers, whole_numbers
from .samples import Part, csr, ends_of, filled, index_type

TAB, NEWLINE, RETURN, SPACE, COLON, PIPE = (ord(char) for char in "\t\n\r :|")


class Tokens(NamedTuple):
    """The tokens between blanks, bars and colons.

    Attributes:
        starts, ends: where each begins, and where it ends.
        is_name: whether it is the name of a field.
        is_id: whether it stands before the first field of a line.
        first: the number of the first one of each line.
    """

    starts: Any
    ends: Any
    is_name: Any
    is_id: Any
    first: Any


class Fields(NamedTuple):
    """The fields of a text.

    Attributes:
        tokens: the number of each one's name.
        counts: how many tokens follow it.
        owners: its stream, -1 for none.
        lines: its line.
    """

    tokens: Any
    counts: Any
    owners: Any
    lines: Any


def scan(text: Any, starts: Any, lines: Any, streams: Sequence[StreamConfiguration], dtype: Any) -> list[Part] | None:
    """Read sequences.

    Args:
        text: bytes of whole lines, the last with its end.
        starts: where in it each sequence starts, and where the last one ends.
        lines: number of each sequence's first line, and of the line after the last one.
        streams: the fields to read.
        dtype: type of the numbers.

    Returns:
        For each stream what has been read, or None if the text is not plain.
    """
    data = _padded(text[starts[0] : starts[-1]])
    line_ends = np.flatnonzero(data == NEWLINE)
    if len(line_ends) != lines[-1] - lines[0] or any(":" in stream.stream_alias for stream in streams):
        return None
    tokens = _tokens(data, line_ends)
    if tokens is None:
        return None
    fields = _fields(data, tokens, streams)
    wanted = fields.lines[fields.owners >= 0]
    if np.count_nonzero(np.diff(wanted, prepend=-1)) != len(line_ends):
        return None  # a line without a field that is wanted
    found = [_Found(data, tokens, fields, number, stream) for number, stream in enumerate(streams)]
    pairs = sum(one.pairs for one in found)
    if not all(one.is_plain for one in found) or _has_other_colons(data, line_ends, tokens, fields, pairs):
        return None
    parts = [one.part(lines, dtype) for one in found]
    if any(part is None for part in parts):
        return None
    lengths = np.stack([part.lengths for part in parts if part is not None])
    if (lengths.min(0) == 0).any() or (lengths.max(0) != np.diff(lines)).any():
        return None
    return [part for part in parts if part is not None]


def _padded(text: Any) -> Any:
    """The text with blanks before it, and for carriage returns at line ends."""
    data = np.empty(PADDING + len(text), np.uint8)
    data[:PADDING] = SPACE
    data[PADDING:] = text
    returns = np.flatnonzero(data == RETURN)
    data[returns[data[returns + 1] == NEWLINE]] = SPACE
    return data


def _tokens(data: Any, line_ends: Any) -> Tokens | None:
    """The tokens; None if a field has no name, or a line begins with something else than an id, blanks and a field."""
    is_blank = (data == SPACE) | (data == NEWLINE) | (data == PIPE) | (data == COLON) | (data == TAB)
    edges = np.flatnonzero(is_blank[1:] != is_blank[:-1]) + 1
    starts, ends = edges[::2].copy(), edges[1::2].copy()
    is_name = data[starts - 1] == PIPE
    if np.count_nonzero(is_name) != np.count_nonzero(data == PIPE):
        return None
    line_starts = np.concatenate([[PADDING], line_ends[:-1] + 1])
    first = np.searchsorted(starts, line_starts)
    if not len(starts) or first[-1] == len(starts) or (starts[first] > line_ends).any():
        return None
    is_id = np.zeros(len(starts), bool)
    with_id = ~is_name[first]
    ids = first[with_id]
    if len(ids):
        if ids[-1] + 1 == len(starts) or not is_name[ids + 1].all() or (starts[ids + 1] > line_ends[with_id]).any():
            return None
        if (starts[ids] != line_starts[with_id]).any() or not are_digits(data, starts[ids], ends[ids]):
            return None
        is_id[ids] = True
    return Tokens(starts, ends, is_name, is_id, first)


def _fields(data: Any, tokens: Tokens, streams: Sequence[StreamConfiguration]) -> Fields:
    names = np.flatnonzero(tokens.is_name)
    behind = np.append(names[1:], len(tokens.starts))
    behind -= tokens.is_id[behind - 1]
    begins = tokens.starts[names]
    lengths = tokens.ends[names] - begins
    owners = np.full(len(names), -1)
    for number, stream in enumerate(streams):
        name = stream.stream_alias.encode()
        mine = np.flatnonzero(lengths == len(name))
        for place, char in enumerate(name):
            mine = mine[data[begins[mine] + place] == char]
        owners[mine] = number
    begins_line = np.zeros(len(tokens.starts), bool)
    begins_line[tokens.first] = True
    return Fields(names, behind - names - 1, owners, np.cumsum(begins_line)[names] - 1)


def _has_other_colons(data: Any, line_ends: Any, tokens: Tokens, fields: Fields, pairs: int) -> bool:
    """Whether there are colons but those of so many pairs, and those in fields that are not read."""
    colons = np.flatnonzero(data == COLON)
    if len(colons) == pairs:
        return False
    of = np.searchsorted(tokens.starts[fields.tokens], colons) - 1
    is_inside = (of >= 0) & (fields.lines[of] == np.searchsorted(line_ends, colons))
    return not is_inside.all() or np.count_nonzero(fields.owners[of] >= 0) != pairs


class _Found:
    """The fields of one stream.

    Attributes:
        pairs: how many pairs of index and value they hold, where the stream is sparse.
        is_plain: whether their tokens are as many as they should be.
    """

    def __init__(self, data: Any, tokens: Tokens, fields: Fields, number: int, stream: StreamConfiguration) -> None:
        self._data, self._tokens, self._stream = data, tokens, stream
        mine = np.flatnonzero(fields.owners == number)
        self._lines, self._counts = fields.lines[mine], fields.counts[mine]
        total = int(self._counts.sum())
        self._values = ranges(fields.tokens[mine] + 1, self._counts)
        self.pairs = total // 2 if stream.is_sparse else 0
        if stream.is_sparse:
            self.is_plain = not (self._counts % 2).any()
        else:
            self.is_plain = int(self._counts.max(initial=0)) <= stream.dim

    def part(self, lines: Any, dtype: Any) -> Part | None:
        """The samples; None if something is not plain."""
        of_lines = np.bincount(self._lines, minlength=int(lines[-1] - lines[0]))
        lengths = np.add.reduceat(of_lines, lines[:-1] - lines[0])
        if self._stream.is_sparse:
            rows = self._pairs(dtype)
            return None if rows is None else Part(lengths, rows)
        values = self._numbers(self._values, dtype)
        if values is None:
            return None
        lacking = self._lines[self._counts < self._stream.dim]
        return Part(lengths, filled(values, self._counts, self._stream.dim), int(lacking[0] + lines[0]) if len(lacking) else None)

    def _numbers(self, tokens: Any, dtype: Any) -> Any:
        return numbers(self._data, self._tokens.starts[tokens], self._tokens.ends[tokens], dtype)

    def _pairs(self, dtype: Any) -> Any:
        starts, ends = self._tokens.starts, self._tokens.ends
        left, right = self._values[::2], self._values[1::2]
        if (starts[right] != ends[left] + 1).any() or (self._data[ends[left]] != COLON).any():
            return None
        indices = whole_numbers(self._data, starts[left], ends[left])
        if indices is None or indices.max(initial=0) >= self._stream.dim:
            return None
        values = self._numbers(right, dtype)
        if values is None:
            return None
        type_ = index_type([self._stream], len(self._data))
        indices, row_ends = indices.astype(type_), ends_of(self._counts // 2, type_)
        return csr(values, indices, row_ends, self._stream.dim, _ascend(indices, row_ends))


def _ascend(indices: Any, ends: Any) -> bool:
    """Whether the indices of every row do."""
    is_first = np.zeros(len(indices) + 1, bool)
    is_first[ends] = True
    return bool(((indices[1:] > indices[:-1]) | is_first[1:-1]).all())
