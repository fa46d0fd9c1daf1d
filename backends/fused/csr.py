"""Products of CSR rows with dense matrices: each entry's row of the dense matrix is read once, each row of the result written once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.common.sums import FEW, write_in_pieces
from ...core.common.thresholds import thresholds
from ...core.machine.language import jittable, prange
from ...core.machine.loops import loop
from ...core.types.sparse import Parts
from .ahead import fetch_row

SHARES = 16
"""The number of runs of rows, of about as many entries each, that a product is divided into for threads."""

DIGIT = 11
"""Bits of a column's number that one pass of the radix sort uses."""


@loop("R1 N1 N1 R2 R2")
def multiply(data: Any, indices: Any, indptr: Any, dense: Any, out: Any) -> None:
    """Write the product of CSR rows with a matrix ``(columns of the rows, n)`` to *out* ``(rows, n)``."""
    rows = len(out)
    entries, starts = indptr[rows], indptr[:rows]
    for share in prange(SHARES):
        first = np.searchsorted(starts, entries * share // SHARES)
        last = np.searchsorted(starts, entries * (share + 1) // SHARES) if share < SHARES - 1 else rows
        for row in range(first, last):
            total, begin, end = out[row], indptr[row], indptr[row + 1]
            odd = (end - begin) & 1
            if odd:
                fetch_row(dense, indices, begin, False)
                value, term = data[begin], dense[indices[begin]]
                for j in range(total.size):
                    total[j] = value * term[j]
            else:
                total[:] = 0
            for k in range(begin + odd, end, 2):  # two terms at a time use the memory bandwidth better than one
                fetch_row(dense, indices, k, False)
                fetch_row(dense, indices, k + 1, False)
                value, term = data[k], dense[indices[k]]
                value2, term2 = data[k + 1], dense[indices[k + 1]]
                for j in range(total.size):
                    total[j] = (total[j] + value * term[j]) + value2 * term2[j]


@loop("R1 N1 N1 q I2 I1 N1 N1 R1 N1 I1")
def _transpose(
    data: Any, indices: Any, indptr: Any, width: int, work: Any, places: Any, present: Any, starts: Any, values: Any, rows: Any, count: Any
) -> None:
    """Write the columns that hold entries, ascending, and the CSR arrays of the matrix with one row for each of them.

    The *count* is of these columns, and of entries in the fullest one.
    """
    entries = len(indices)
    order, row_of = _sorted(indices, width, work[0], work[1], places), work[2]
    for row in range(len(indptr) - 1):
        row_of[indptr[row] : indptr[row + 1]] = row
    found, longest = 0, 0
    for k in range(entries):
        i = order[k]
        values[k], rows[k] = data[i], row_of[i]
        if k == 0 or indices[i] != present[found - 1]:
            present[found], starts[found] = indices[i], k
            found += 1
        longest = max(longest, k + 1 - starts[found - 1])
    starts[found] = entries
    count[0], count[1] = found, longest


@jittable
def _sorted(indices: Any, width: int, order: Any, moved: Any, places: Any) -> Any:
    """The entries by ascending column; those of a column keep their order."""
    mask = len(places) - 2
    for k in range(len(order)):
        order[k] = k
    shift = 0
    while (width - 1) >> shift:
        places[:] = 0
        for i in order:
            places[((indices[i] >> shift) & mask) + 1] += 1
        for digit in range(mask):
            places[digit + 1] += places[digit]
        for i in order:
            digit = (indices[i] >> shift) & mask
            moved[places[digit]] = i
            places[digit] += 1
        order, moved = moved, order
        shift += DIGIT
    return order


def transpose(data: Any, indices: Any, indptr: Any, width: int) -> tuple[Any, Parts, int]:
    """The columns that hold entries, ascending, the CSR arrays with one row for each of them, and the entries of the longest row."""
    entries = len(indices)
    present, starts, count = np.empty(entries, indices.dtype), np.empty(entries + 1, indptr.dtype), np.empty(2, np.intp)
    values, rows = np.empty(entries, data.dtype), np.empty(entries, indices.dtype)
    work, places = np.empty((3, entries), np.intp), np.empty((1 << DIGIT) + 1, np.intp)
    _transpose.run(False, data, indices, indptr, width, work, places, present, starts, values, rows, count)
    found, longest = count.tolist()
    return present[:found], (values, rows, starts[: found + 1]), longest


class Csr:
    """Products with CSR rows."""

    @staticmethod
    def product(rows: Parts, dense: Any, out: Any) -> None:
        """Write the product with a matrix *dense*, ``(columns of the rows, n)``, to *out* ``(rows, n)``."""
        write_in_pieces(np, rows[2], out, out.dtype, lambda starts, sums: _multiply(rows, starts, dense, sums))

    @staticmethod
    def transposed_product(rows: Parts, width: int, dense: Any) -> tuple[Any, Any]:
        """The product of the transposed rows, which have *width* columns, with *dense* ``(rows, n)``.

        Returns:
            The columns that hold entries, ascending, and the product's rows ``(columns with entries, n)``; the others are zero.
        """
        present, transposed, longest = transpose(*rows, width)
        out = np.empty((len(present), dense.shape[1]), dense.dtype)
        if longest <= FEW:
            _multiply(transposed, transposed[2], dense, out)
        else:
            Csr.product(transposed, dense, out)
        return present, out


def _multiply(rows: Parts, starts: Any, dense: Any, out: Any) -> None:
    """Write the sums of a product's terms, from each of *starts* to the next, to a row of *out*, one term after another."""
    multiply.run(len(rows[0]) * out.shape[1] >= thresholds.rows_shared, rows[0], rows[1], starts, dense, out)
