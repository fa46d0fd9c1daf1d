"""Rows that lie anywhere in memory are fetched into the cache before a loop comes to them, since processors cannot foresee them."""

from __future__ import annotations

from typing import Any

from ...core.machine.language import jittable
from .tile import fetch, fetch_to_read

AHEAD = 8
"""So many rows before its own a row is fetched."""

MOST_BYTES = 512
"""So much of a row is fetched; processors go on by themselves."""

LINE = 64
"""Bytes of a line of the cache."""


@jittable
def fetch_row(matrix: Any, rows: Any, k: int, is_written: bool) -> None:
    """Fetch the row of a matrix that *rows* names :data:`AHEAD` places after the place *k*, if there is one."""
    if k + AHEAD < len(rows):
        row = matrix.ctypes.data + rows[k + AHEAD] * matrix.strides[0]
        for line in range(0, min(matrix.shape[1] * matrix.itemsize, MOST_BYTES), LINE):
            if is_written:
                fetch(row + line)
            else:
                fetch_to_read(row + line)
