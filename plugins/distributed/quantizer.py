"""Quantisation of the columns of gradients to a few bits a number.

A column runs along a parameter's last axis, as in CNTK; a vector is one column.
"""

from __future__ import annotations

from typing import Any

from .bits import column_size, pack, unpack

BITS = range(1, 32)


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
        self._wide = xp.float64 if bits > 16 else self.dtype

    def column_bytes(self, width: int) -> int:
        """Bytes of a column of *width* numbers."""
        return 2 * int(self.dtype.itemsize) + column_size(width, self.bits)

    def encode(self, matrix: Any) -> tuple[Any, Any]:
        """The bytes, a row for each column, and what they stand for."""
        xp = self.xp
        ends, codes = self._one_bit(matrix) if self.bits == 1 else self._levels(matrix)
        encoded = xp.concatenate((xp.ascontiguousarray(ends).view(xp.uint8), pack(xp, codes, self.bits)), axis=1)
        return encoded, self._values(ends, codes)

    def decode(self, encoded: Any, width: int) -> Any:
        """What bytes stand for: a matrix of columns of *width* numbers."""
        xp, columns = self.xp, len(encoded)
        head = 2 * int(self.dtype.itemsize)
        ends = xp.ascontiguousarray(encoded[:, :head]).view(self.dtype).reshape(columns, 2)
        return self._values(ends, unpack(xp, xp.ascontiguousarray(encoded[:, head:]), columns, width, self.bits))

    def _one_bit(self, matrix: Any) -> tuple[Any, Any]:
        xp = self.xp
        above = matrix >= 0
        count = above.sum(axis=1)
        upper = xp.where(above, matrix, 0).sum(axis=1) / xp.maximum(count, 1)
        lower = xp.where(above, 0, matrix).sum(axis=1) / xp.maximum(matrix.shape[1] - count, 1)
        return xp.stack((lower, upper), axis=1).astype(self.dtype, copy=False), above.astype(xp.uint32)

    def _levels(self, matrix: Any) -> tuple[Any, Any]:
        xp = self.xp
        ends = xp.stack((matrix.min(axis=1), matrix.max(axis=1)), axis=1)
        lower, step = self._scale(ends)
        steps = (matrix.astype(self._wide, copy=False) - lower) / xp.where(step > 0, step, 1)
        return ends, xp.clip(xp.rint(steps), 0, 2**self.bits - 1).astype(xp.uint32)

    def _values(self, ends: Any, codes: Any) -> Any:
        if self.bits == 1:
            return self.xp.where(codes > 0, ends[:, 1:], ends[:, :1])
        lower, step = self._scale(ends)
        return (lower + codes.astype(self._wide) * step).astype(self.dtype, copy=False)

    def _scale(self, ends: Any) -> tuple[Any, Any]:
        wide = ends.astype(self._wide, copy=False)
        return wide[:, :1], (wide[:, 1:] - wide[:, :1]) / (2**self.bits - 1)
