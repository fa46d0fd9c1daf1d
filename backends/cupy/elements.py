"""Generated element-wise kernels: formulas over operands that broadcast, with optional partial sums over rows.

Rows are divided into parts, and each thread loops over the rows of one part for one position in a row.  The partial sums are added up
afterwards, in an order that depends on the sizes alone.  Without sums a part is one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.common.shape import size_of
from ...core.formulas.c_source import values_in_c
from ...core.formulas.formula import Symbol, Term, symbols_in
from .compiler import INDEX_NAMES, THREADS, blocks_for, compile, index_type
from .places import Along, place_of
from .prelude import REAL, prelude

AT_WORK = 65536
"""Threads that keep a large GPU busy; rows with fewer positions are divided into parts."""

LONGEST = 64
"""Maximum number of rows that one thread adds up."""


class Operand(NamedTuple):
    """An array that formulas read.

    Attributes:
        symbol: the symbol for it in formulas.
        array: the array.
        axes: its axes, broadcast to the iteration space; without rows the stride of the first is 0.
    """

    symbol: Symbol
    array: Any
    axes: tuple[Along, ...]


class Store(NamedTuple):
    """An array to which the value of a formula is written, element by element."""

    term: Term
    array: Any
    axes: tuple[Along, ...]


def axes_of(array: Any, shape: Sequence[int], has_rows: bool) -> tuple[Along, ...]:
    """Return the axes of an array broadcast to *shape*, ``(rows, *static)``; an array without rows lacks the first axis."""
    strides = [stride // array.dtype.itemsize for stride in array.strides]
    own = list(zip(array.shape, strides, strict=True))
    rows = [own.pop(0) if has_rows else (1, 0)]
    aligned = rows + [(1, 0)] * (len(shape) - 1 - len(own)) + own
    return tuple(
        Along(length, stride if dim == length and (dim != 1 or number == 0) else 0)
        for number, (length, (dim, stride)) in enumerate(zip(shape, aligned, strict=True))
    )


def parts_of(rows: int, places: int) -> int:
    """Return the number of parts into which rows are divided for summation at each of *places* positions."""
    return max(1, min(rows, max(AT_WORK // max(places, 1), -(-rows // LONGEST))))


def bound(
    dtype: Any, shape: Sequence[int], operands: Sequence[Operand], stores: Sequence[Store], sums: Sequence[tuple[Term, Any]] = ()
) -> Callable[[], None]:
    """Return a function that computes formulas for all elements of an iteration space.

    Args:
        dtype: element type of the arrays.
        shape: the iteration space, ``(rows, *static)``.
        operands: the arrays that formulas read.
        stores: the arrays to write; one may share the memory of an operand, element by element.
        sums: formulas to sum over the rows of each part, with arrays of doubles for the partial sums, ``(parts, *static)``.
    """
    rows, places = shape[0], size_of(shape[1:])
    parts = len(sums[0][1]) if sums else rows
    touched: list[Operand | Store] = [*operands, *stores]
    size = index_type(max([rows * places] + [_reach(one.axes) for one in touched]))
    used = {id(symbol) for term in (*(store.term for store in stores), *(term for term, _ in sums)) for symbol in symbols_in(term)}
    read = [operand for operand in operands if id(operand.symbol) in used]
    made = text(dtype, INDEX_NAMES[size], shape[1:], read, stores, [term for term, _ in sums])
    arrays = [*(one.array for one in read), *(one.array for one in stores), *(array for _, array in sums)]
    count = parts * places if rows else 0
    return compile(made, "elements").bound(blocks_for(count), THREADS, *arrays, size(rows), size(parts))


def text(dtype: Any, index: str, static: Sequence[int], operands: Sequence[Operand], stores: Sequence[Store], sums: Sequence[Term]) -> str:
    """Return the source of such a kernel, ``elements``, which takes the arrays, the number of rows and that of parts."""
    real = REAL[np.dtype(dtype).name]
    arrays = [f"const stored *x{i}" for i in range(len(operands))] + [f"stored *y{i}" for i in range(len(stores))]
    arguments = ", ".join([*arrays, *(f"double *sums{i}" for i in range(len(sums))), "size rows", "size parts"])

    def place(axes: Sequence[Along]) -> str:
        if not sums:
            return place_of("at", axes)
        row = f"row * {axes[0].stride} + " if axes[0].stride else ""
        return row + place_of("place", [Along(1, 0), *axes[1:]])

    names = {operand.symbol: f"v{i}" for i, operand in enumerate(operands)}
    values, results = values_in_c([store.term for store in stores] + list(sums), names, real)
    body = [f"const real v{i} = value_of(x{i}[{place(operand.axes)}]);" for i, operand in enumerate(operands)]
    body += values
    body += [f"const real r{i} = {result};" for i, result in enumerate(results)]
    body += [f"store(y{i}[{place(store.axes)}], r{i});" for i, store in enumerate(stores)]
    if sums:
        first = len(stores)
        body += [f"sum{i} += r{first + i};" for i in range(len(sums))]
        body = [
            *("const size part = at / PLACES, place = at % PLACES;",),
            *(f"double sum{i} = 0;" for i in range(len(sums))),
            *("for (size row = part; row < rows; row += parts) {",),
            *(f"    {line}" for line in body),
            *("}",),
            *(f"sums{i}[at] = sum{i};" for i in range(len(sums))),
        ]
    lines = "\n".join(f"        {line}" for line in body)
    return f"""{prelude(dtype, index)}
#define PLACES {max(size_of(static), 1)}

extern "C" __global__ void __launch_bounds__({THREADS}) elements({arguments}) {{
    const size count = parts * PLACES;
    for (size at = blockIdx.x * (size)blockDim.x + threadIdx.x; at < count; at += (size)gridDim.x * blockDim.x) {{
{lines}
    }}
}}
"""


def _reach(axes: Sequence[Along]) -> int:
    return 1 + sum((axis.length - 1) * axis.stride for axis in axes)
