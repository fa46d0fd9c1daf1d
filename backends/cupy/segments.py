"""Sums of runs of consecutive rows, in an order that depends on the runs' lengths and the rows' width alone.

A warp adds up a run: its lanes are assigned to columns and, if these are few, to rows of the run in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .compiler import MOST_BLOCKS, THREADS, compile
from .prelude import REAL, STORED, prelude


def bound(values: Any, starts: Any, out: Any) -> Callable[[], None]:
    """Return a function that writes the sum of each run, ``values[starts[i]:starts[i + 1]]``, to a row of *out*; 0 for empty runs.

    Args:
        values: contiguous array of rows, ``(rows, *static)``.
        starts: starts of the runs and the end of the last one, ``(runs + 1,)``; rows before the first run are ignored.
        out: contiguous array ``(runs, *static)``, which may have another element type.
    """
    runs, width = len(starts) - 1, 1
    for dim in out.shape[1:]:
        width *= dim
    if not runs or not width:
        return lambda: None
    columns = columns_of(width)
    warps = runs * -(-width // columns)
    launch = compile(text(values.dtype, out.dtype, "int" if starts.dtype == np.int32 else "long long", columns), "add_up")
    return launch.bound(min(-(-warps * 32 // THREADS), MOST_BLOCKS), THREADS, values, starts, out, np.uint64(runs), np.uint64(width))


def columns_of(width: int) -> int:
    """Return the number of columns that a warp handles at a time.
    >>> from cntk.backends.cupy.segments import columns_of
    >>> [columns_of(width) for width in (1, 3, 32, 100)]
    [1, 4, 32, 32]
    """
    return min(32, 1 << (width - 1).bit_length())


def text(dtype: Any, result: Any, start: str, columns: int) -> str:
    """Return the kernel source for the types of rows, results and *start* indices."""
    made = STORED[np.dtype(result).name]
    return f"""{prelude(dtype, "unsigned long long")}
typedef {start} start;
#define COLUMNS {columns}

extern "C" __global__ void __launch_bounds__({THREADS})
add_up(const stored *values, const start *starts, {made} *out, size runs, size width) {{
    const size tiles = (width + COLUMNS - 1) / COLUMNS;
    for (size warp = (blockIdx.x * (size)blockDim.x + threadIdx.x) / 32; warp < runs * tiles; warp += gridDim.x * (size){THREADS // 32}) {{
        const size run = warp / tiles, column = warp % tiles * COLUMNS + threadIdx.x % COLUMNS;
        double sum = 0;
        if (column < width)
            for (start row = starts[run] + threadIdx.x % 32 / COLUMNS; row < starts[run + 1]; row += 32 / COLUMNS)
                sum += value_of(values[row * width + column]);
        for (int bit = 16; bit >= COLUMNS; bit /= 2)
            sum += __shfl_xor_sync(ALL, sum, bit);
        if (column < width && threadIdx.x % 32 < COLUMNS)
            store(out[run * width + column], ({REAL[np.dtype(result).name]})sum);
    }}
}}
"""
