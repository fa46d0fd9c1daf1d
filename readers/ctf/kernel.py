"""Reads text in one pass, compiled, without holding Python's lock: the same as :mod:`grammar`, sequence by sequence.

At anything unusual it stops, and leaves that sequence to the grammar, which reports what is wrong and where.  Every loop
ends at a line's end at the latest, and text ends with one, so that nothing is read behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import jittable
from ...core.machine.loops import loop
from .floats import ONE, UNDECIDED, nearest_bits
from .tables import DONE, FAULT, FULL, Buffers, Kind, Streams

TAB, NEWLINE, RETURN, SPACE, HASH, PLUS, MINUS, DOT, ZERO, COLON, PIPE = (ord(char) for char in "\t\n\r #+-.0:|")
LETTER_E, TO_LOWER = ord("e"), 0x20
MOST_DIGITS = 19
"""The number of digits that always fit into 64 bits."""
LARGEST_EXPONENT = 10**6
TENS = 10.0 ** np.arange(23)
"""Powers of ten that float64 holds exactly."""

STOPPED = -1
"""Returned in place of a position, if a field cannot be read."""


@jittable
def _is_blank(text: Any, at: int) -> bool:
    return text[at] in (SPACE, TAB) or (text[at] == RETURN and text[at + 1] == NEWLINE)


@jittable
def _is_end(text: Any, at: int) -> bool:
    return text[at] == NEWLINE or text[at] == PIPE


@jittable
def _digits(text: Any, at: int, whole: Any) -> Any:
    """Where the digits from *at* on end, and a whole number with these appended, which overflows where they are too many."""
    digit = np.uint64(text[at]) - np.uint64(ZERO)
    while digit <= np.uint64(9):
        whole = whole * np.uint64(10) + digit
        at += 1
        digit = np.uint64(text[at]) - np.uint64(ZERO)
    return at, whole


@jittable
def _leading_digits(text: Any, at: int, end: int) -> Any:
    """The first 19 digits that count of a long number, its power of ten, and whether anything but zeros was cut off."""
    whole: Any = np.uint64(0)
    power, taken, is_behind, is_cut = 0, 0, False, False
    for place in range(at, end):
        if text[place] == DOT:
            is_behind = True
            continue
        digit = np.uint64(text[place]) - np.uint64(ZERO)
        if taken < MOST_DIGITS:
            whole = whole * np.uint64(10) + digit
            taken += 1 if whole > 0 else 0
            power -= is_behind
        else:
            power += not is_behind
            is_cut = is_cut or bool(digit > 0)
    return whole, power, is_cut


@jittable
def _exponent(text: Any, at: int) -> Any:
    """Where an exponent ends, or STOPPED, and what it says."""
    at += 1
    is_small = text[at] == MINUS
    if is_small or text[at] == PLUS:
        at += 1
    first, exponent = at, 0
    while ZERO <= text[at] < ZERO + 10:
        exponent = min(exponent * 10 + text[at] - ZERO, LARGEST_EXPONENT)
        at += 1
    return STOPPED if at == first else at, -exponent if is_small else exponent


@jittable
def _any_number(text: Any, first: int, at: int, whole: Any, power: int, kind: Kind) -> Any:
    """Where a number ends of which the digits from *first* to *at* are known, or STOPPED, and the bits of it without sign."""
    is_cut = False
    if at - first > MOST_DIGITS:
        whole, power, is_cut = _leading_digits(text, first, at)
    if text[at] | TO_LOWER == LETTER_E:
        if text[at - 1] == DOT:
            return STOPPED, UNDECIDED
        at, exponent = _exponent(text, at)
        power += exponent
    bits = nearest_bits(whole, power, kind.explicit, kind.bias, kind.even_from, kind.even_to)
    if is_cut and bits != nearest_bits(whole + ONE, power, kind.explicit, kind.bias, kind.even_from, kind.even_to):
        return STOPPED, UNDECIDED
    is_infinite = bits >> np.uint64(kind.explicit) == np.uint64(2 * kind.bias + 1)
    return STOPPED if is_infinite or bits == UNDECIDED else at, bits


@jittable
def _number(text: Any, at: int, values: Any, bits: Any, place: int, kind: Kind) -> int:
    """Read a number into a place of *values*, which are *bits*; where it ends, or STOPPED."""
    is_negative = text[at] == MINUS
    if is_negative or text[at] == PLUS:
        at += 1
    first = at
    at, whole = _digits(text, at, np.uint64(0))
    if at == first:
        return STOPPED
    power = 0
    if text[at] == DOT:
        point = at + 1
        at, whole = _digits(text, point, whole)
        power = at - point
    is_plain = text[at] | TO_LOWER != LETTER_E and at - first <= MOST_DIGITS
    if is_plain and power <= kind.exact and whole >> np.uint64(kind.explicit + 1) == 0:
        value = np.float64(whole) / TENS[power]  # exact up to here, so that rounding to float32 as well changes nothing
        values[place] = -value if is_negative else value
    else:
        at, found = _any_number(text, first, at, whole, -power, kind)
        if is_negative:
            found |= np.uint64(kind.bias + 1) << np.uint64(kind.explicit + 1)
        bits[place] = found
    return at


@jittable
def _sample(text: Any, at: int, is_sparse: bool, dim: int, values: Any, bits: Any, indices: Any, place: int, full: int, kind: Kind) -> Any:
    """Read a sample: where it ends, or STOPPED, the place behind its numbers, and whether the indices ascend."""
    last: Any = -1
    ascend: Any = True
    while True:
        while _is_blank(text, at):
            at += 1
        if _is_end(text, at):
            break
        if place == full:
            at = STOPPED
            break
        if is_sparse:
            first = at
            at, index = _digits(text, at, np.uint64(0))
            if at == first or at - first > MOST_DIGITS or text[at] != COLON or index >= np.uint64(dim):
                at = STOPPED
                break
            at += 1
            indices[place] = index
            ascend &= np.int64(index) > last
            last = np.int64(index)
        at = _number(text, at, values, bits, place, kind)
        if at == STOPPED or not (_is_blank(text, at) or _is_end(text, at)):
            at = STOPPED
            break
        place += 1
    return at, place, ascend


@jittable
def _stream_named(text: Any, at: int, names: Any, name_ends: Any) -> Any:
    """Where the name that begins at *at* ends, and its stream, -1 for none."""
    end = at
    while not (_is_blank(text, end) or _is_end(text, end)):
        end += 1
    begin, found = 0, -1
    for stream in range(len(name_ends)):
        if name_ends[stream] - begin == end - at:
            same = 0
            while same < end - at and text[at + same] == names[begin + same]:
                same += 1
            if same == end - at:
                found = stream
        begin = name_ends[stream]
    return end, found


@jittable
def _line(text: Any, at: int, line: int, sequence: int, streams: Streams, buffers: Buffers, kind: Kind) -> int:
    """Read a line; where its end is, or STOPPED."""
    names, name_ends, dims, is_sparse = streams
    values, bits, indices, ends, first_value, first_row, _, work, unordered, full, lengths = buffers
    while ZERO <= text[at] < ZERO + 10:
        at += 1
    while text[at] == SPACE or text[at] == TAB:
        at += 1
    found = False
    while text[at] == PIPE:
        first = at + 1
        at, stream = first, -1
        if text[at] != HASH:
            at, stream = _stream_named(text, at, names, name_ends)
            if at == first:
                return STOPPED
        if stream < 0:
            while not _is_end(text, at):
                at += 1
            continue
        found = True
        place, room = first_value[stream] + work[stream, 0], first_value[stream + 1]
        row = first_row[stream] + work[stream, 1] + 1
        end = room if is_sparse[stream] else place + dims[stream]
        if row == first_row[stream + 1] or end > room:
            full[stream] = True
            return STOPPED
        at, place, ascend = _sample(text, at, is_sparse[stream], dims[stream], values, bits, indices, place, end, kind)
        if is_sparse[stream]:
            full[stream] |= place == room
            ends[row] = place - first_value[stream]
            unordered[stream] |= not ascend
        elif place < end:
            if work[stream, 2] < 0:
                work[stream, 2] = line
            for rest in range(place, end):
                values[rest] = 0
            place = end
        if at == STOPPED:
            return STOPPED
        work[stream, 0] = place - first_value[stream]
        work[stream, 1] += 1
        lengths[stream, sequence] += 1
    return at if found and text[at] == NEWLINE else STOPPED


@jittable
def _sequences(text: Any, starts: Any, lines: Any, first: int, streams: Streams, buffers: Buffers, kind: Kind) -> Any:
    """Read sequences: the one at which it stopped, and why."""
    counts, work, lengths = buffers.counts, buffers.work, buffers.lengths
    for sequence in range(first, len(starts) - 1):
        for stream in range(len(counts)):
            for column in range(counts.shape[1]):
                work[stream, column] = counts[stream, column]
            lengths[stream, sequence] = 0
        at, line = starts[sequence], lines[sequence]
        while at < starts[sequence + 1]:
            at = _line(text, at, line, sequence, streams, buffers, kind)
            if at == STOPPED:
                return sequence, FULL if buffers.full.any() else FAULT
            at += 1
            line += 1
        shortest, longest = lengths[0, sequence], 0
        for stream in range(len(counts)):
            shortest, longest = min(shortest, lengths[stream, sequence]), max(longest, lengths[stream, sequence])
        if shortest == 0 or longest != line - lines[sequence] or line != lines[sequence + 1]:
            return sequence, FAULT
        for stream in range(len(counts)):
            for column in range(counts.shape[1]):
                counts[stream, column] = work[stream, column]
    return len(starts) - 1, DONE


@loop("B1 I1 I1 q B1 I1 I1 T1 R1 W1 N1 N1 I1 I1 I2 I2 T1 T1 I2 (5) I1", takes_long=True)
def _read(
    text: Any, starts: Any, lines: Any, first: int,
    names: Any, name_ends: Any, dims: Any, is_sparse: Any,
    values: Any, bits: Any, indices: Any, ends: Any, first_value: Any, first_row: Any,
    counts: Any, work: Any, unordered: Any, full: Any, lengths: Any,
    kind: Any, stopped: Any,
) -> None:  # fmt: skip
    """Read with indices of 32 bits; see :func:`read`, whose arguments lie one after another."""
    streams = Streams(names, name_ends, dims, is_sparse)
    buffers = Buffers(values, bits, indices, ends, first_value, first_row, counts, work, unordered, full, lengths)
    described = Kind(kind[0], kind[1], kind[2], kind[3], kind[4])
    stopped[0], stopped[1] = _sequences(text, starts, lines, first, streams, buffers, described)


@loop("B1 I1 I1 q B1 I1 I1 T1 R1 W1 I1 I1 I1 I1 I2 I2 T1 T1 I2 (5) I1", takes_long=True)
def _read_large(
    text: Any, starts: Any, lines: Any, first: int,
    names: Any, name_ends: Any, dims: Any, is_sparse: Any,
    values: Any, bits: Any, indices: Any, ends: Any, first_value: Any, first_row: Any,
    counts: Any, work: Any, unordered: Any, full: Any, lengths: Any,
    kind: Any, stopped: Any,
) -> None:  # fmt: skip
    """The same with indices of 64 bits."""
    streams = Streams(names, name_ends, dims, is_sparse)
    buffers = Buffers(values, bits, indices, ends, first_value, first_row, counts, work, unordered, full, lengths)
    described = Kind(kind[0], kind[1], kind[2], kind[3], kind[4])
    stopped[0], stopped[1] = _sequences(text, starts, lines, first, streams, buffers, described)


def read(text: Any, starts: Any, lines: Any, first: int, streams: Streams, buffers: Buffers, kind: Kind) -> tuple[int, int]:
    """Read sequences until one cannot be read or does not fit.

    Args:
        text: whole lines, the last with its end.
        starts: where in it each sequence starts, and where the last one ends.
        lines: number of each sequence's first line, and of the line after the last one.
        first: the sequence to begin with.

    Returns:
        The sequence at which it stopped, and why: FAULT, FULL or, at the end, DONE.
    """
    stopped = np.empty(2, np.int64)
    by = _read if buffers.indices.itemsize == 4 else _read_large
    by.run(False, text, starts, lines, first, *streams, *buffers, tuple(kind), stopped)
    return int(stopped[0]), int(stopped[1])
