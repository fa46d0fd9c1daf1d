"""Products of CSR rows with dense matrices: a warp computes 32 columns of a row of the result, adding terms in the order of the entries.

Long rows are summed in pieces, whose sums are added up as doubles, so that the error does not grow with the row.  The transposed product,
a gradient, is the same with the rows' columns in place of rows: how many there are is read from the device's memory, and launches are as
large as there is room for, so that they are the same for each minibatch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.types.columns import Columns
from ...core.types.sparse import Parts
from .compiler import MOST_BLOCKS, THREADS, compile
from .prelude import prelude

PIECE = 256
"""Number of consecutive entries of a row that make up a piece."""

AT_ONCE = 8
"""Number of entries whose terms are loaded before the first of them is added."""


def product(rows: Parts, dense: Any, out: Any) -> Callable[[], None]:
    """Return a function that writes the product of *rows* with a matrix *dense*, ``(columns of the rows, n)``, to *out*, ``(rows, n)``."""
    data, indices, starts = rows
    return _bound(data, indices, starts, dense, out, len(out))


def column_sums(columns: Columns, dense: Any, out: Any, by_number: bool) -> Callable[[], None]:
    """Return a function that writes the product of transposed rows with *dense*, ``(rows, n)``.

    Args:
        columns: the columns of the rows, with room for more.
        dense: the matrix.
        out: for the sums of each column: ``(room for columns, n)``, or a row for each number that a column may have.
        by_number: whether a column's sums go to the row of its number.
    """
    numbers = columns.numbers if by_number else None
    return _bound(columns.data, columns.rows, columns.starts, dense, out, len(columns.numbers), numbers, columns.length)


def _bound(
    data: Any, indices: Any, starts: Any, dense: Any, out: Any, rows: int, numbers: Any = None, length: Any = None
) -> Callable[[], None]:
    width = out.shape[1]
    launch = compile(text(data.dtype, [_integer(indices), _integer(starts)]), "multiply")
    blocks = min(-(-rows * -(-width // 32) * 32 // THREADS), MOST_BLOCKS)
    return launch.bound(blocks, THREADS, data, indices, starts, dense, out, numbers, length, np.uint64(rows), np.uint64(width))


def text(dtype: Any, places: Sequence[str]) -> str:
    """Return the kernel source for an element type; *places* are the C types of indices and of row starts."""
    return f"""{prelude(dtype, "unsigned long long")}
typedef {places[0]} place;
typedef {places[1]} start;

/* Rows go to those of their numbers, if there are numbers; there are as many as the length says, if there is one. */
extern "C" __global__ void __launch_bounds__({THREADS})
multiply(const stored *data, const place *indices, const start *starts, const stored *dense, stored *out, const place *numbers,
         const place *length, size rows, size width) {{
    const size tiles = (width + 31) / 32, end_of_warps = (length ? (size)*length : rows) * tiles;
    for (size warp = (blockIdx.x * (size)blockDim.x + threadIdx.x) / 32; warp < end_of_warps; warp += gridDim.x * (size){THREADS // 32}) {{
        const size row = warp / tiles, column = warp % tiles * 32 + threadIdx.x % 32;
        if (column >= width)
            continue;
        double total = 0;
        const start end = starts[row + 1];
        for (start first = starts[row]; first < end; first += {PIECE}) {{
            const start after = end - first > {PIECE} ? first + {PIECE} : end;
            real piece = 0;
            #pragma unroll {AT_ONCE}
            for (start k = first; k < after; ++k)
                piece += value_of(data[k]) * value_of(dense[indices[k] * width + column]);
            total += piece;
        }}
        store(out[(numbers ? (size)numbers[row] : row) * width + column], (real)total);
    }}
}}
"""


def _integer(array: Any) -> str:
    """Return the C type of an array of integers."""
    return "int" if array.dtype == np.int32 else "long long"
