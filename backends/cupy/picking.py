"""Rows that are picked by their numbers, and what stands where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.common.shape import size_of
from .compiler import THREADS, blocks_for, compile
from .prelude import prelude

NONE, ONE, ROWS = "0", "fill[-1 - from]", "fill[(-1 - from) * width + at % width]"
"""What stands where a row has the number -1 - i: zeros, number i of the fill for all elements, or its row i."""


def text(dtype: Any, fill: str) -> str:
    """The text for such a fill."""
    outside = "store(out[at], (real)0)" if fill == NONE else f"out[at] = {fill}"
    return f"""{prelude(dtype, "unsigned long long")}
extern "C" __global__ void __launch_bounds__({THREADS})
pick(const stored *x, const stored *fill, const long long *rows, stored *out, size elements, size width) {{
    for (size at = blockIdx.x * (size)blockDim.x + threadIdx.x; at < elements; at += gridDim.x * (size)blockDim.x) {{
        const long long from = rows[at / width];
        if (from >= 0)
            out[at] = x[from * width + at % width];
        else
            {outside};
    }}
}}
"""


def pick(fill: str, x: Any, given: Any, rows: Any, out: Any) -> None:
    """Write row ``rows[r]`` of *x* to row r of the result; where that is negative, what the fill says of what is given.

    Args:
        fill: NONE, ONE or ROWS.
        x: contiguous, ``(rows, *static)``.
        given: contiguous, of the same type: numbers or rows; None for zeros.
        rows: an index array of the device.
        out: contiguous, ``(rows, *static)``.
    """
    width, elements = size_of(out.shape[1:]), size_of(out.shape)
    launch = compile(text(out.dtype, fill), "pick")
    launch.bound(blocks_for(elements), THREADS, x, given, rows, out, np.uint64(elements), np.uint64(width))()
