"""Reads plain text in bulk: the same as :mod:`grammar` line by line, in a few passes over all bytes at once.

Where anything is out of the ordinary, it gives up and leaves the text to the grammar, which says what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..streams import StreamConfiguration
from .numbers import read_numbers

NEWLINE, PIPE, SPACE = ord("\n"), ord("|"), ord(" ")

# What a byte is in a list of values, and which may follow which.
BLANK, DIGIT, SIGN, DOT, EXPONENT, PAIR, OTHER = range(7)
_CLASSES = np.full(256, OTHER, np.uint8)
for _chars, _class in ((b" \t\n|", BLANK), (b"0123456789", DIGIT), (b"+-", SIGN), (b".", DOT), (b"eE", EXPONENT), (b":", PAIR)):
    _CLASSES[list(_chars)] = _class
_MAY_FOLLOW = np.zeros((8, 8), bool)
_MAY_FOLLOW[BLANK, [BLANK, DIGIT, SIGN]] = True
_MAY_FOLLOW[DIGIT, [BLANK, DIGIT, DOT, EXPONENT, PAIR]] = True
_MAY_FOLLOW[SIGN, DIGIT] = True
_MAY_FOLLOW[DOT, [BLANK, DIGIT]] = True
_MAY_FOLLOW[EXPONENT, [DIGIT, SIGN]] = True
_MAY_FOLLOW[PAIR, [DIGIT, SIGN]] = True
_FOLLOWS = _MAY_FOLLOW.reshape(-1)
# The marks of a number come in this order, each once at most: its beginning, a colon, a point, an exponent.
_RANK = np.zeros(7, np.int8)
_RANK[[PAIR, DOT, EXPONENT]] = 1, 2, 3


class Samples(NamedTuple):
    """The samples of one stream, in the order of the text.

    Attributes:
        lines: the line of each sample, from 0.
        counts: how many numbers, or pairs, each has.
        values: the numbers of all.
        indices: where the stream is sparse, the index of each number.
    """

    lines: Any
    counts: Any
    values: Any
    indices: Any


def scan(text: bytes, streams: Sequence[StreamConfiguration]) -> list[Samples] | None:
    """Read whole lines.

    Args:
        text: the lines, each with its end.
        streams: the fields to read.

    Returns:
        For each stream its samples, or None if the text is not plain.
    """
    if b"\r" in text:
        text = text.replace(b"\r\n", b" \n")
    data = np.frombuffer(text, np.uint8)
    line_ends = np.flatnonzero(data == NEWLINE)
    pipes = np.flatnonzero(data == PIPE)
    if not _begin_plainly(data, line_ends, pipes):
        return None
    lines = np.searchsorted(line_ends, pipes)
    ends = np.minimum(np.append(pipes[1:], len(data)), line_ends[lines])
    owners, names_end = _owners(data, pipes, ends, streams)
    if owners is None or len(np.unique(lines[owners >= 0])) != len(line_ends):
        return None  # a field without name, or a line without a field that is wanted
    fields = np.flatnonzero(owners >= 0)
    read = _numbers(data, names_end[fields], ends[fields], np.array([stream.is_sparse for stream in streams])[owners[fields]])
    if read is None:
        return None
    field_of, values, indices = read
    return [_samples_of(i, stream, owners[fields], lines[fields], field_of, values, indices) for i, stream in enumerate(streams)]


def _begin_plainly(data: Any, line_ends: Any, pipes: Any) -> bool:
    """Whether each line begins with an id or blanks, and a field."""
    starts = np.concatenate([[0], line_ends[:-1] + 1])
    first = np.searchsorted(pipes, starts)
    if len(first) and (first[-1] >= len(pipes) or (pipes[first] > line_ends).any()):
        return False
    depth = int((pipes[first] - starts).max(initial=0))
    if depth > 64:
        return False
    blank_seen = np.zeros(len(starts), bool)
    for place in range(depth):
        inside = starts + place < pipes[first]
        found = _CLASSES[data[np.minimum(starts + place, len(data) - 1)]]
        if (inside & ~((found == BLANK) | ((found == DIGIT) & ~blank_seen))).any():
            return False
        blank_seen |= inside & (found == BLANK)
    return True


def named(data: Any, pipes: Any, name: bytes) -> Any:
    """Which of the fields that begin at *pipes* are called *name*."""
    last = len(data) - 1
    same = pipes + len(name) <= last
    for place, char in enumerate(name, 1):
        same &= data[np.minimum(pipes + place, last)] == char
    after = pipes + len(name) + 1
    return same & ((after > last) | (_CLASSES[data[np.minimum(after, last)]] == BLANK))


def _owners(data: Any, pipes: Any, ends: Any, streams: Sequence[StreamConfiguration]) -> tuple[Any, Any]:
    """The stream of each field, -1 for none, and where its name ends; None if a field has no name."""
    if (_CLASSES[data[pipes + 1]] == BLANK).any():  # there is always a byte, for the text ends with a newline
        return None, None
    owners = np.full(len(pipes), -1)
    names_end = ends.copy()
    for number, stream in enumerate(streams):
        name = stream.stream_alias.encode()
        same = named(data, pipes, name)
        owners[same] = number
        names_end[same] = pipes[same] + len(name) + 1
    return owners, names_end


def _numbers(data: Any, starts: Any, ends: Any, is_sparse: Any) -> tuple[Any, Any, Any] | None:
    """All numbers of the fields that lie between *starts* and *ends*: the field of each, the number, and its index or 0."""
    edges = np.zeros(len(data) + 1, np.int8)
    edges[starts] += 1
    edges[ends] -= 1
    text = np.where(np.cumsum(edges[:-1], dtype=np.int8).astype(bool), data, SPACE).astype(np.uint8)
    text[_CLASSES[text] == BLANK] = SPACE
    classes = _CLASSES[text]
    if len(classes) and classes.max() == OTHER:
        return None
    previous = np.concatenate([[BLANK], classes[:-1]]).astype(np.uint8)
    if not _FOLLOWS[previous * np.uint8(8) + classes].all():
        return None
    begins = (classes != BLANK) & (previous == BLANK)
    marks = np.flatnonzero(begins | (classes > SIGN))
    rank = np.where(begins[marks], 0, _RANK[classes[marks]])
    if (rank[1:] <= rank[:-1])[rank[1:] > 0].any():
        return None
    tokens = np.flatnonzero(begins)
    field_of = np.searchsorted(starts, tokens, side="right") - 1
    colons = np.flatnonzero(classes == PAIR)
    of_pairs = is_sparse[field_of]
    if len(colons) != np.count_nonzero(of_pairs):
        return None
    paired = np.searchsorted(tokens, colons, side="right") - 1
    if not of_pairs[paired].all() or (classes[tokens[paired]] != DIGIT).any():
        return None
    text[colons] = SPACE
    inside = text != SPACE
    before = np.concatenate([[False], inside[:-1]])
    numbers = read_numbers(text, np.flatnonzero(inside & ~before), np.flatnonzero(before & ~inside))
    first = np.arange(len(tokens)) + np.concatenate([[0], np.cumsum(of_pairs[:-1])]).astype(np.int64)
    return field_of, numbers[first + of_pairs], np.where(of_pairs, numbers[first], 0)


def _samples_of(number: int, stream: StreamConfiguration, owners: Any, lines: Any, field_of: Any, values: Any, indices: Any) -> Samples:
    mine = owners == number
    taken = mine[field_of]
    counts = np.bincount(field_of, minlength=len(owners))[mine]
    return Samples(lines[mine], counts, values[taken], indices[taken] if stream.is_sparse else None)
