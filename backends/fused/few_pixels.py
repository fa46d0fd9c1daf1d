"""Correlation of filters that seldom change with an image of few pixels, in a compiled loop: vectors hold filters in place of pixels.

Few pixels leave much of their last vector empty; filters fill theirs.  Filters are packed once, and pixels multiplied as they lie in the
grid (:mod:`.grid`), by the weights in their order, so that results are those of :mod:`.correlation` to the bit.
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
from ...core.types.context import Context
from .pieces import address, copy_lines
from .plan import Product
from .tile import MOST_ROWS, PANEL_BYTES, pixels_tile

MOST_FILLED = 0.8
"""Part of the lanes of vectors of pixels that results fill, above which these are as fast."""


@loop("R2 R1 R1 R1 I2 I2 I1 I1 (5) R1 ?", takes_long=True)
def _multiply(
    work: Any, out: Any, panels: Any, x: Any, blocks: Any, fills: Any, places: Any, pixels: Any, sizes: Any, bias: Any, rectify: bool
) -> None:  # fmt: skip
    """Write the results of an image.

    Args:
        work: a row for each thread, for the image's grid and the results of a panel.
        panels: filters, as :func:`_fill` packs them.
        blocks: for each block the first panel, and the one behind the last.
        fills: copies from a channel to its grid: where to, where from, how many elements.
        places, pixels: how many bytes lie between a result's place in the grid and what each weight of a filter meets, and between the
            grid's beginning and the place of each result.
        sizes: channels, elements that the grid has for one, elements of one, the distance of two of these; filters.
        bias: what is added to the results of each filter; empty for nothing.
        rectify: whether negative results then become zero.
    """
    channels, of_grid, of_channel, stride, maps = sizes
    width, depth, count, zero = PANEL_BYTES // out.itemsize, len(places), len(pixels), out.dtype.type(0)
    grid, is_filled = work[slot(), : channels * of_grid], False
    found, tiles = work[slot(), len(grid) :], (count + MOST_ROWS - 1) // MOST_ROWS
    for block in prange(len(blocks)):
        if not is_filled:
            grid[:], is_filled = 0, True
            for channel in range(channels):
                copy_lines(grid, channel * of_grid, 1, x, channel * of_channel, stride, fills)
        for panel in range(blocks[block, 0], blocks[block, 1]):
            for tile in range(tiles):
                first, last = count * tile // tiles, count * (tile + 1) // tiles
                pixels_tile(
                    last - first, address(grid, 0), address(pixels, first), address(panels, panel * depth * width),
                    address(places, 0), depth, address(found, first * width), out,
                )  # fmt: skip
            begin = panel * width
            for column in range(min(width, maps - begin)):
                added = bias[begin + column] if len(bias) > 0 else zero
                target = out[(begin + column) * count : (begin + column + 1) * count]
                for pixel in range(count):
                    value = found[pixel * width + column] + added
                    target[pixel] = zero if rectify and value < zero else value


def fits(g: Correlation, how: Product, itemsize: int) -> bool:
    """Whether vectors of filters are faster where a plan has vectors of pixels."""
    width, count = PANEL_BYTES // itemsize, how.sizes[7]
    if g.groups > 1 or len(how.slabs) > 1 or -g.maps % width > (1 - MOST_FILLED) * g.maps:
        return False
    filled = sum(-(-size // (width // 2)) * (width // 2) for size in (how.gives[:, 2] if how.is_direct else how.runs[:, 1]))
    return bool(count < MOST_FILLED * filled)


def bound(
    ctx: Context, out: Any, filters: Any, image: Any, g: Correlation, how: Product, bias: Any = None, rectify: bool = False
) -> Callable[[], None] | None:
    """A function that correlates these arrays, of one image, as :func:`.correlation.correlate` would; None if filters change in each run.

    Args:
        how: the plan of the results.
    """
    width, depth = PANEL_BYTES // out.itemsize, g.weights[2]
    count = -(-g.maps // width)
    panels = ctx.prepared(0, filters, "panels of filters", (count, depth, width), out.dtype, _fill)
    if panels is None:
        return None
    multiplications = int(out.size) * depth
    shared, offered = multiplications >= thresholds.convolution_shared, is_offered(multiplications, thresholds.convolution_shared)
    parts = min(max_threads(), count) if offered else 1
    cuts = count * np.arange(parts + 1) // parts
    _, channels, of_grid, of_channel, stride, *_ = how.sizes
    work = ctx.scratch("work", (parts, channels * of_grid + how.sizes[7] * width), out.dtype)
    tables = np.stack([cuts[:-1], cuts[1:]], axis=1), how.fills, how.places, _places_of_pixels(how) * out.itemsize
    arrays = work, out.reshape(-1), panels.reshape(-1), image.reshape(-1), *tables
    sizes = channels, of_grid, of_channel, stride, g.maps
    return _multiply.bound(shared, *arrays, sizes, work[0, :0] if bias is None else bias, rectify, most=parts, offered=offered)


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
