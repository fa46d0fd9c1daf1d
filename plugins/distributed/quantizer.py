"""Quantisation of the columns of gradients to a few bits a number.

A column runs along a parameter's last axis, as in CNTK; a vector is one column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .bits import column_size, pack, unpack

BITS = range(1, 32)

BLOCK = 2**16
"""Numbers that are processed at a time, so that they stay in the processor's cache."""


class Quantizer:
    """Writes matrices, a column in each row, as bytes.

    With one bit a number stands for the mean of the column's numbers that are not negative, or of those that are; with more it stands for
    the nearest of 2**bits levels, evenly spaced between the least and the greatest number of the column.  Every column begins with the two
    numbers that this takes.

    Args:
        xp: array namespace.
        bits: 1 to 31.
        dtype: type of the matrices, float32 or float64.
    """

    def __init__(self, xp: Any, bits: int, dtype: Any) -> None:
        self.xp, self.bits, self.dtype = xp, bits, xp.dtype(dtype)
        self._head = 2 * int(self.dtype.itemsize)
        self._wide = xp.float64 if bits > 16 else self.dtype

    def column_bytes(self, width: int) -> int:
        """Bytes of a column of *width* numbers."""
        return self._head + column_size(width, self.bits)

    def encode(self, matrix: Any) -> Any:
        """The matrix as bytes, a row for each column; the matrix then has the quantisation error."""
        columns, width = matrix.shape
        encoded = self.xp.empty((columns, self.column_bytes(width)), self.xp.uint8)
        for block in _blocks(columns, width):
            part = matrix[block]
            ends, codes = self._one_bit(part) if self.bits == 1 else self._levels(part)
            encoded[block, : self._head] = ends.view(self.xp.uint8)
            encoded[block, self._head :] = pack(self.xp, codes, self.bits)
            part -= self._values(ends, codes)
        return encoded

    def decode(self, encoded: Any, width: int) -> Any:
        """The matrix that bytes encode, with columns of *width* numbers."""
        xp, columns = self.xp, len(encoded)
        matrix = xp.empty((columns, width), self.dtype)
        for block in _blocks(columns, width):
            ends = xp.ascontiguousarray(encoded[block, : self._head]).view(self.dtype)
            matrix[block] = self._values(ends, unpack(xp, encoded[block, self._head :], width, self.bits))
        return matrix

    def _one_bit(self, matrix: Any) -> tuple[Any, Any]:
        xp = self.xp
        columns, width = matrix.shape
        above = matrix >= 0
        count = xp.count_nonzero(above, axis=1)
        ends = xp.empty((columns, 2), self.dtype)
        ends[:, 0] = xp.minimum(matrix, 0).sum(axis=1) / xp.maximum(width - count, 1)
        ends[:, 1] = xp.maximum(matrix, 0).sum(axis=1) / xp.maximum(count, 1)
        return ends, above

    def _levels(self, matrix: Any) -> tuple[Any, Any]:
        xp = self.xp
        ends = xp.stack((matrix.min(axis=1), matrix.max(axis=1)), axis=1)
        lower, step = self._scale(ends)
        steps = (matrix.astype(self._wide, copy=False) - lower) / xp.where(step > 0, step, 1)
        return ends, xp.clip(xp.rint(steps), 0, 2**self.bits - 1).astype(xp.uint32)

    def _values(self, ends: Any, codes: Any) -> Any:
        if self.bits == 1:
            return self.xp.where(codes, ends[:, 1:], ends[:, :1])
        lower, step = self._scale(ends)
        return (lower + codes.astype(self._wide) * step).astype(self.dtype, copy=False)

    def _scale(self, ends: Any) -> tuple[Any, Any]:
        wide = ends.astype(self._wide, copy=False)
        return wide[:, :1], (wide[:, 1:] - wide[:, :1]) / (2**self.bits - 1)


def _blocks(columns: int, width: int) -> Iterator[slice]:
    """Columns that are worked on together."""
    step = max(BLOCK // max(width, 1), 1)
    return (slice(start, start + step) for start in range(0, columns, step))
