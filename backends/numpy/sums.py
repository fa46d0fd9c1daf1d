"""Sums over axes of an array, whose error does not grow with the number of terms.

NumPy and the BLAS add up in pairs, or in lanes, along contiguous axes; other sums they take one term after another.  These
are cut into blocks here, whose sums are added up in float64, in blocks again.  Those of 16 bits are computed in float32.  The sums of
blocks are products with ones where this is faster, as it mostly is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ...core.common.dtypes import computing_type, is_half
from ...core.common.shape import size_of

FEWEST = 2
"""Sums, or terms of each, from which on a product with ones is faster, of many up to 20 times; it is as accurate."""

MOST = 1024
"""Terms up to which a product adds up a row as accurately as NumPy, which adds in pairs."""

FEW = 512
"""Terms that may be added up one after another."""

BLOCK = 256
"""Terms of a block where there are more."""

MULTIPLIED = (np.dtype(np.float32), np.dtype(np.float64))
"""Element types of the BLAS."""

_ones: dict[Any, Any] = {}
"""As many ones of each type as the longest sum has had terms."""


def summing(full: Any, axes: tuple[int, ...], target: Any) -> Callable[[], Any]:
    """A function that writes the sum of *full* over *axes* into *target*, as a backend makes it."""
    if full.flags.c_contiguous and target.flags.c_contiguous:
        how = _plan(full.shape, axes)
        if full.dtype == target.dtype and full.dtype in MULTIPLIED:
            if how.is_product_from_left:
                return partial(np.dot, _so_many_ones(how.shape[0], full.dtype), full.reshape(how.shape), target.reshape(how.shape[1]))
            if how.is_product_from_right:
                return partial(np.dot, full.reshape(how.shape), _so_many_ones(how.shape[1], full.dtype), target.reshape(how.shape[0]))
        full, axes, target, split, run = full.reshape(how.shape), how.axes, target.reshape(how.kept), how.split, how.run
    else:
        target = target.reshape(_kept(full.shape, axes))
        split, run = _longest_run(full.shape, axes, _last_in_memory(full))
    if run > FEW and target.size:
        return partial(_call, _steps(full, axes, split, target))
    if not is_half(full.dtype):
        return partial(np.add.reduce, full, axes, None, target, True)
    sums = np.empty(target.shape, np.float32)  # NumPy rounds every partial sum to the target's type
    return partial(_call, [partial(np.add.reduce, full, axes, sums.dtype, sums, True), _copying(sums, target)])


class _Plan(NamedTuple):
    """How a contiguous array is summed over axes.

    Attributes:
        shape: its shape, with axes joined that lie side by side and are all summed over or all kept.
        axes: the axes to sum over then.
        kept: the shape of the sums, with these as 1.
        split, run: the axis along which most terms would be added one after another, and how many would be along all axes.
        is_product_from_left, is_product_from_right: whether a product with ones is faster.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    kept: tuple[int, ...]
    split: int
    run: int
    is_product_from_left: bool
    is_product_from_right: bool


@lru_cache(maxsize=1024)
def _plan(shape: tuple[int, ...], axes: tuple[int, ...]) -> _Plan:
    runs = [(is_summed, [shape[axis] for axis in run]) for is_summed, run in groupby(range(len(shape)), axes.__contains__)]
    dims, summed = tuple(size_of(run) for _, run in runs), tuple(i for i, (is_summed, _) in enumerate(runs) if is_summed)
    kept = _kept(dims, summed)
    split, run = _longest_run(dims, summed, len(dims) - 1)
    sums, is_matrix = size_of(kept), len(dims) == 2 and 0 not in dims
    from_left = is_matrix and summed == (0,) and sums >= FEWEST and dims[0] <= FEW
    from_right = is_matrix and summed == (1,) and FEWEST <= dims[1] <= MOST
    return _Plan(dims, summed, kept, split, run, from_left, from_right)


def _kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))


def _longest_run(shape: tuple[int, ...], axes: tuple[int, ...], last: int) -> tuple[int, int]:
    """The axis along which most terms would be added one after another, and how many would be along all axes; NumPy adds in pairs along
    the *last* one in memory."""
    runs = [axis for axis in axes if axis != last]
    return max(runs, key=shape.__getitem__, default=0), size_of([shape[axis] for axis in runs]) if runs else 0


def _steps(full: Any, axes: tuple[int, ...], split: int, target: Any) -> list[Callable[[], Any]]:
    """Sum up blocks of terms along one axis, all at once, then these sums."""
    shape, kept = full.shape, target.shape
    others = size_of(tuple(shape[axis] for axis in axes if axis not in (split, _last_in_memory(full))))
    terms = max(BLOCK // others, 1)
    blocks, rest = divmod(shape[split], terms)
    sums = np.empty((*kept[:split], blocks + (rest > 0), *kept[split + 1 :]), computing_type(full.dtype))
    wide, total = np.empty(sums.shape, np.float64), np.empty(kept, np.float64)
    before = (slice(None),) * split
    regular, left = full[(*before, slice(terms * blocks))], full[(*before, slice(terms * blocks, None))]
    inside = tuple(axis + (axis > split) for axis in axes)
    steps = [summing(regular.reshape(*shape[:split], terms, blocks, *shape[split + 1 :]), inside, sums[(*before, slice(blocks))])]
    if rest:
        steps.append(summing(left, axes, sums[(*before, slice(blocks, None))]))
    return [*steps, _copying(sums, wide), summing(wide, (split,), total), _copying(total, target)]


def _last_in_memory(full: Any) -> int:
    """The axis whose elements lie together, which NumPy adds up in pairs."""
    if full.flags.c_contiguous:
        return int(full.ndim) - 1
    return min(range(full.ndim), key=lambda axis: (full.shape[axis] == 1, abs(full.strides[axis])))


def _copying(source: Any, target: Any) -> Callable[[], None]:
    return partial(np.copyto, target, source, casting="same_kind")


def _call(steps: Sequence[Callable[[], Any]]) -> None:
    for step in steps:
        step()


def _so_many_ones(count: int, dtype: Any) -> Any:
    ones = _ones.get(dtype)
    if ones is None or ones.size < count:
        ones = _ones[dtype] = np.ones(count, dtype)
    return ones[:count]
