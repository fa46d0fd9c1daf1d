"""Products of CSR rows with dense matrices, over any array namespace.

A CSR matrix is passed as its three arrays ``(data, indices, indptr)``: values, column of each value, start of each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.common.sums import add_up_runs, write_in_pieces

Csr = tuple[Any, Any, Any]

_CHUNK = 1 << 22
"""Elements of the temporary array that gathered rows go to; a longer minibatch is worked off in pieces."""


def multiply(xp: Any, csr: Csr, dense: Any, out: Any) -> None:
    """Write ``csr @ dense`` into the matrix *out*."""
    data, indices, indptr = csr
    counts = indptr[1:] - indptr[:-1]
    if len(indices) == len(counts) and bool((counts == 1).all()):
        xp.take(dense, indices, axis=0, out=out)
        if bool((data != 1).any()):
            xp.multiply(out, data[:, None], out=out)
        return
    write_in_pieces(xp, indptr, out, xp.float64, lambda starts, sums: _add_up(xp, (data, indices, starts), dense, sums))


def _add_up(xp: Any, csr: Csr, dense: Any, out: Any) -> None:
    """The same where no row has many entries."""
    data, indices, indptr = csr
    out[...] = 0
    for first, last, start, stop in _parts(xp, indptr, max(1, _CHUNK // out.shape[1])):
        products = dense[indices[start:stop]]
        xp.multiply(products, data[start:stop, None], out=products)
        add_up_runs(xp, products, indptr[first : last + 1] - start, out[first:last])


def transpose(xp: Any, csr: Csr) -> tuple[Any, Csr]:
    """Transpose a CSR matrix, leaving its empty columns out.

    Returns:
        The columns that hold values, ascending, and the CSR matrix with one row for each of them.
    """
    data, indices, indptr = csr
    rows = xp.repeat(xp.arange(len(indptr) - 1), indptr[1:] - indptr[:-1])
    order = xp.argsort(indices, kind="stable")
    columns = indices[order]
    starts = xp.flatnonzero(columns[1:] != columns[:-1]) + 1
    if len(columns):
        starts = xp.concatenate((xp.zeros_like(starts[:1], shape=1), starts))
    ends = xp.concatenate((starts, xp.full_like(starts, len(columns), shape=1)))
    return columns[starts], (data[order], rows[order], ends)


def sum_rows(xp: Any, numbers: Any, values: Any, out: Any) -> None:
    """Add up the rows of *values* that have the same number, into the rows of *out* with that number; the others become 0."""
    ones = xp.ones(len(numbers), dtype=values.dtype)
    present, csr = transpose(xp, (ones, numbers, xp.arange(len(numbers) + 1)))
    sums = xp.empty((len(present), values.shape[1]), dtype=values.dtype)
    multiply(xp, csr, values, sums)
    out[...] = 0
    out[present] = sums


def _parts(xp: Any, indptr: Any, entries: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut rows into runs of some *entries* values each: first row, last row, first value, last value."""
    rows = len(indptr) - 1
    first = 0
    while first < rows:
        start = int(indptr[first])
        last = max(first + 1, int(xp.searchsorted(indptr, start + entries, side="right")) - 1)
        stop = int(indptr[last])
        if stop > start:
            yield first, last, start, stop
        first = last
