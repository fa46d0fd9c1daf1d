"""Sparse values: CSR rows as operands, and gradients that live in a few rows of a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..common.shape import Shape, size_of
from .columns import Columns
from .csr import csr_matrix_of, has_one_each, starts_of

Parts = tuple[Any, Any, Any]
"""The three arrays of CSR: values, column of each value, start of each matrix row."""


class SparseRows:
    """A sparse operand: CSR rows that a call refers to, without copying.

    The matrix has ``rows * prod(static shape without its last axis)`` rows and as many columns as the last static axis.

    Attributes:
        shape: ``(rows, *static)`` with dynamic axes, else the static shape.
        dtype: element type of the values.
    """

    __slots__ = ("_host", "_of_ones", "_one_hot", "_parts", "_steps", "_xp", "dtype", "shape")

    def __init__(self, shape: Shape, dtype: Any, xp: Any = np) -> None:
        self.shape, self.dtype, self._xp = shape, dtype, xp
        self._parts: Parts | None = None
        self._host: Parts | None = None
        self._steps: dict[int, tuple[int, Parts]] = {}  # first row: row behind the last, arrays
        self._one_hot: bool | None = None
        self._of_ones: bool | None = None

    def set(self, data: Any, indices: Any, indptr: Any, host: Parts | None = None) -> None:
        """Refer to the arrays of the current minibatch; *host* has the same numbers on the host, where these are known there."""
        self._parts, self._host = (data, indices, indptr), host
        self._one_hot = self._of_ones = None

    @property
    def parts(self) -> Parts:
        """The three arrays: data, indices and indptr."""
        if self._parts is None:
            self._parts = self._joined()
        return self._parts

    @property
    def data(self) -> Any:
        """The values."""
        return (self._parts or self.parts)[0]

    @property
    def indices(self) -> Any:
        """Column of each value."""
        return (self._parts or self.parts)[1]

    @property
    def indptr(self) -> Any:
        """Start of each matrix row, and the end of the last one."""
        return (self._parts or self.parts)[2]

    @property
    def has_columns(self) -> bool:
        """Whether there are :attr:`columns`, at places that stay; otherwise they have to be found."""
        return False

    @property
    def columns(self) -> Columns:
        """The columns that hold values, if there are any to be had."""
        raise ValueError("the columns of these sparse rows are not known")

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(part.nbytes for part in self._parts or ())

    # ---- steps of a recurrence ----

    def __getitem__(self, rows: slice) -> SparseStep:
        return SparseStep(self, rows.start, rows.stop)

    def set_step(self, first: int, last: int, parts: Parts) -> None:
        """Refer to the arrays of the rows from *first* to *last*; all rows are there when they are asked for together."""
        self._parts = self._host = self._one_hot = self._of_ones = None
        self._steps[first] = last, parts

    def step(self, first: int, last: int) -> Parts:
        """The arrays of the rows from *first* to *last*."""
        if self._parts is None:
            return self._steps[first][1]
        beside = size_of(self.shape[1:-1])
        data, indices, indptr = self._parts
        starts = indptr[first * beside : last * beside + 1]
        begin, end = int(starts[0]), int(starts[-1])
        return data[begin:end], indices[begin:end], starts - begin

    def _joined(self) -> Parts:
        """The arrays of all steps, one after another."""
        pieces: list[Parts] = []
        row = 0
        while row < self.shape[0]:
            row, parts = self._steps[row]
            pieces.append(parts)
        self._steps.clear()
        return join(pieces, self._xp)

    # ---- what operators ask for ----

    @property
    def is_one_hot(self) -> bool:
        """Whether every matrix row holds exactly one value; computed once a minibatch."""
        if self._one_hot is None:
            self._one_hot = has_one_each(*(self._host or self.parts)[1:])
        return self._one_hot

    @property
    def is_of_ones(self) -> bool:
        """Whether every value is 1; computed once a minibatch."""
        if self._of_ones is None:
            self._of_ones = _is_of_ones((self._host or self.parts)[0])
        return self._of_ones

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
        if self.is_one_hot:
            return self.data[index], self.indices[index], xp.arange(len(index) + 1, dtype=self.indptr.dtype)
        counts = (self.indptr[1:] - self.indptr[:-1])[index]
        starts = xp.concatenate((xp.zeros_like(self.indptr, shape=1), xp.cumsum(counts, dtype=self.indptr.dtype)))
        places = xp.arange(int(starts[-1])) + xp.repeat(self.indptr[index] - starts[:-1], counts)
        return self.data[places], self.indices[places], starts

    def to_csr(self, backend: Any) -> Any:
        """The matrix, in memory of its own on the host; float32 for types of 16 bits, which SciPy does not have."""
        data, indices, indptr = (backend.to_numpy(part) for part in (self.data, self.indices, self.indptr))
        return csr_matrix_of(data, indices, indptr, self.shape[-1])


class SparseStep(SparseRows):
    """Some rows of a sparse value, those of one step of a recurrence: what is read or set here is read or set there."""

    __slots__ = ("first", "last", "whole")

    def __init__(self, whole: SparseRows, first: int, last: int) -> None:
        super().__init__((last - first, *whole.shape[1:]), whole.dtype, whole._xp)
        self.whole, self.first, self.last = whole, first, last

    def set(self, data: Any, indices: Any, indptr: Any, host: Parts | None = None) -> None:
        self.whole.set_step(self.first, self.last, (data, indices, indptr))

    @property
    def parts(self) -> Parts:
        return self.whole.step(self.first, self.last)

    @property
    def is_one_hot(self) -> bool:
        return has_one_each(*self.parts[1:])

    @property
    def is_of_ones(self) -> bool:
        return _is_of_ones(self.data)


class RowSparse:
    """A gradient that is zero outside some rows of a parameter, as products with sparse operands give it.

    Attributes:
        shape: shape of the whole gradient.
        place: where recorded work writes the gradient of each minibatch; None where it is somewhere else each time.
    """

    __slots__ = ("_rows", "_values", "dtype", "place", "shape")

    def __init__(self, shape: Shape, dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype
        self.place: RowsPlace | None = None
        self._rows: Any = None
        self._values: Any = None

    @property
    def rows(self) -> Any:
        """Numbers of the rows that are present, ascending and distinct."""
        return self._rows if self.place is None else self.place.rows

    @property
    def values(self) -> Any:
        """Their gradients, ``(len(rows), *shape[1:])``."""
        return self._values if self.place is None else self.place.values

    def set(self, rows: Any, values: Any) -> None:
        """Store the gradient of the current minibatch."""
        self._rows, self._values, self.place = rows, values, None

    def set_place(self, place: RowsPlace) -> None:
        """The gradient of the current minibatch is at a place that stays."""
        self._rows = self._values = None
        self.place = place

    def fill(self, zero: int) -> None:
        """Begin a sum, as an array is filled with zero: no row is present."""
        self._rows = self._values = self.place = None

    def add(self, xp: Any, term: RowSparse) -> None:
        """Add another gradient of the same shape: a row is present where it is in either."""
        if self.rows is None:
            self.set(term.rows.copy(), term.values.copy())
            return
        rows, places = xp.unique(xp.concatenate((self.rows, term.rows)), return_inverse=True)
        values = xp.zeros((len(rows), *self.shape[1:]), self.dtype)
        values[places[: len(self.rows)]] = self.values
        values[places[len(self.rows) :]] += term.values
        self.set(rows, values)

    def to_csr(self, backend: Any) -> Any:
        """The gradient as a CSR matrix on the host, its last axis laid out as columns; float32 for 16 bits, which SciPy does not have."""
        rows, values = backend.to_numpy(self.rows), backend.to_numpy(self.values)
        width = self.shape[-1]
        beside = size_of(self.shape[1:-1])
        present = (rows[:, None] * beside + np.arange(beside)).reshape(-1)
        counts = np.zeros(self.shape[0] * beside + 1, np.intp)
        counts[present + 1] = width
        return csr_matrix_of(values.reshape(-1), np.tile(np.arange(width), len(present)), np.cumsum(counts), width)

    def to_dense(self, xp: Any) -> Any:
        """The whole gradient as an array of its own."""
        dense = xp.zeros(self.shape, self.dtype)
        dense[self.rows] = self.values
        return dense

    def __repr__(self) -> str:
        present = "empty" if self.rows is None else f"{len(self.rows)} of {self.shape[0]} rows"
        return f"RowSparse({self.shape}, {present})"


class RowsPlace:
    """Where the gradients of a parameter's rows lie that occur in a sparse operand, for one minibatch after another.

    Attributes:
        operand: the operand, which knows its columns.
        room: memory for the gradients, of as many rows as the operand has room for columns.
    """

    __slots__ = ("operand", "room")

    def __init__(self, operand: SparseRows, room: Any) -> None:
        self.operand, self.room = operand, room

    @property
    def columns(self) -> Columns:
        """The operand's columns, whose numbers are those of the rows."""
        return self.operand.columns

    @property
    def rows(self) -> Any:
        """Numbers of the rows of the minibatch at hand."""
        return self.columns.numbers[: self.columns.present]

    @property
    def values(self) -> Any:
        """Their gradients."""
        return self.room[: self.columns.present]


def _is_of_ones(data: Any) -> bool:
    return data.tobytes() == _ones(len(data), data.dtype)


@lru_cache(maxsize=16)
def _ones(count: int, dtype: Any) -> bytes:
    return np.ones(count, dtype).tobytes()


def parts_of(matrix: Any) -> Parts:
    """The three arrays of a matrix, without what lies behind its last row."""
    end = matrix.indptr[-1]
    return matrix.data[:end], matrix.indices[:end], matrix.indptr


def join(pieces: Sequence[Parts], xp: Any = np) -> Parts:
    """Matrices below each other, whose arrays are of the namespace *xp*."""
    data, indices, indptr = zip(*pieces, strict=True)
    values, columns = xp.concatenate(data), xp.concatenate(indices)
    return values, columns, starts_of(xp.concatenate([starts[1:] - starts[:-1] for starts in indptr]), columns, xp)


def rows_of_steps(steps: Any, per_step: int) -> Any:
    """Numbers of the matrix rows of *steps*, of which each has *per_step* rows."""
    return steps if per_step == 1 else (steps[:, None] * per_step + np.arange(per_step)).reshape(-1)
