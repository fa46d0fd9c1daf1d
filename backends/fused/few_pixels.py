"""Correlation of filters that seldom change with an image of few pixels, in a compiled loop: vectors hold filters in place of pixels.

Few pixels leave much of their last vector empty; filters fill theirs.  Filters are packed once, and pixels multiplied as they lie in the
grid (:mod:`.grid`), by the weights in their order, so that results are those of :mod:`.correlation` to the bit.  So many weights at a time
meet all pixels that both stay in the nearer caches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.common.threads import max_threads
from ...core.common.thresholds import is_offered, thresholds
from ...core.common.windows import Correlation
from ...core.machine.language import prange, slot
from ...core.machine.loops import loop
from ...core.machine.pool import PIECES
from ...core.types.context import Context
from .followers import After
from .pieces import address, copy_lines, follows, in_turn
from .plan import GRID_BYTES, TERMS, Product, plan_of_results
from .tile import MOST_ROWS, PANEL_BYTES, pixels_tile

MOST_FILLED, TURN = 0.95, 40
"""Part of the lanes of vectors of pixels that results fill, above which these are as fast; and multiplications that take as long as writing
a sum from a vector of filters."""

MOST_EMPTY = 0.2
"""Part of the lanes of vectors of filters, above which too many are empty."""


@loop("R2 R1 I2 q q")
def _enter(grid: Any, x: Any, fills: Any, of_channel: int, stride: int) -> None:
    """Copy an image to its grid, a row for each channel.

    Args:
        fills: copies from a channel to its grid: where to, where from, how many elements.
        of_channel, stride: elements of a channel, and the distance of two of these in the grid's lines.
    """
    for channel in prange(len(grid)):
        row = grid[channel]
        row[:] = 0
        copy_lines(row, 0, 1, x, channel * of_channel, stride, fills)


@loop("R2 R1 R1 R1 I1 I1 I1 q R1 R1 ?", takes_long=True)
def _multiply(
    work: Any, out: Any, panels: Any, grid: Any, cuts: Any, places: Any, pixels: Any, maps: int, bias: Any, residual: Any,
    rectify: bool,
) -> None:  # fmt: skip
    """Write the results of an image.

    Args:
        work: a row for each thread, for the results of a panel.
        panels: filters, as :func:`_fill` packs them.
        cuts: the first panel of each block, and the one behind the last.
        places, pixels: how many bytes lie between a result's place in the grid and what each weight of a filter meets, and between the
            grid's beginning and the place of each result.
        maps: filters.
        bias: what is added to the results of each filter; empty for nothing.
        residual: what is then added to the results; empty for nothing.
        rectify: whether negative results then become zero.
    """
    width, depth, count, zero = PANEL_BYTES // out.itemsize, len(places), len(pixels), out.dtype.type(0)
    found, tiles, parts = work[slot()], (count + MOST_ROWS - 1) // MOST_ROWS, (depth + TERMS - 1) // TERMS
    for block in prange(len(cuts) - 1):
        for panel in range(cuts[block], cuts[block + 1]):
            found[:] = 0
            for part in range(parts):
                begin, end = depth * part // parts, depth * (part + 1) // parts
                for tile in range(tiles):
                    first, last = count * tile // tiles, count * (tile + 1) // tiles
                    pixels_tile(
                        last - first, address(grid, 0), address(pixels, first), address(panels, (panel * depth + begin) * width),
                        address(places, begin), end - begin, address(found, first * width), out,
                    )  # fmt: skip
            begin = panel * width
            for column in range(min(width, maps - begin)):
                added = bias[begin + column] if len(bias) > 0 else zero
                first = (begin + column) * count
                target, more = out[first : first + count], residual[first : first + count]
                for pixel in range(count):
                    value = found[pixel * width + column] + added
                    if len(residual) > 0:
                        value += more[pixel]
                    target[pixel] = zero if rectify and value < zero else value


def fits(g: Correlation, how: Product, itemsize: int) -> bool:
    """Whether vectors of filters are faster where a plan has vectors of pixels."""
    width, count = PANEL_BYTES // itemsize, how.sizes[7]
    if g.groups > 1 or -g.maps % width > MOST_EMPTY * g.maps:
        return False
    filled = sum(-(-size // (width // 2)) * (width // 2) for size in (how.gives[:, 2] if how.is_direct else how.runs[:, 1]))
    if count * (g.weights[2] + TURN) >= MOST_FILLED * filled * g.weights[2]:
        return False
    channels = -(-TERMS * g.channels // g.weights[2])
    return bool(channels * plan_of_results(g, itemsize, 1, slabs=1).sizes[2] * itemsize <= GRID_BYTES // 2)


def bound(ctx: Context, out: Any, filters: Any, image: Any, g: Correlation, after: After) -> Callable[[], None] | None:
    """A function that correlates these arrays, of one image, as :func:`.correlation.correlate` would; None if filters change each time."""
    how, width, depth = plan_of_results(g, out.itemsize, 1, slabs=1), PANEL_BYTES // out.itemsize, g.weights[2]
    count = -(-g.maps // width)
    panels = ctx.prepared(0, filters, "panels of filters", (count, depth, width), out.dtype, _fill)
    if panels is None:
        return None
    multiplications = int(out.size) * depth
    shared, offered = multiplications >= thresholds.convolution_shared, is_offered(multiplications, thresholds.convolution_shared)
    parts = min(max_threads() * PIECES, count) if offered else 1
    _, channels, of_grid, of_channel, stride, *_ = how.sizes
    grid = ctx.scratch("grid", (channels, of_grid), out.dtype)
    work = ctx.scratch("work", (min(max_threads(), parts), how.sizes[7] * width), out.dtype)
    tables = count * np.arange(parts + 1) // parts, how.places, _places_of_pixels(how) * out.itemsize
    enter = _enter.bound(grid.size >= thresholds.elements_shared, grid, image.reshape(-1), how.fills, of_channel, stride)
    arrays = work, out.reshape(-1), panels.reshape(-1), grid.reshape(-1), *tables
    multiply = _multiply.bound(shared, *arrays, g.maps, *follows(ctx, after, work[0, :0]), most=len(work), offered=offered)
    return in_turn(enter, multiply)


def _places_of_pixels(how: Product) -> Any:
    """Elements of the grid before the place of each result."""
    places = np.empty(how.sizes[7], np.intp)
    for target, of, size in how.gives:
        places[target : target + size] = of + np.arange(size)
    return places


def _fill(target: Any, filters: Any) -> None:
    """Pack filters: for each panel of them, and each weight, those of the panel's filters side by side."""
    count, _, width = target.shape
    rows = filters.reshape(len(filters), -1)
    for panel in range(count):
        of_panel = rows[panel * width : (panel + 1) * width]
        target[panel, :, : len(of_panel)] = of_panel.T
        target[panel, :, len(of_panel) :] = 0
