"""Panels: columns of a matrix in memory as products read them, and how many of them, and rows, make a piece of work."""

from __future__ import annotations

from typing import Any

from ...core.machine.language import carray, jittable
from ...core.machine.pool import PIECES
from .dense import DEPTH
from .tile import MOST_ROWS, PANEL_BYTES, VECTOR_BYTES, pointer, turn

PANELS_BYTES = 2**18
"""Bytes of panels that stay in a processor's second cache."""

FEW_PANELS, FEW_ROWS, MORE_ROWS = 2, 32, 128
"""Panels of a batch, and rows of a block, that are not divided further: rows are read for each batch, and panels of stacks packed by each
thread that has blocks of it; where there is more than one part of the depth, for each block."""


@jittable
def pack(panels: int, b: int, stride: int, step: int, depth: int, begin: int, end: int, like: Any) -> None:
    """Copy columns of a matrix to panels, the last of which is filled up with zeros.

    What lay there before would not change the result, but processors multiply numbers too small to be normal many times slower.
    """
    width = PANEL_BYTES // like.itemsize
    for column in range(begin, end, width):
        panel, known = panels + (column - begin) // width * depth * PANEL_BYTES, min(width, end - column)
        if step == like.itemsize:
            _copy(panel, b + column * step, stride, depth, known, like)
        else:
            _copy_turned(panel, b + column * step, stride, step, depth, known, like)


@jittable
def _copy(panel: int, b: int, stride: int, depth: int, known: int, like: Any) -> None:
    """Copy so many columns of a matrix."""
    width = PANEL_BYTES // like.itemsize
    for row in range(depth):
        source, target = carray(pointer(b + row * stride, like), width), carray(pointer(panel + row * PANEL_BYTES, like), width)
        if known == width:
            for column in range(width):
                target[column] = source[column]
        else:
            for column in range(known):
                target[column] = source[column]
            target[known:] = 0


@jittable
def _copy_turned(panel: int, b: int, stride: int, step: int, depth: int, known: int, like: Any) -> None:
    """Copy so many columns of a matrix whose columns lie one behind the other."""
    lanes = VECTOR_BYTES // like.itemsize
    whole = known // lanes * lanes
    turned = 0
    if stride == like.itemsize:
        turned = depth // lanes * lanes
        for row in range(0, turned, lanes):
            for column in range(0, whole, lanes):
                turn(b + column * step + row * stride, step, panel + row * PANEL_BYTES + column * like.itemsize, like)
    for row in range(depth):
        target = carray(pointer(panel + row * PANEL_BYTES, like), PANEL_BYTES // like.itemsize)
        for column in range(whole * (row < turned), known):
            target[column] = carray(pointer(b + row * stride + column * step, like), 1)[0]
        target[known:] = 0


def division(count: int, m: int, depth: int, panels: int, threads: int) -> tuple[int, int]:
    """The panels of a batch, and the blocks of rows: enough of both that whichever thread is free finds work.

    Batches come first, since each is packed once, as long as rows are multiplied by some panels while they are in the cache.
    """
    most = min(panels, max(1, PANELS_BYTES // (min(depth, DEPTH) * PANEL_BYTES)))
    wanted = -(-PIECES * threads // count) if threads > 1 else 1
    if -(-panels // most) < wanted:
        most = max(min(most, FEW_PANELS), panels // wanted)
    batches = -(-panels // most)
    few = FEW_ROWS if depth <= DEPTH else MORE_ROWS
    return most, min(-(-wanted // batches), max(1, m // few))


def apart(rows: Any) -> tuple[int, int, int]:
    """How many bytes lie between tiles of a matrix's rows, rows of a tile and elements of a row."""
    return MOST_ROWS * rows.strides[-2], rows.strides[-2], rows.strides[-1]
