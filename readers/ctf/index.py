"""Where the sequences of a text file lie, found in one pass over its line ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .scan import PIPE, named

BLOCK = 1 << 24
"""Bytes read in one go."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LARGEST_ID = 2**64 - 1
_SAFE_DIGITS = 19
"""As many digits fit into 64 bits whatever they are."""
_LONGEST_ID = 1000
"""Digits, leading zeros included."""


class Index(NamedTuple):
    """The sequences of a file.

    Attributes:
        starts: byte at which each begins, and where the last one ends.
        lines: lines of each.
        lengths: samples of each that count when a minibatch is filled: its lines, or the fields of one name.
        keys: their ids; without ids, their numbers.
        skipped: lines before the first one.
    """

    starts: Any
    lines: Any
    lengths: Any
    keys: Any
    skipped: int


def make_index(path: str, by_line: bool = False, counted: str = "") -> Index:
    """Find the sequences of a file.

    If the file begins with a number, consecutive lines with the same number make a sequence, and a line without one continues it.
    Otherwise every line is a sequence.

    Args:
        path: the file.
        by_line: whether every line is a sequence, whatever it begins with.
        counted: the field that is counted for lengths, in place of lines; a sequence without one has the length 1.

    Raises:
        RuntimeError: the file cannot be read, is empty, or begins with something else than a sequence id or a field.
    """
    try:
        with open(path, "rb") as file:
            return _index(file, path, by_line, counted.encode())
    except OSError as error:
        raise RuntimeError(f"cannot read the text file '{path}': {error.strerror or error}") from None


def _index(file: Any, path: str, by_line: bool, counted: bytes) -> Index:
    start, skipped, first = _beginning(file)
    if not first:
        raise RuntimeError(f"the text file '{path}' is empty; expected lines such as: 0 |name 1 2")
    if first not in b"|0123456789 \t":
        raise RuntimeError(
            f"{path}, line {skipped + 1}: expected a sequence id (digits) or a field (|name values), the line begins with {first!r}"
        )
    by_line = by_line or not first.isdigit()
    starts: list[Any] = []
    keys: list[Any] = []
    firsts: list[Any] = []  # number of the line with which each sequence begins
    fields: list[Any] = []  # fields called *counted* before each sequence
    passed = 0
    lines = 0
    end = start
    current: int | None = None
    for offset, block in _blocks(file, start):
        line_starts = np.concatenate([[0], np.flatnonzero(block[:-1] == ord("\n")) + 1])
        end = offset + len(block)
        if by_line:
            new = np.arange(len(line_starts))
            found = new + lines
        else:
            ids = _ids(block, line_starts, current, f"{path}, line {{}}", skipped + lines)
            new = np.flatnonzero(np.concatenate([[current is None or int(ids[0]) != current], ids[1:] != ids[:-1]]))
            found, current = ids[new], int(ids[-1])
        starts.append(line_starts[new] + offset)
        keys.append(found.astype(np.uint64))
        firsts.append(new + lines)
        lines += len(line_starts)
        if counted:
            pipes = np.flatnonzero(block == PIPE)
            pipes = pipes[named(block, pipes, counted)]
            fields.append(np.searchsorted(pipes, line_starts[new]) + passed)
            passed += len(pipes)
    counts = np.diff(np.concatenate([*firsts, [lines]]))
    lengths = np.maximum(np.diff(np.concatenate([*fields, [passed]])), 1) if counted else counts
    return Index(np.concatenate([*starts, [end]]), counts, lengths, np.concatenate(keys), skipped)


def _beginning(file: Any) -> tuple[int, int, bytes]:
    """Where the first line starts, how many empty ones come before, and its first byte, none in a file without lines."""
    start, skipped = 0, 0
    if file.read(3) == BYTE_ORDER_MARK:
        start = 3
    file.seek(start)
    while (first := file.read(1)) in (b"\n", b"\r"):
        start += 1
        skipped += first == b"\n"
    return start, skipped, first


def _blocks(file: Any, start: int) -> Iterator[tuple[int, Any]]:
    """Whole lines, some at a time, as arrays of bytes with the place of each in the file."""
    file.seek(start)
    rest = b""
    while read := file.read(BLOCK):
        cut = read.rfind(b"\n") + 1
        if cut:
            block = rest + read[:cut]
            yield start, np.frombuffer(block, np.uint8)
            start += len(block)
            rest = read[cut:]
        else:
            rest += read
    if rest:
        yield start, np.frombuffer(rest, np.uint8)


def _ids(block: Any, starts: Any, current: int | None, where: str, lines_before: int) -> Any:
    """The id of each line; a line without one has that of the line before."""
    ids = np.zeros(len(starts), np.uint64)
    active = np.ones(len(starts), bool)
    has_id = active
    for place in range(_SAFE_DIGITS + 1):
        at = np.minimum(starts + place, len(block) - 1)
        digits = block[at] - np.uint8(ord("0"))  # other bytes are 10 or more, as unsigned numbers
        active = active & (digits < 10) & (starts + place < len(block))
        if place == 0:
            has_id = active
        if not active.any():
            break
        if place == _SAFE_DIGITS:
            for line in np.flatnonzero(active).tolist():
                ids[line] = _long_id(block[starts[line] :], where.format(lines_before + line + 1))
        else:
            ids = np.where(active, ids * np.uint64(10) + digits, ids)
    if has_id.all():
        return ids
    known = np.maximum.accumulate(np.where(has_id, np.arange(len(ids)), -1))
    return np.where(known >= 0, ids[np.maximum(known, 0)], np.uint64(current or 0))


def _long_id(text: Any, where: str) -> int:
    digits = text[:_LONGEST_ID].tobytes()
    digits = digits[: len(digits) - len(digits.lstrip(b"0123456789"))]
    if len(digits) == _LONGEST_ID or int(digits) > LARGEST_ID:
        raise RuntimeError(f"{where}: the sequence id {digits[:40].decode()} is larger than {LARGEST_ID}")
    return int(digits)
