"""Products of CSR rows with dense matrices: a warp computes 32 columns of a row of the result, adding terms in the order of the entries.

Long rows are summed in pieces, whose sums are added up as doubles, so that the error does not grow with the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.types.sparse import Parts
from .compiler import MOST_BLOCKS, THREADS, compile
from .prelude import prelude

PIECE = 256
"""Number of consecutive entries of a row that make up a piece."""


class Csr:
    """Products of CSR rows with dense matrices."""

    @staticmethod
    def product(rows: Parts, dense: Any, out: Any) -> None:
        """Compute the product of *rows* with a matrix *dense*, ``(columns of the rows, n)``, into *out*, ``(rows, n)``."""
        data, indices, starts = rows
        count, width = out.shape
        if not count or not width:
            return
        tiles = -(-count * -(-width // 32) * 32 // THREADS)
        launch = compile(text(data.dtype, [_integer(indices), _integer(starts)]), "multiply")
        launch.bound(min(tiles, MOST_BLOCKS), THREADS, data, indices, starts, dense, out, np.uint64(count), np.uint64(width))()

    @staticmethod
    def transposed_product(rows: Parts, width: int, dense: Any) -> tuple[Any, Any]:
        """Return the product of the transpose of *rows*, which have *width* columns, with *dense*, ``(rows, n)``.

        Returns:
            The columns with entries, ascending, and the product's rows for them, ``(columns with entries, n)``; all others are zero.
        """
        import cupy

        data, indices, starts = rows
        order = cupy.argsort(indices, kind="stable")
        columns = indices[order]
        row_of = cupy.searchsorted(starts[1:], order, side="right").astype(indices.dtype)
        is_first = cupy.empty(columns.shape, bool)
        is_first[:1], is_first[1:] = True, columns[1:] != columns[:-1]
        firsts = cupy.flatnonzero(is_first)
        ends = cupy.empty((len(firsts) + 1,), np.int64)
        ends[:-1], ends[-1:] = firsts, len(columns)
        out = cupy.empty((len(firsts), dense.shape[1]), dense.dtype)
        Csr.product((data[order], row_of, ends), dense, out)
        return columns[firsts], out


def text(dtype: Any, places: Sequence[str]) -> str:
    """Return the kernel source for an element type; *places* are the C types of indices and of row starts."""
    return f"""{prelude(dtype, "unsigned long long")}
typedef {places[0]} place;
typedef {places[1]} start;

extern "C" __global__ void __launch_bounds__({THREADS})
multiply(const stored *data, const place *indices, const start *starts, const stored *dense, stored *out, size rows, size width) {{
    const size tiles = (width + 31) / 32;
    for (size warp = (blockIdx.x * (size)blockDim.x + threadIdx.x) / 32; warp < rows * tiles; warp += gridDim.x * (size){THREADS // 32}) {{
        const size row = warp / tiles, column = warp % tiles * 32 + threadIdx.x % 32;
        if (column >= width)
            continue;
        double total = 0;
        const start end = starts[row + 1];
        for (start first = starts[row]; first < end; first += {PIECE}) {{
            const start after = end - first > {PIECE} ? first + {PIECE} : end;
            real piece = 0;
            for (start k = first; k < after; ++k)
                piece += value_of(data[k]) * value_of(dense[indices[k] * width + column]);
            total += piece;
        }}
        store(out[row * width + column], (real)total);
    }}
}}
"""


def _integer(array: Any) -> str:
    """Return the C type of an array of integers."""
    return "int" if array.dtype == np.int32 else "long long"
