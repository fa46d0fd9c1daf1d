"""Products of CSR rows with dense matrices: one thread per element of the result adds up its terms in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.common.sums import PIECE
from ...core.machine.language import jittable, prange
from ...core.types.sparse import Parts
from .compiler import Kernel


@jittable
def _piece(data: Any, indices: Any, begin: int, end: int, dense: Any, column: int) -> Any:
    """Return the sum of a range of terms, accumulated in their own type."""
    total = dense.dtype.type(0)
    for k in range(begin, end):
        total += data[k] * dense[indices[k], column]
    return total


def _multiply(data: Any, indices: Any, indptr: Any, dense: Any, out: Any) -> None:
    width = dense.shape[1]
    for at in prange(out.shape[0] * width):
        row, column = at // width, at % width
        begin, end = indptr[row], indptr[row + 1]
        total = np.float64(0)
        for start in range(begin, end, PIECE):
            total += _piece(data, indices, start, min(start + PIECE, end), dense, column)
        out[row, column] = total


MULTIPLY = Kernel(_multiply, "R1 N1 N1 R2 R2")


def product(rows: Parts, dense: Any, out: Any) -> None:
    """Compute the product of *rows* with a matrix *dense*, ``(columns of the rows, n)``, into *out*, ``(rows, n)``."""
    if not len(rows[0]):
        out.fill(0)
    elif out.size:
        MULTIPLY.bound(out.size, *rows, dense, out)()


def transposed_product(xp: Any, rows: Parts, dense: Any) -> tuple[Any, Any]:
    """Return the product of the transpose of *rows* with *dense*, ``(rows, n)``.

    Args:
        xp: array namespace.

    Returns:
        The columns with entries, ascending, and the product's rows for them, ``(columns with entries, n)``; all others are zero.
    """
    data, indices, indptr = rows
    if not len(data):
        return indices, xp.empty((0, dense.shape[1]), dense.dtype)
    order = xp.argsort(indices, kind="stable")
    columns = indices[order]
    begins = xp.flatnonzero(xp.concatenate((xp.ones(1, bool), columns[1:] != columns[:-1])))
    starts = xp.concatenate((begins, xp.full(1, len(data), begins.dtype)))
    row_of = xp.searchsorted(indptr, xp.arange(len(data), dtype=indptr.dtype), side="right") - 1
    present = columns[begins]
    out = xp.empty((len(present), dense.shape[1]), dense.dtype)
    product((data[order], row_of[order], starts), dense, out)
    return present, out
