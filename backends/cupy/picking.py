"""Gathering of rows by index, with a fill for negative indices, and scattering of rows to indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.common.shape import size_of
from .compiler import THREADS, blocks_for, compile
from .prelude import prelude

NONE, ONE, ROWS = "0", "fill[-1 - from]", "fill[(-1 - from) * width + at % width]"
"""C expressions for the elements of a row with the index -1 - i: zero, element i of the fill, or row i of the fill."""


def text(dtype: Any, fill: str) -> str:
    """Return the kernel source for a fill."""
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
    """Write row ``rows[r]`` of *x* to each row r of the result, or the fill if that index is negative.

    Args:
        fill: the expression for the fill: NONE, ONE or ROWS.
        x: contiguous array of the rows, ``(rows, *static)``.
        given: contiguous array of the fill, of the same element type; None for zeros.
        rows: index array on the device, with one index per row of the result.
        out: contiguous array for the result, ``(rows, *static)``.
    """
    width, elements = size_of(out.shape[1:]), size_of(out.shape)
    launch = compile(text(out.dtype, fill), "pick")
    launch.bound(blocks_for(elements), THREADS, x, given, rows, out, np.uint64(elements), np.uint64(width))()


def text_of_put(dtype: Any, fill: str) -> str:
    """The text of putting such a fill into rows."""
    place = {ONE: "rows[count + number]", ROWS: "rows[count + number] * width + column"}[fill]
    return f"""{prelude(dtype, "unsigned long long")}
extern "C" __global__ void __launch_bounds__({THREADS})
put(const stored *fill, const long long *rows, stored *out, size count, size width) {{
    for (size at = blockIdx.x * (size)blockDim.x + threadIdx.x; at < count * width; at += gridDim.x * (size)blockDim.x) {{
        const size number = at / width, column = at % width;
        out[rows[number] * width + column] = fill[{place}];
    }}
}}
"""


def put(fill: str, given: Any, rows: Any, out: Any) -> None:
    """Write number or row ``rows[1, i]`` of what is given to row ``rows[0, i]`` of the result; a row may come twice with the same.

    Args:
        fill: ONE or ROWS.
        given: contiguous, of the result's type: numbers or rows.
        rows: an index array of the device, ``(2, count)``.
        out: contiguous, ``(rows, *static)``.
    """
    count, width = rows.shape[1], size_of(out.shape[1:])
    launch = compile(text_of_put(out.dtype, fill), "put")
    launch.bound(blocks_for(count * width), THREADS, given, rows, out, np.uint64(count), np.uint64(width))()
