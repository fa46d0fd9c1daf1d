"""The plan of a correlation's loops: which images share a grid, and what is multiplied there.

A product writes targets from sources.  The correlation itself writes results from the channels of images; sending gradients back writes
channels, phase by phase, from the gradients of results.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...core.common.shape import size_of
from ...core.common.windows import Correlation
from .grid import Grid
from .tile import DOT_COLUMNS, DOT_ROWS, MOST_ROWS, PANEL_BYTES, VECTOR_BYTES

GRID_BYTES = 1 << 19
"""Memory that the grids of images and of their results should not exceed, so that they stay in a processor's own cache."""

PARTS_BYTES = 2**26
"""Memory that parts of the filters' gradient should not exceed."""

BLOCKS_OF_PART = 4
"""Blocks of which such a part has more only where memory does not suffice, or there are few."""

TURNS = 8
"""Blocks that threads share, where there is enough to do: their number must not depend on that of the threads."""

COPIED = 0.2
"""Share of a block's time in which its images are copied, which is done anew for each part of its results."""

COPY, HALF_TILE = 10, 0.6
"""Multiplications of each sum that take as long as copying it from a grid, and the time that a tile of one vector takes of one of two."""

SPARSE = 0.6
"""Share of results among a grid's places below which images lie side by side."""

TERMS, AT_ONCE = 256, 4
"""Terms of sums, and panels, that are copied together: a panel stays in a processor's first cache, and all of them in the second."""

LEAST_TERMS, LEAST_TARGETS = 2048, 64
"""The fewest terms of a sum, and targets, for which copying to panels pays: what fewer terms meet stays in the first cache as it lies."""

Sizes = tuple[int, int, int, int]


class Arrangement(NamedTuple):
    """How images come into grids: one after another or, where that leaves many places without results, side by side.

    Attributes:
        images: how many come into a grid at a time.
        slabs: parts of an image that are done at a time: first place along the first axis, and the one behind the last.
        pixel, image: elements of a grid from a place to the next, and from an image to the next.
        plane: elements that the grid takes for a phase of a channel, or for a filter.
    """

    images: int
    slabs: list[tuple[int, int]]
    pixel: int
    image: int
    plane: int

    def blocks(self, rows: int) -> Any:
        """A row for each block: the first image, the one behind the last, and the slab."""
        firsts = range(0, rows, self.images)
        return np.array([(row, min(row + self.images, rows), slab) for row in firsts for slab in range(len(self.slabs))], np.intp)

    def clears(self, rows: int) -> bool:
        """Whether grids hold something else in one block than in another where nothing is copied to."""
        return len(self.slabs) > 1 or rows % self.images > 0

    def runs(self, lines: Any) -> Any:
        """Runs of places that cover lines: the first element, the number of elements, and how many come with each further image."""
        if self.pixel > 1:
            return np.stack([lines[:, 0] * self.pixel, lines[:, 2] * self.pixel, np.zeros_like(lines[:, 0])], axis=1)
        if not len(lines):
            return np.zeros((0, 3), np.intp)
        first, last = lines[0, 0], lines[-1, 0] + lines[-1, 2]
        return np.array([(first, last - first, self.image)], np.intp)

    def scaled(self, lines: Any, ahead: int) -> Any:
        """Lines with elements of the grid in place of places, so many elements ahead."""
        return lines * (self.pixel, 1, 1) + (ahead, 0, 0)


class Product(NamedTuple):
    """How targets are written from sources.

    Attributes:
        blocks: a row for each block: the first image, the one behind the last, and the slab; the first target that is written, of those of
            a group, and the one behind the last.
        slabs: where the copies of each slab begin and end in *fills*, and its tasks in *tasks*.
        fills: copies from a source to its grid: where to, where from, how many elements.
        tasks: a row for each product: weights of a target, where they begin, where their places begin, begin and end of what it writes in
            *runs*, and of what is copied to the targets in *gives*.
        places: for each weight, in bytes, how far from a target's place lies what it meets.
        runs: elements that are written: the first, how many, and how many more for each further image.
        gives: copies from a target's grid: where to, where from, how many elements.
        sizes: groups; sources, elements that grids have for one, elements of one, their distance in it; the same of targets; distance
            of neighbours and of images in a grid; panels that what sums meet is copied to at a time, 0 where it is read as it lies.
        is_direct: whether tiles write lines of the targets, and not runs of a grid of which lines are copied.
        work: elements that a thread works in.
        clears: whether grids are to be cleared before each block.
        covers: whether every element of the targets is written.
    """

    blocks: Any
    slabs: Any
    fills: Any
    tasks: Any
    places: Any
    runs: Any
    gives: Any
    sizes: tuple[int, ...]
    is_direct: bool
    work: int
    clears: bool
    covers: bool


class Weighing(NamedTuple):
    """How the gradients of filters are computed: as dots of the gradients of results with images.

    Attributes:
        parts: blocks that are summed up together: the first, and the one behind the last.
        blocks: as in a product.
        slabs: where the copies of each slab begin and end in *fills*, and those of gradients in *grads*.
        fills, grads: copies to grids: where to, where from, how many elements.
        rows, columns: in bytes, where the gradients of each filter of a group begin, and what each of its weights meets; filled up to
            what is computed at a time.
        runs: first byte and number of vectors of what is multiplied: for each number of images, or for each line.
        by_count: whether runs are for numbers of images.
        sizes: groups; channels, elements that grids have for one, elements of one, their distance in it; filters, elements that grids
            have for one, elements of one; distance of neighbours and of images in a grid.
        work: elements that a thread works in.
        clears: whether grids are to be cleared before each block.
    """

    parts: Any
    blocks: Any
    slabs: Any
    fills: Any
    grads: Any
    rows: Any
    columns: Any
    runs: Any
    by_count: bool
    sizes: tuple[int, ...]
    work: int
    clears: bool


@lru_cache(maxsize=256)
def plan_of_results(g: Correlation, itemsize: int, rows: int, threads: int = 1, slabs: int | None = None) -> Product:
    """The product that writes results, for so many images; blocks of them are parted by results where *threads* would wait at the end.

    Args:
        slabs: parts of an image that are done at a time; None for as many as suit caches.
    """
    grid, w = Grid(g.windows), g.windows
    how = _arranged(g, grid, itemsize, rows, w.out[0], slabs)
    phases = len(grid.phases)
    fills = [_image_fills(grid, how, first, last) for first, last in how.slabs]
    lines = [grid.result_lines(first, last) for first, last in how.slabs]
    places = _places(g, grid, how)
    sources = g.channels, phases * how.plane, size_of(w.dims), w.strides[-1]
    targets = g.maps, how.plane, size_of(w.out), 1
    return _product(g, how, itemsize, rows, sources, targets, fills, places * itemsize, [(len(places), 0, 0)], lines, threads)


@lru_cache(maxsize=256)
def plan_of_images(g: Correlation, itemsize: int, rows: int) -> Product:
    """The product that writes gradients of so many images, phase by phase."""
    grid, w = Grid(g.windows), g.windows
    how = _arranged(g, grid, itemsize, rows, grid.extents[0])
    maps, farthest, reach = g.maps // g.groups, grid.ahead(grid.reach), grid.reach[0]
    places = []
    for taps in weights_of_phases(g):
        behind = [(farthest - grid.ahead(grid.shifts[tap][1])) * how.pixel for tap in taps]
        places.append(np.add.outer(np.arange(maps) * how.plane, behind).reshape(-1))
    starts, _ = _ranges(places)
    weights = [(len(of_phase), start * g.channels, start) for of_phase, start in zip(places, starts, strict=True)]
    ahead = (farthest - reach * grid.steps[0]) * how.pixel
    fills = [how.scaled(grid.result_lines(first - reach, last), ahead) for first, last in how.slabs]
    lines = [grid.image_lines(phase, first, last) for first, last in how.slabs for phase in grid.phases]
    sources = g.maps, how.plane, size_of(w.out), 1
    targets = g.channels, how.plane, size_of(w.dims), w.strides[-1]
    return _product(g, how, itemsize, rows, sources, targets, fills, np.concatenate(places) * itemsize, weights, lines)


@lru_cache(maxsize=256)
def plan_of_filters(g: Correlation, itemsize: int, rows: int) -> Weighing:
    """How the gradients of filters are computed from so many images."""
    grid, w = Grid(g.windows), g.windows
    how = _arranged(g, grid, itemsize, rows, w.out[0])
    phases = len(grid.phases)
    fills = [_image_fills(grid, how, first, last) for first, last in how.slabs]
    lines = [grid.result_lines(first, last) for first, last in how.slabs]
    grads = [how.scaled(of_slab, 0) for of_slab in lines]
    blocks = how.blocks(rows)
    begins, sizes, growth = how.runs(lines[0]).T
    by_count = how.pixel == 1
    if by_count:
        begins, sizes = np.repeat(begins, how.images), sizes + np.arange(how.images) * growth
    channels = g.channels, phases * how.plane, size_of(w.dims), w.strides[-1]
    return Weighing(
        parts_of(len(blocks), parts_of_sums(len(blocks), size_of(g.weights) * itemsize, TURNS)),
        blocks,
        np.stack([*_ranges(fills), *_ranges(grads)], axis=1),
        np.concatenate(fills),
        np.concatenate(grads),
        _filled_up(np.arange(g.maps // g.groups) * how.plane, DOT_ROWS) * itemsize,
        _filled_up(_places(g, grid, how), DOT_COLUMNS) * itemsize,
        np.stack([begins * itemsize, -(-sizes * itemsize // VECTOR_BYTES)], axis=1),
        by_count,
        (g.groups, *channels, g.maps, how.plane, size_of(w.out), how.pixel, how.image),
        (g.channels * phases + g.maps) * how.plane,
        how.clears(rows),
    )


def parts_of_sums(blocks: int, nbytes: int, least: int) -> int:
    """Parts that blocks are put into whose sums take so many bytes each: more of them where there are more blocks, as far as memory
    suffices, so that errors do not grow, and so many at least."""
    return max(min(max(TURNS, blocks // BLOCKS_OF_PART), PARTS_BYTES // nbytes), least)


def parts_by_results(blocks: int, threads: int, most: int) -> int:
    """Parts that each block's results are divided into, *most* at most, so that threads which take one after another end soonest."""
    return min(range(1, min(most, max(threads, TURNS)) + 1), key=lambda parts: -(-blocks * parts // threads) * (1 / parts + COPIED))


@lru_cache(maxsize=256)
def parts_of(blocks: int, count: int) -> Any:
    """So many parts of blocks, a row for each: the first block, and the one behind the last."""
    cuts = blocks * np.arange(count + 1) // count
    return np.stack([cuts[:-1], cuts[1:]], axis=1)


@lru_cache(maxsize=256)
def weights_of_phases(g: Correlation) -> list[list[int]]:
    """Numbers of those of a filter's weights for one channel that meet elements of each phase."""
    grid = Grid(g.windows)
    return [[tap for tap, (of, _) in enumerate(grid.shifts) if of == phase] for phase in range(len(grid.phases))]


def _places(g: Correlation, grid: Grid, how: Arrangement) -> Any:
    """How many elements ahead of a result's place each weight of a filter looks."""
    ahead = [phase * how.plane + grid.ahead(shift) * how.pixel for phase, shift in grid.shifts]
    return np.add.outer(np.arange(g.channels // g.groups) * len(grid.phases) * how.plane, ahead).reshape(-1)


def _product(
    g: Correlation, how: Arrangement, itemsize: int, rows: int, sources: Sizes, targets: Sizes,
    fills: list[Any], places: Any, weights: list[tuple[int, int, int]], lines: list[Any], threads: int = 1,
) -> Product:  # fmt: skip
    """A product.

    Args:
        sources, targets: how many there are, elements that grids have for one, elements of one, their distance in it.
        fills: of each slab the copies from a source to its grid.
        weights: of each task of a slab the weights of a target, where they begin, and where their places do.
        lines: of each slab and task what is written.
    """
    runs = [how.runs(of_task) for of_task in lines]
    tasks = [np.array(weights * len(how.slabs), np.intp), np.stack([*_ranges(runs), *_ranges(lines)], axis=1)]
    depth = max(of_task[0] for of_task in weights)
    width, of_group = PANEL_BYTES // itemsize, targets[0] // g.groups
    panels = AT_ONCE if depth >= LEAST_TERMS and of_group >= LEAST_TARGETS else 0
    is_direct = not panels and how.pixel == targets[3] == 1 and _tiles_fit(runs, lines, depth, VECTOR_BYTES // itemsize)
    return Product(
        _parted(how.blocks(rows), of_group, threads),
        np.stack([*_ranges(fills), *_ranges([weights] * len(how.slabs))], axis=1),
        np.concatenate(fills),
        np.concatenate(tasks, axis=1),
        places,
        np.concatenate(runs),
        np.ascontiguousarray(np.concatenate([how.scaled(of_task, 0) for of_task in lines])[:, [1, 0, 2]]),
        (g.groups, *sources, *targets, how.pixel, how.image, panels),
        is_direct,
        sources[0] * sources[1] + (0 if is_direct else of_group * targets[1]) + panels * TERMS * width,
        how.clears(rows),
        bool(sum(of_task[:, 2].sum() for of_task in lines) == targets[2]),
    )


def _parted(blocks: Any, targets: int, threads: int) -> Any:
    """For each block one for each part of the targets: two more columns tell which these are."""
    tiles = -(-targets // MOST_ROWS)
    parts = parts_by_results(len(blocks), threads, tiles)
    cuts = [min(tiles * part // parts * MOST_ROWS, targets) for part in range(parts)]
    return np.array([(*block, *of_targets) for block in blocks for of_targets in pairwise([*cuts, targets])], np.intp)


def _tiles_fit(runs: list[Any], lines: list[Any], depth: int, lanes: int) -> bool:
    """Whether tiles that each write a part of a line take less time than those of whole runs and a copy of their results."""
    of_lines, of_runs = (np.concatenate([table[:, at] for table in tables]) for tables, at in ((lines, 2), (runs, 1)))
    if not len(of_lines) or of_lines.min() < lanes:
        return False
    return bool(_tiles(of_lines, lanes) * depth <= _tiles(of_runs, lanes) * (depth + COPY))


def _tiles(sizes: Any, lanes: int) -> float:
    """Whole tiles that would take as long as those of some lines."""
    whole, rest = sizes // (2 * lanes), sizes % (2 * lanes)
    return float(whole.sum() + (rest > lanes).sum() + HALF_TILE * ((rest > 0) & (rest <= lanes)).sum())


def _arranged(g: Correlation, grid: Grid, itemsize: int, rows: int, height: int, slabs: int | None = None) -> Arrangement:
    """How images come into grids of which *height* places along the first axis are done, in so many *slabs* or as many as suit caches."""
    lanes, out, places = VECTOR_BYTES // itemsize, size_of(g.windows.out), size_of(grid.extents)
    image_bytes = (g.channels * len(grid.phases) + g.maps) * places * itemsize
    fitting, least = GRID_BYTES // image_bytes, 1
    if out < SPARSE * places and min(fitting, rows // 2) >= lanes:
        images = max(min(fitting, rows // TURNS) // lanes, 1) * lanes
        pixel = images
    else:
        images, pixel = max(min(fitting, rows // TURNS), 1), 1
        least = max(-(-image_bytes // GRID_BYTES), min(-(-TURNS // rows), out // (4 * lanes)), 1) if images == 1 else 1
    size = -(-height // min(slabs or least, height))
    cuts = [(first, min(first + size, height)) for first in range(0, height, size)]
    part = (size if len(cuts) > 1 else grid.extents[0]) * grid.steps[0]
    image = 1 if pixel > 1 else part
    elements = (part + grid.ahead(grid.reach)) * pixel + (images - 1) * image + PANEL_BYTES // itemsize
    plane = (-(-elements // lanes) | 1) * lanes  # an odd number of vectors: planes must not all lie in the same places of a cache
    return Arrangement(images, cuts, pixel, image, plane)


def _image_fills(grid: Grid, how: Arrangement, first: int, last: int) -> Any:
    """Copies of a channel of an image to the planes of its phases, for results between two places along the first axis."""
    last += grid.reach[0]
    lines = [grid.image_lines(phase, first, last) for phase in grid.phases]
    return np.concatenate([how.scaled(of_phase, number * how.plane) for number, of_phase in enumerate(lines)])


def _filled_up(table: Any, to: int) -> Any:
    """The table, with its last entry repeated until the number of entries is a multiple."""
    return np.concatenate([table, np.repeat(table[-1:], -len(table) % to)])


def _ranges(tables: list[Any]) -> tuple[Any, Any]:
    """Where each table begins and ends when they lie one behind the other."""
    ends = np.cumsum([len(table) for table in tables])
    return np.concatenate([[0], ends[:-1]]), ends
