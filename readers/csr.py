"""Rows of a sparse matrix while they are read, picked and joined: what SciPy's have, without the time that it takes to make those."""

from __future__ import annotations

from typing import Any

from ..core.sparse import starts_of


class CsrRows:
    """Rows in compressed sparse row format; SciPy is imported only where its matrix is asked for.

    Attributes:
        data, indices: the elements, one row after another, and the column of each.
        indptr: for each row where it begins, and where the last one ends.
        shape: rows and columns.
    """

    format = "csr"

    def __init__(self, data: Any, indices: Any, indptr: Any, width: int) -> None:
        self.data, self.indices, self.indptr = data, indices, indptr
        self.shape = (len(indptr) - 1, width)

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """How many elements there are."""
        return len(self.data)

    def __getitem__(self, part: slice) -> CsrRows:
        """A copy of rows that follow each other."""
        first, last, _ = part.indices(self.shape[0])
        indptr = self.indptr[first : max(first, last) + 1]
        elements = slice(indptr[0], indptr[-1])
        return CsrRows(self.data[elements].copy(), self.indices[elements].copy(), indptr - indptr[0], self.shape[1])

    def astype(self, dtype: Any, copy: bool = True) -> CsrRows:
        """The same with elements of another type."""
        return CsrRows(self.data.astype(dtype, copy=copy), self.indices, self.indptr, self.shape[1])

    def tocsr(self) -> Any:
        """SciPy's ``csr_matrix`` of the same arrays."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)

    def toarray(self) -> Any:
        """The array with all zeros."""
        return self.tocsr().toarray()


def csr_of(data: Any, indices: Any, counts: Any, width: int) -> CsrRows:
    """Rows that have so many elements each."""
    return CsrRows(data, indices, starts_of(counts, indices), width)
