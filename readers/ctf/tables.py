"""The arguments of the compiled :mod:`kernel`, as numbers and arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

DONE, FAULT, FULL = range(3)
"""Why reading ended: at the end, at a sequence that cannot be read, or because an array is full."""


class Kind(NamedTuple):
    """A floating-point type, as :func:`floats.nearest_bits` takes it, and the largest power of ten that it holds exactly."""

    explicit: int
    bias: int
    even_from: int
    even_to: int
    exact: int


KINDS = {np.dtype(np.float32): Kind(23, 127, -17, 10, 10), np.dtype(np.float64): Kind(52, 1023, -4, 23, 22)}


class Streams(NamedTuple):
    """The fields to read.

    Attributes:
        names, name_ends: the names of the fields, one after another, and where each ends.
        dims: elements of a sample.
        is_sparse: whether samples are pairs.
    """

    names: Any
    name_ends: Any
    dims: Any
    is_sparse: Any


class Buffers(NamedTuple):
    """The numbers that have been read.  Each stream has a region of its own of the arrays ``values``, ``indices`` and ``ends``.

    Attributes:
        values: numbers.
        bits: the same memory as whole numbers.
        indices: the index of each number of a sparse stream.
        ends: for each row of a sparse stream how many numbers there are up to and with it, after a zero.
        first_value, first_row: where each stream's regions begin, and where the last one ends.
        counts: for each stream how many numbers and rows it has, and the line of the first sample with too few numbers, -1 for none.
        work: the same with those of a sequence that is being read.
        unordered: whether each stream has a sample whose indices do not ascend.
        full: whether the arrays of each stream are full.
        lengths: for each stream the samples of each sequence.
    """

    values: Any
    bits: Any
    indices: Any
    ends: Any
    first_value: Any
    first_row: Any
    counts: Any
    work: Any
    unordered: Any
    full: Any
    lengths: Any
