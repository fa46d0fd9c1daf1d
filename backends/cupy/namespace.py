"""CuPy's array namespace, with the NumPy functions that operators call and that CuPy lacks or implements differently.

CuPy's ``add.at`` adds at repeated indices in an undefined order, and its sums of runs are differences of cumulative sums, which lose small
values.  Here the order of both sums depends on the indices alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
from cupy import *  # noqa: F403

from ...core.common.dtypes import computing_type, is_bfloat16, is_half
from . import segments


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    """NumPy's ``take`` for indices in range; in every mode, others wrap around."""
    return cupy.take(a, indices, axis, out)


def argsort(a: Any, axis: int = -1, kind: Any = None) -> Any:
    """NumPy's ``argsort``; bfloat16, which CuPy does not sort, is sorted as float32."""
    return cupy.argsort(a.astype(cupy.float32) if is_bfloat16(a.dtype) else a, axis, kind)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """NumPy's ``cumprod``; products of 16 bits, for which CuPy has no kernel, are computed in float32."""
    if not is_half(a.dtype):
        return cupy.cumprod(a, axis, dtype, out)
    products = cupy.cumprod(a.astype(cupy.float32), axis).astype(a.dtype if dtype is None else dtype, copy=False)
    if out is None:
        return products
    cupy.copyto(out, products)
    return out


def lexsort(keys: Sequence[Any]) -> Any:
    """NumPy's ``lexsort`` for a sequence of arrays."""
    return cupy.lexsort(cupy.stack(keys))


class Function:
    """A binary function with ufunc methods that CuPy's lacks."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *operands: Any, **options: Any) -> Any:
        return self._function(*operands, **options)


class Add(Function):
    """``add`` with ``reduce``, ``reduceat`` and ``at``."""

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return array.sum(axis, dtype, out, keepdims)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Return the sums of runs along an axis, each from one index up to the next; indices must be increasing."""
        rows = cupy.ascontiguousarray(cupy.moveaxis(array, axis, 0))
        sums = cupy.empty((len(indices), *rows.shape[1:]), array.dtype if dtype is None else dtype)
        segments.bound(rows, cupy.concatenate((indices, cupy.full(1, len(rows), indices.dtype))), sums)()
        result = cupy.moveaxis(sums, 0, axis)
        if out is None:
            return result
        cupy.copyto(out, result)
        return out

    def at(self, target: Any, indices: Any, values: Any) -> None:
        """Add values at non-negative indices, or a tuple of these, accumulating at repeated ones."""
        parts = indices if isinstance(indices, tuple) else (indices,)
        shape = parts[0].shape
        static = target.shape[len(parts) :]
        place = parts[0].reshape(-1)
        for size, part in zip(target.shape[1:], parts[1:], strict=False):
            place = place * size + part.reshape(-1)
        if not place.size:
            return
        order = cupy.argsort(place, kind="stable")
        place = place[order]
        terms = cupy.broadcast_to(values, (*shape, *static)).reshape(-1, *static)[order]
        summed = _running_sums(terms, cupy.searchsorted(place, place, side="left"), computing_type(target.dtype))
        totals = summed[cupy.searchsorted(place, place, side="right") - 1]
        where = tuple([part.reshape(-1)[order] for part in parts])
        target[where] = (target[where] + totals).astype(target.dtype, copy=False)  # the same value at repeated indices


class Subtract(Function):
    """``subtract`` with ``at``."""

    def at(self, target: Any, indices: Any, values: Any) -> None:
        add.at(target, indices, -values)


class Extremum(Function):
    """``maximum`` or ``minimum`` with ``reduce``.

    Args:
        function: the binary function.
        along: the method that reduces an array.
        takes_out: whether that can be given a result to write to, which CuPy's ``min`` takes for an element type.
    """

    def __init__(self, function: Any, along: Any, takes_out: bool = True) -> None:
        super().__init__(function)
        self._along, self._takes_out = along, takes_out

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if out is None or self._takes_out:
            return self._along(array, axis, out, keepdims)
        cupy.copyto(out, self._along(array, axis, None, keepdims))
        return out


class LogAddExp(Function):
    """``logaddexp`` with ``reduce``."""

    def reduce(self, array: Any, axis: Any = 0) -> Any:
        largest = array.max(axis, None, True)
        largest[cupy.isinf(largest)] = 0
        total = cupy.log(cupy.exp(array - largest).sum(axis, None, None, True)) + largest
        return total.squeeze(axis)


add: Any = Add(cupy.add)
subtract = Subtract(cupy.subtract)
maximum = Extremum(cupy.maximum, cupy.ndarray.max)
minimum = Extremum(cupy.minimum, cupy.ndarray.min, takes_out=False)
logaddexp = LogAddExp(cupy.logaddexp)


def _running_sums(rows: Any, first: Any, dtype: Any) -> Any:
    """Return for each row the sum of the rows from ``first`` up to it, by tree summation."""
    sums = rows.astype(dtype)
    number = cupy.arange(len(rows))
    ones = (1,) * (sums.ndim - 1)
    reach = 1
    while reach < len(rows):
        is_within = (number[reach:] - reach >= first[reach:]).reshape(-1, *ones)
        sums[reach:] += cupy.where(is_within, sums[:-reach], sums.dtype.type(0))
        reach *= 2
    return sums
