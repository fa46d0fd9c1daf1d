"""Calls of the loops of attention: their tables, and how work is divided, which depends on sizes alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.common.threads import max_threads
from ...core.common.thresholds import thresholds
from ...core.types.context import Context
from .attention_loops import KEYS, QUERIES, add_parts, attend, attend_gradient
from .tile import MOST_ROWS, PANEL_BYTES, VECTOR_BYTES

MOST_KEYS, PACKED_BYTES = 256, 2**18
"""Keys that are packed at a time at most, and bytes that these and their values take."""

MOST_QUERIES = 192
"""Queries that meet them then, at most."""

GRADIENT_BLOCK, GROUP = 128, 48
"""Keys and queries whose scores are in the processor's cache at a time on the way back."""

PIECES, LEAST_KEYS = 8, 256
"""Pieces that a call is divided into if it is large enough, and keys of a piece on the way back: each piece has a part of the gradients of
all queries, and these are added up."""


class Arrays(NamedTuple):
    """Matrices ``(entries, rows, columns)``, or with one entry for all, in the order of the loops' table."""

    query: Any
    key: Any
    value: Any
    bias: Any
    edge: Any
    total: Any
    weights: Any
    result: Any
    query_grad: Any = None
    key_grad: Any = None
    value_grad: Any = None
    score_grad: Any = None
    result_grad: Any = None

    @property
    def table(self) -> Any:
        """Where the matrices lie; an axis of one is repeated."""
        return np.array([_place(array) for array in self], np.int64)


def _place(array: Any) -> tuple[int, ...]:
    if array is None:
        return 0, 0, 0, 0
    return array.ctypes.data, *(0 if size == 1 else stride for size, stride in zip(array.shape, array.strides, strict=True))


class Entries:
    """Which rows are the queries of each entry, and which its keys and values.

    Args:
        table: first query, number of queries, first key and number of keys of each.
    """

    def __init__(self, table: Any) -> None:
        self.table = table
        self.queries, self.keys = table[:, QUERIES], table[:, KEYS]
        self.scores = int((self.queries * self.keys).sum())
        self.longest, self.most_keys = int(self.queries.max(initial=1)), int(self.keys.max(initial=1))
        self.query_block = min(_in_rows(MOST_QUERIES), _in_rows(-(-int(self.queries.sum()) // PIECES)))
        self.by_queries = _cut(self.queries, [self.query_block] * len(table))
        wanted = -(-PIECES // max(len(table), 1))
        self.by_keys = _cut(self.keys, [max(LEAST_KEYS, -(-int(keys) // wanted)) for keys in self.keys])
        self.is_divided = len(self.by_keys) > len(table)

    @property
    def is_shared(self) -> bool:
        """Whether threads share the work."""
        return self.scores >= thresholds.attention_shared

    @property
    def parts(self) -> Any:
        """First and last piece of keys of each entry."""
        ends = np.searchsorted(self.by_keys[:, 0], np.arange(len(self.table) + 1))
        return np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int64)


@lru_cache(maxsize=64)
def alike(count: int, queries: int, keys: int) -> Entries:
    """Entries of equal sizes, each with matrices of its own."""
    return Entries(np.repeat(np.array([[0, queries, 0, keys]], np.int64), count, axis=0))


def _cut(sizes: Any, blocks: list[int]) -> Any:
    """Entry, begin and end of pieces."""
    cuts = [
        (entry, begin, min(size, begin + block))
        for entry, (size, block) in enumerate(zip(sizes.tolist(), blocks, strict=True))
        for begin in range(0, size, block)
    ]
    return np.array(cuts, np.int64).reshape(-1, 3)


def _in_rows(queries: int) -> int:
    """So many queries, or a few more, that fill groups of rows."""
    return -(-queries // MOST_ROWS) * MOST_ROWS


def bound(ctx: Context, arrays: Arrays, entries: Entries, scale: Any, divides: bool) -> Callable[[], None]:
    """A function that writes the result, and the greatest score and the sum of each row."""
    depth, columns, dtype = arrays.query.shape[-1], arrays.value.shape[-1], arrays.result.dtype
    block = min(keys_of_block(depth, columns, dtype), entries.most_keys)
    padded, wide = _padded(block, dtype), _padded(columns, dtype)
    line = padded + VECTOR_BYTES // dtype.itemsize
    size = padded * depth + block * wide + entries.query_block * wide + 2 * MOST_ROWS * line
    work = ctx.scratch("attention", (max_threads(), size), dtype)
    sizes = depth, columns, int(divides), block, entries.query_block, line * dtype.itemsize
    tables = arrays.table, entries.table, entries.by_queries
    call = attend.bound(entries.is_shared, work, *tables, scale, sizes, most=len(work))
    call.arrays = arrays  # type: ignore[attr-defined]  # the loop knows their addresses alone
    return call


def bound_gradients(ctx: Context, arrays: Arrays, entries: Entries, scale: Any, divides: bool) -> Callable[[], None]:
    """A function that writes the gradients of queries, keys and values, and of scores if there is an array for them."""
    depth, columns, dtype = arrays.query.shape[-1], arrays.value.shape[-1], arrays.result.dtype
    block, group = min(GRADIENT_BLOCK, entries.most_keys), min(GROUP, entries.longest)
    padded, deep, wide = (_padded(count, dtype) for count in (block, depth, columns))
    line = padded + VECTOR_BYTES // dtype.itemsize
    size = padded * (depth + columns) + block * deep + (group + block) * (deep + wide) + 2 * group * line
    work = ctx.scratch("attention", (max_threads(), size), dtype)
    parts = ctx.scratch("parts", (len(entries.by_keys) if entries.is_divided else len(work), entries.longest * deep), dtype)
    sizes = depth, columns, int(divides), block, group, line * dtype.itemsize, int(entries.is_divided)
    table, shared = arrays.table, entries.is_shared
    write = attend_gradient.bound(shared, work, parts, table, entries.table, entries.by_keys, scale, sizes, most=len(work))
    add = add_parts.bound(shared, parts, table, entries.table, entries.parts, scale, (depth, int(divides))) if entries.is_divided else None

    def call() -> None:
        write()
        if add is not None:
            add()

    call.arrays = arrays  # type: ignore[attr-defined]  # the loops know their addresses alone
    return call


def keys_of_block(depth: int, columns: int, dtype: Any) -> int:
    """Keys that are packed at a time."""
    return max(1, min(MOST_KEYS, PACKED_BYTES // ((depth + columns) * dtype.itemsize)))


def _padded(columns: int, dtype: Any) -> int:
    """The columns that whole panels have."""
    width = PANEL_BYTES // dtype.itemsize
    return -(-columns // width) * width
