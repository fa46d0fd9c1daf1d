"""Sparse matrices on the host: SciPy's if it is installed; ours while rows are read, or without SciPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

import numpy as np

from ..common.dtypes import computing_type

_UNSIGNED = {np.dtype(kind).itemsize: np.dtype(kind) for kind in (np.uint8, np.uint16, np.uint32, np.uint64)}

_EXACT = 2**31
"""Sums of lengths below this do not wrap around, so that one that is too large cannot be offset by others."""

_USUAL = (np.dtype(np.int32), np.dtype(np.int64))
_DTYPE, _NDIM, _PARTS = attrgetter("dtype"), attrgetter("ndim"), [attrgetter(name) for name in ("data", "indices", "indptr")]

TERMS_AT_ONCE = 2**22
"""Elements of the terms of a product that are in memory together."""


class CsrMatrix:
    """A matrix in compressed sparse row format, with the needed part of SciPy's interface, but faster to construct.

    Args:
        data: the elements, one row after another.
        indices: the column of each.
        indptr: for each row where it begins, and where the last one ends.
        width: number of columns.

    >>> from cntk.core.types.csr import CsrMatrix
    >>> matrix = CsrMatrix(np.array([2.0, 3.0]), np.array([1, 0]), np.array([0, 1, 1, 2]), 2)
    >>> matrix
    <CSR matrix of float64 with 3 rows, 2 columns and 2 elements>
    >>> matrix.toarray()
    array([[0., 2.],
           [0., 0.],
           [3., 0.]])
    """

    format = "csr"
    ndim = 2

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

    @property
    def T(self) -> CsrMatrix:
        """The matrix transposed."""
        order = np.argsort(self.indices, kind="stable")
        rows = self._row_numbers()[order].astype(self.indices.dtype)
        return csr_of(self.data[order], rows, np.bincount(self.indices, minlength=self.shape[1]), self.shape[0])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<CSR matrix of {self.dtype} with {self.shape[0]} rows, {self.shape[1]} columns and {self.nnz} elements>"

    def __getitem__(self, part: slice | int) -> CsrMatrix:
        """A copy of rows that follow each other."""
        if not isinstance(part, slice):
            row = range(self.shape[0])[part]
            part = slice(row, row + 1)
        first, last, step = part.indices(self.shape[0])
        if step != 1:
            raise IndexError(f"CSR matrices give contiguous rows, got a step of {step}")
        indptr = self.indptr[first : max(first, last) + 1]
        elements = slice(indptr[0], indptr[-1])
        return CsrMatrix(self.data[elements].copy(), self.indices[elements].copy(), indptr - indptr[0], self.shape[1])

    def __matmul__(self, dense: Any) -> Any:
        """The product with a dense matrix."""
        out = np.zeros((self.shape[0], *dense.shape[1:]), np.result_type(self.data, dense))
        at_once = max(TERMS_AT_ONCE // max(dense[:1].size, 1), 1)
        filled = np.flatnonzero(self.indptr[1:] > self.indptr[:-1])
        starts = self.indptr[filled]
        first = 0
        while first < len(filled):
            last = max(int(np.searchsorted(starts, starts[first] + at_once)), first + 1)
            begin, end = starts[first], self.indptr[filled[last - 1] + 1]
            weights = self.data[begin:end].reshape(-1, *(1,) * (dense.ndim - 1))
            out[filled[first:last]] = np.add.reduceat(weights * dense[self.indices[begin:end]], starts[first:last] - begin, axis=0)
            first = last
        return out

    def astype(self, dtype: Any, copy: bool = True) -> CsrMatrix:
        """The matrix with elements of another type."""
        return CsrMatrix(self.data.astype(dtype, copy=copy), self.indices, self.indptr, self.shape[1])

    def copy(self) -> CsrMatrix:
        """A copy of the matrix."""
        return CsrMatrix(self.data.copy(), self.indices.copy(), self.indptr.copy(), self.shape[1])

    def reshape(self, rows: int, width: int) -> CsrMatrix:
        """The same elements, counted row by row, in rows of another width; -1 for as many rows as there are then."""
        places = self._row_numbers() * self.shape[1] + self.indices
        order = np.argsort(places // width, kind="stable")
        places = places[order]
        count = self.shape[0] * self.shape[1] // width if rows == -1 else rows
        columns = (places % width).astype(self.indices.dtype)
        return csr_of(self.data[order], columns, np.bincount(places // width, minlength=count), width)

    def sum_duplicates(self) -> None:
        """Sort the elements of each row by column, and add up those of the same column."""
        places = self._row_numbers() * self.shape[1] + self.indices
        order = np.argsort(places, kind="stable")
        places = places[order]
        is_first = np.ones(len(places), bool)
        is_first[1:] = places[1:] != places[:-1]
        data = np.add.reduceat(self.data[order], np.flatnonzero(is_first)) if len(places) else self.data
        places = places[is_first]
        self.data, self.indices = data.astype(self.dtype, copy=False), (places % self.shape[1]).astype(self.indices.dtype)
        self.indptr = starts_of(np.bincount(places // self.shape[1], minlength=self.shape[0]), self.indices)

    def tocsr(self) -> Any:
        """SciPy's ``csr_matrix`` of the same arrays; the matrix itself where there is no SciPy."""
        made = _scipy()
        return self if made is None else made((self.data, self.indices, self.indptr), shape=self.shape)

    def toarray(self) -> Any:
        """The array with all zeros; elements of the same place add up."""
        dense = np.zeros(self.shape, self.dtype)
        np.add.at(dense, (self._row_numbers(), self.indices), self.data)
        return dense

    def _row_numbers(self) -> Any:
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))


def is_csr(data: Any) -> bool:
    """Whether *data* is a CSR matrix or array; does not import scipy."""
    found = getattr(data, "format", None)
    return isinstance(found, str) and found == "csr"


def require_whole(owner: Any, matrix: Any) -> None:
    """Check that the rows of a CSR matrix lie within its arrays, and columns within its width; SciPy checks neither later on.

    Args:
        owner: what the matrix is for; named in errors.
        matrix: the matrix.

    Raises:
        ValueError: they do not; the message says what is wrong.

    >>> from cntk.core.types.csr import CsrMatrix, require_whole
    >>> require_whole('x', CsrMatrix(np.ones(2), np.array([0, 1]), np.array([0, 7, 2]), 2))
    Traceback (most recent call last):
        ...
    ValueError: x: the CSR matrix is damaged: indptr falls from 7 to 2 behind row 1; expected numbers that do not decrease
    """
    why = fault_of(matrix)
    if why:
        raise ValueError(f"{owner}: {why}")


def fault_of(matrix: Any) -> str:
    """What is wrong with a CSR matrix; empty where nothing is."""
    if is_usual(matrix):
        return ""
    why = fault_of_ends(matrix)
    if why:
        return why
    starts, width = matrix.indptr, matrix.shape[1]
    falls = np.flatnonzero(starts[1:] < starts[:-1])
    if len(falls):
        row = falls[0]
        return _damaged(f"indptr falls from {starts[row]} to {starts[row + 1]} behind row {row}; expected numbers that do not decrease")
    indices = matrix.indices[: starts[-1]]
    if is_within(indices, width):
        return ""
    return f"the indices of a CSR matrix must lie in 0 … {width - 1}, got {indices.min()} … {indices.max()}"


def is_usual(matrix: Any) -> bool:
    """Whether nothing is wrong with a CSR matrix, and its arrays are as SciPy makes them; called for every minibatch, so it is fast."""
    data, indices, starts, shape = matrix.data, matrix.indices, matrix.indptr, matrix.shape
    if not (
        type(data) is type(indices) is type(starts) is np.ndarray
        and data.shape == indices.shape
        and starts.dtype in _USUAL
        and indices.dtype in _USUAL
        and len(shape) == 2
        and starts.shape == (shape[0] + 1,)
    ):
        return False
    if not has_one_each(indices, starts) and (
        starts.item(0) != 0 or (starts.item(-1),) != indices.shape or not _never_falls(starts, len(indices))
    ):
        return False
    return is_within(indices, shape[1])


def _never_falls(starts: Any, entries: int) -> bool:
    """Whether no row begins behind the next one, where the last row ends with the *entries*."""
    if starts.size * entries < _EXACT:
        return is_within(starts[1:] - starts[:-1], entries + 1)
    return bool((starts[1:] >= starts[:-1]).all())


def fault_of_ends(matrix: Any) -> str:
    """What is wrong with the sizes and types of a CSR matrix' arrays, and with where its first row begins and its last one ends."""
    data, indices, starts, shape = matrix.data, matrix.indices, matrix.indptr, matrix.shape
    for name, array in (("data", data), ("indices", indices), ("indptr", starts)):
        if not (isinstance(array, np.ndarray) and array.ndim == 1):
            return _damaged(f"{name} is {type(array).__name__} {array!r:.60}; expected a NumPy array of one axis")
    for name, array in (("indices", indices), ("indptr", starts)):
        if array.dtype.kind not in "iu" or not array.dtype.isnative:
            return _damaged(f"{name} is {array.dtype}; expected int32 or int64")
    if len(shape) != 2:
        return f"expected CSR rows, which have two axes, got the shape {tuple(shape)}; say .reshape(1, -1) for one row"
    if len(starts) != shape[0] + 1:
        return _damaged(f"indptr has {len(starts)} numbers; expected {shape[0] + 1} for {shape[0]} rows")
    if starts[0] != 0:
        return _damaged(f"indptr begins with {starts[0]}; expected 0")
    if not len(data) == len(indices) >= starts[-1] >= 0:
        return _damaged(f"indptr ends with {starts[-1]}; expected so many numbers in data and indices, got {len(data)} and {len(indices)}")
    return ""


def has_one_each(indices: Any, starts: Any) -> bool:
    """Whether every matrix row holds exactly one value."""
    return starts.size - 1 == indices.size and starts.tobytes() == _starts_of_one_each(starts.size, starts.dtype)


@lru_cache(maxsize=16)
def _starts_of_one_each(count: int, dtype: Any) -> bytes:
    """Where matrix rows of one value each start, as bytes, which are compared in a tenth of the time that a few numbers take."""
    return np.arange(count, dtype=dtype).tobytes()


def stacked(parts: Sequence[Any], width: int) -> CsrMatrix | None:
    """Several CSR matrices below each other, checked all at once; None where one of them is not as SciPy makes them, or has a fault.

    Args:
        parts: objects, of which the first is a CSR matrix.
        width: how many columns each of them has.
    """
    if len({*map(type, parts)}) > 1:
        return None
    data, indices, starts = ([*map(of, parts)] for of in _PARTS)
    arrays = (*data, *indices, *starts)
    if {*map(type, arrays)} != {np.ndarray} or {*map(_NDIM, arrays)} != {1}:
        return None
    places = {*map(_DTYPE, indices), *map(_DTYPE, starts)}
    sizes, ends = [*map(len, data)], [*map(len, starts)]
    shapes = [part.shape for part in parts]
    if len(places) > 1 or places.isdisjoint(_USUAL) or 1 in ends:
        return None
    if [*map(len, indices)] != sizes or shapes != [(end - 1, width) for end in ends]:
        return None
    joined, entries = np.concatenate(starts), sum(sizes)
    after = np.cumsum(ends)
    if joined[after - ends].any() or (joined[after - 1] != sizes).any() or entries >= _EXACT:
        return None
    is_within_part = np.ones(len(joined) - 1, bool)
    is_within_part[after[:-1] - 1] = False
    counts = (joined[1:] - joined[:-1])[is_within_part]
    values, columns = np.concatenate(data), np.concatenate(indices)
    if not (is_within(counts, entries + 1) and is_within(columns, width)):
        return None
    return CsrMatrix(values.astype(computing_type(values.dtype), copy=False), columns, starts_of(counts, columns), width)


def pruned(matrix: Any) -> Any:
    """A CSR matrix without what its arrays hold behind the last row."""
    end = matrix.indptr[-1]
    return matrix if len(matrix.data) == end else csr_matrix_of(matrix.data[:end], matrix.indices[:end], matrix.indptr, matrix.shape[1])


def _damaged(why: str) -> str:
    return f"the CSR matrix is damaged: {why}"


def is_within(indices: Any, width: int) -> bool:
    """Whether all column indices lie inside a matrix, which SciPy does not check; a negative one is large as an unsigned number."""
    if not len(indices):
        return True
    unsigned = indices.view(_UNSIGNED[indices.itemsize])
    return bool(unsigned.item(unsigned.argmax()) < width)  # a few numbers have their largest sooner found than reduced


def csr_matrix_of(data: Any, indices: Any, indptr: Any, width: int) -> Any:
    """The matrix that users get: SciPy's, or ours where there is no SciPy; of float32 for types of 16 bits, which SciPy does not have."""
    values = data.astype(computing_type(data.dtype), copy=False)
    made = _scipy()
    if made is not None:
        return made((values, indices, indptr), shape=(len(indptr) - 1, width))
    small = np.int32 if max(len(values), width) < 2**31 else np.int64
    return CsrMatrix(values, np.asarray(indices).astype(small, copy=False), np.asarray(indptr).astype(small, copy=False), width)


def csr_of(data: Any, indices: Any, counts: Any, width: int) -> CsrMatrix:
    """Rows that have so many elements each."""
    return CsrMatrix(data, indices, starts_of(counts, indices), width)


def starts_of(counts: Any, indices: Any, xp: Any = np) -> Any:
    """Where matrix rows that have so many values start, and the last one ends; of the type of the indices if that suffices."""
    starts = xp.zeros(len(counts) + 1, indices.dtype if len(indices) < 2**31 else np.int64)
    xp.cumsum(counts, out=starts[1:])
    return starts


def type_name() -> str:
    """The name of the matrices that users get."""
    return "cntk.core.types.csr.CsrMatrix" if _scipy() is None else "scipy.sparse.csr_matrix"


@lru_cache(maxsize=1)
def _scipy() -> Any:
    """SciPy's class; None where it is not installed."""
    if find_spec("scipy") is None:
        return None
    from scipy.sparse import csr_matrix

    return csr_matrix
