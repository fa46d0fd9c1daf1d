"""The plan of minimal filtering's loops: which patches of images are processed together, and where they lie.

A patch gives two by two results; so those of an image form rows and columns.  Images lie in grids, pixel by pixel, each a vector of
channels, with the padding that patches see; results lie in grids of their own.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...core.common.windows import Windows
from .plan import TURNS, parts_by_results
from .tile import MOST_ROWS, VECTOR_BYTES

SUMS = 16
"""Sums of a patch."""

SUMS_BYTES = GRID_BYTES = 2**18
"""Memory that sums of patches, and grids, should not exceed, so that they stay in a processor's own cache."""

LEAST_AT_ONCE = 64
"""Patches that are multiplied at a time, all the same, since each time all sums of filters are read."""


class Side(NamedTuple):
    """Images, or results, and how they lie in grids.

    Attributes:
        channels, height, width: their sizes.
        above, before: rows and columns of padding in front of them.
        halo: rows and columns that a patch sees beyond two.
        row: elements of a pixel in a grid: the channels, filled up to whole vectors.
        step: elements from one of the 16 sums of patches to the next.
        image_bytes, row_bytes, pixel_bytes: of a grid.
    """

    channels: int
    height: int
    width: int
    above: int
    before: int
    halo: int
    row: int
    step: int
    image_bytes: int
    row_bytes: int
    pixel_bytes: int


class Tiling(NamedTuple):
    """Which patches come together.

    Attributes:
        blocks: a row for each block: the first image, the one behind the last; the first row of patches, and the one behind the last; and
            the same of channels of results.
        images, results: how these lie in grids.
        image_pixels, result_pixels: for each of some rows' pixels, in bytes, how far behind the first one it lies in a grid.
        patches: the same for what patches see, and for their results.
        sizes: images of a block, columns of patches, and patches whose sums are multiplied at a time.
        clears: whether grids hold something else in one block than in another where nothing is copied to.
        work: elements that a thread works in.
    """

    blocks: Any
    images: Side
    results: Side
    image_pixels: Any
    result_pixels: Any
    patches: Any
    sizes: tuple[int, int, int]
    clears: bool
    work: int

    @property
    def tables(self) -> tuple[Any, ...]:
        """The arguments of the loops."""
        sides = tuple(self.images), tuple(self.results)
        return self.blocks, *sides, self.image_pixels, self.result_pixels, self.patches, self.sizes, self.clears


@lru_cache(maxsize=256)
def tiling(channels: int, maps: int, w: Windows, itemsize: int, rows: int, threads: int | None = None) -> Tiling:
    """How so many images of *channels* are filtered to results with *maps* channels.

    Args:
        threads: among which blocks are divided, and parted by channels of results where some would wait at the end; None for blocks
            that do not depend on threads.
    """
    lanes = VECTOR_BYTES // itemsize
    (height, width), (out_height, out_width) = w.dims, w.out
    patch_rows, columns = -(-out_height // 2), -(-out_width // 2)
    row, out_row = (-(-size // lanes) * lanes for size in (channels, maps))
    row_bytes, out_row_bytes = (2 * columns + 2) * row * itemsize, 2 * columns * out_row * itemsize
    most = max(SUMS_BYTES // (SUMS * (row + out_row) * itemsize), LEAST_AT_ONCE) // MOST_ROWS * MOST_ROWS
    strip, count = patch_rows, 1
    if min(width, out_width) >= lanes:  # so many pixels at a time are copied, and a strip may have but one row of them
        # Large filters are best read once, by all patches.
        is_whole = threads is not None and patch_rows * columns <= most and SUMS * channels * out_row * itemsize > SUMS_BYTES
        turns = 1 if is_whole else -(-TURNS // rows)
        strips = max(-(-patch_rows * 2 * (row_bytes + out_row_bytes) // GRID_BYTES), turns)
        strip = -(-patch_rows // min(strips, patch_rows))
    if strip == patch_rows:
        count = max(min(most // (patch_rows * columns), rows // TURNS), 1)
    at_once = min(most, -(-count * strip * columns // MOST_ROWS) * MOST_ROWS)
    image_bytes, out_image_bytes = (2 * strip + 2) * row_bytes, 2 * strip * out_row_bytes
    # An odd number of vectors: the 16 sums of a patch must not all map to the same cache lines.
    step, out_step = ((at_once * size // lanes | 1) * lanes for size in (row, out_row))
    pixel_bytes, out_pixel_bytes = row * itemsize, out_row * itemsize
    patches = [
        _places(strip, columns, 2 * of_row, 2 * of_pixel)
        for of_row, of_pixel in ((row_bytes, pixel_bytes), (out_row_bytes, out_pixel_bytes))
    ]
    blocks = [(f, min(f + count, rows), p, min(p + strip, patch_rows)) for f in range(0, rows, count) for p in range(0, patch_rows, strip)]
    panels = 1 if maps % lanes > 0 else -(-maps // (2 * lanes))
    parts = parts_by_results(len(blocks), threads or 1, panels)
    cuts = [min(panels * part // parts * 2 * lanes, maps) for part in range(parts)]
    return Tiling(
        np.array([(*block, *of_maps) for block in blocks for of_maps in pairwise([*cuts, maps])], np.intp),
        Side(channels, height, width, w.lower[0], w.lower[1], 2, row, step, image_bytes, row_bytes, pixel_bytes),
        Side(maps, out_height, out_width, 0, 0, 0, out_row, out_step, out_image_bytes, out_row_bytes, out_pixel_bytes),
        _places(2 * strip + 2, width, row_bytes, pixel_bytes),
        _places(2 * strip, out_width, out_row_bytes, out_pixel_bytes),
        np.stack(patches),
        (count, columns, at_once),
        strip < patch_rows,
        count * (image_bytes + out_image_bytes) // itemsize + SUMS * (step + out_step) + out_row + lanes,
    )


def _places(rows: int, columns: int, row_bytes: int, pixel_bytes: int) -> Any:
    return np.add.outer(np.arange(rows) * row_bytes, np.arange(columns) * pixel_bytes).reshape(-1)
