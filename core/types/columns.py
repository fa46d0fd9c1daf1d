"""The columns of sparse rows that hold values: which rows of a matrix a product reads, and which of its gradient are not zero."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Columns(NamedTuple):
    """A matrix of sparse rows transposed, without the columns that hold nothing.

    On a device its arrays may have room for more than the minibatch at hand has; the numbers behind it mean nothing.

    Attributes:
        numbers: number of each column, ascending.
        starts: start of each column's values, and the end of the last one.
        rows: matrix row of each value.
        data: the values, column by column.
        length: how many columns there are: an array of one number.
        present: the same, known on the host.
    """

    numbers: Any
    starts: Any
    rows: Any
    data: Any
    length: Any
    present: int


def columns_of(data: Any, indices: Any, indptr: Any) -> Columns:
    """The columns of CSR rows, in arrays of the host."""
    kind = np.promote_types(indices.dtype, indptr.dtype)
    order = np.argsort(indices, kind="stable")
    sorted_indices = indices[order]
    is_first = np.ones(len(order), bool)
    np.not_equal(sorted_indices[1:], sorted_indices[:-1], out=is_first[1:])
    firsts = np.flatnonzero(is_first)
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=kind), indptr[1:] - indptr[:-1])[order]
    starts = np.append(firsts, len(order)).astype(kind)
    return Columns(sorted_indices[firsts].astype(kind), starts, rows, data[order], np.array([len(firsts)], kind), len(firsts))
