"""Sparse values: CSR rows as operands, and gradients that live in a few rows of a parameter."""

from __future__ import annotations

from typing import Any

from .shape import Shape


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

    def to_dense(self, xp: Any) -> Any:
        """The whole gradient as an array of its own."""
        dense = xp.zeros(self.shape, self.dtype)
        dense[self.rows] = self.values
        return dense

    def __repr__(self) -> str:
        present = "empty" if self.rows is None else f"{len(self.rows)} of {self.shape[0]} rows"
        return f"RowSparse({self.shape}, {present})"
