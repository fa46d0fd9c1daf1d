"""Sparse values: CSR rows as operands, and gradients that live in a few rows of a parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from .shape import Shape, size_of


class SparseRows:
    """A sparse operand: CSR rows that a call refers to, without copying.

    The matrix has ``rows * prod(static shape without its last axis)`` rows and as many columns as the last static axis.

    Attributes:
        data, indices, indptr: the three arrays of CSR (values, column of each value, start of each matrix row).
        shape: ``(rows, *static)`` with dynamic axes, else the static shape.
        dtype: element type of the values.
    """

    __slots__ = ("_one_hot", "data", "dtype", "indices", "indptr", "shape")

    def __init__(self, shape: Shape, dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype
        self.data: Any = None
        self.indices: Any = None
        self.indptr: Any = None
        self._one_hot: bool | None = None

    def set(self, data: Any, indices: Any, indptr: Any) -> None:
        """Refer to the arrays of the current minibatch."""
        self.data, self.indices, self.indptr = data, indices, indptr
        self._one_hot = None

    @property
    def parts(self) -> tuple[Any, Any, Any]:
        """The three arrays: data, indices and indptr."""
        return self.data, self.indices, self.indptr

    @property
    def is_one_hot(self) -> bool:
        """Whether every matrix row holds exactly one value; found out once a minibatch."""
        if self._one_hot is None:
            starts = self.indptr
            self._one_hot = len(starts) - 1 == len(self.indices) and bool((starts[1:] > starts[:-1]).all())
        return self._one_hot

    def to_dense(self, xp: Any, out: Any) -> None:
        """Write the dense array into *out*; repeated entries add up."""
        flat = out.reshape(-1, self.shape[-1])
        flat[...] = 0
        xp.add.at(flat, (self.row_numbers(xp), self.indices), self.data)

    def row_numbers(self, xp: Any) -> Any:
        """Matrix row of each stored value."""
        counts = self.indptr[1:] - self.indptr[:-1]
        return xp.repeat(xp.arange(len(counts)), counts)

    def take(self, xp: Any, index: Any) -> tuple[Any, Any, Any]:
        """The three arrays of the matrix whose rows are these rows, in this order."""
        counts = (self.indptr[1:] - self.indptr[:-1])[index]
        starts = xp.concatenate((xp.zeros_like(self.indptr, shape=1), xp.cumsum(counts, dtype=self.indptr.dtype)))
        places = xp.arange(int(starts[-1])) + xp.repeat(self.indptr[index] - starts[:-1], counts)
        return self.data[places], self.indices[places], starts

    def to_csr(self, backend: Any) -> Any:
        """The matrix, in memory of its own on the host; float32 for float16, which SciPy has not."""
        data, indices, indptr = (backend.to_numpy(part) for part in (self.data, self.indices, self.indptr))
        return _csr_matrix(data, indices, indptr, self.shape[-1])


class RowSparse:
    """A gradient that is zero outside some rows of a parameter, as products with sparse operands give it.

    Attributes:
        rows: numbers of the rows that are present, ascending and distinct.
        values: their gradients, ``(len(rows), *shape[1:])``.
        shape: shape of the whole gradient.
    """

    __slots__ = ("dtype", "rows", "shape", "values")

    def __init__(self, shape: Shape, dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype
        self.rows: Any = None
        self.values: Any = None

    def set(self, rows: Any, values: Any) -> None:
        """Store the gradient of the current minibatch."""
        self.rows, self.values = rows, values

    def add(self, xp: Any, term: RowSparse) -> None:
        """Add another gradient of the same shape: a row is present where it is in either."""
        rows = xp.union1d(self.rows, term.rows)
        values = xp.zeros((len(rows), *self.shape[1:]), self.dtype)
        values[xp.searchsorted(rows, self.rows)] = self.values
        values[xp.searchsorted(rows, term.rows)] += term.values
        self.set(rows, values)

    def to_csr(self, backend: Any) -> Any:
        """The gradient as a CSR matrix on the host, its last axis laid out as columns; float32 for float16, which SciPy has not."""
        rows, values = backend.to_numpy(self.rows), backend.to_numpy(self.values)
        width = self.shape[-1]
        beside = size_of(self.shape[1:-1])
        present = (rows[:, None] * beside + np.arange(beside)).reshape(-1)
        counts = np.zeros(self.shape[0] * beside + 1, np.intp)
        counts[present + 1] = width
        return _csr_matrix(values.reshape(-1), np.tile(np.arange(width), len(present)), np.cumsum(counts), width)

    def to_dense(self, xp: Any) -> Any:
        """The whole gradient as an array of its own."""
        dense = xp.zeros(self.shape, self.dtype)
        dense[self.rows] = self.values
        return dense

    def __repr__(self) -> str:
        present = "empty" if self.rows is None else f"{len(self.rows)} of {self.shape[0]} rows"
        return f"RowSparse({self.shape}, {present})"


def _csr_matrix(data: Any, indices: Any, indptr: Any, width: int) -> Any:
    from scipy.sparse import csr_matrix

    values = data.astype(np.float32) if data.dtype == np.float16 else data
    return csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, width))
