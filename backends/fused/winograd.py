"""Correlation of images with filters of 3x3 weights, and its gradients, by minimal filtering (:mod:`.patches`), in compiled loops.

A vector holds channels of one pixel.  Images are copied to grids of such, with their padding; there every patch of 4x4 pixels, two apart,
gives 16 sums.  For each of the 16 there is a product of matrices: of patches' sums by those of filters, which sums over channels and gives
the terms of results, or, for the gradient of filters, of the sums that come back, over patches.  The memory layout is in :mod:`.tiling`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.common.threads import max_threads
from ...core.common.thresholds import is_offered, thresholds
from ...core.common.windows import Correlation, Windows
from ...core.machine.language import carray, jittable, prange, slot
from ...core.machine.loops import UNLIMITED, Loop, loop
from ...core.machine.pool import PIECES
from ...core.types.context import Context
from .followers import NOTHING, After
from .patches import SIZE, TAPS, collect, enter, enter_filters, enter_gradient, leave, leave_filters, spread
from .pieces import address, follows, in_turn, lie_well, writable
from .plan import TURNS, parts_of, parts_of_sums
from .tile import MOST_ROWS, PANEL_BYTES, VECTOR_BYTES, pointer, strided_tile
from .tiling import SUMS, tiling

LEAST_CHANNELS, LEAST_RESULTS, WEIGHTS_A_RESULT = 16, 96, 3072
"""The fewest channels on either side for which the products pay; the fewest results of a filter, and one more for so many weights."""

LARGEST_FILTERS = 2**22
"""The largest number of weights whose gradient is summed in parts."""

Step = tuple[Loop, Sequence[Any], int]
"""A loop, its arguments, and the threads that it has memory for."""

MOST_FILLED = 2
"""Vectors and patches may have so many times the elements that are needed."""


@loop("R1 R1 ? (5)")
def _transform(filters: Any, sums: Any, is_turned: bool, sizes: Any) -> None:
    """Write the sums of filters' weights, (16, depth, filters), or where filters fill vectors, (16, panels, depth, filters of a panel).

    Args:
        is_turned: whether filters are rotated by 180 degrees.
        sizes: channels; filters, and the same filled up to whole vectors; elements from one channel's weights to the next one's, and
            from one filter's.
    """
    depth, maps, row, channel_stride, map_stride = sizes
    itemsize = sums.itemsize
    lanes = VECTOR_BYTES // itemsize
    for channel in prange(depth):
        for some in range(0, maps, lanes):
            first = min(some, maps - lanes)
            begin, of_row = _panel(first, maps, row, itemsize)
            of = address(filters, channel * channel_stride + first * map_stride)
            to = address(sums, begin * depth + channel * of_row + first - begin)
            enter_filters(of, map_stride * itemsize, is_turned, to, depth * row * itemsize, sums)
        for number in range(SUMS):
            end = (number * depth + channel + 1) * row
            sums[end - (row - maps) : end] = 0  # computed with, though not read: it must not slow the processor down


@jittable
def _panel(column: int, maps: int, row: int, itemsize: int) -> tuple[int, int]:
    """Where the panel that a column is in begins, and how many elements its rows have; all columns are one where they fill no vectors."""
    lanes = VECTOR_BYTES // itemsize
    if maps % lanes > 0:
        return 0, row
    begin = column // (2 * lanes) * (2 * lanes)
    return begin, min(2 * lanes, row - begin)


@jittable
def _copy(grid: int, x: Any, side: Any, pixels: Any, block: Any, first: int, last: int, comes: bool) -> None:
    """Copy channels, from the first to the one behind the last, of what a block sees of images to their grid, or of results from theirs if
    they do not *come*."""
    channels, height, width, above, before, halo, _, _, image_bytes, row_bytes, pixel_bytes = side
    itemsize = x.itemsize
    lanes, plane = VECTOR_BYTES // itemsize, height * width * itemsize
    top = 2 * block[2] - above
    begin, end = max(top, 0), min(2 * block[3] + halo - above, height)
    size = (end - begin) * width
    for image in range(block[1] - block[0]):
        inside = grid + image * image_bytes + (begin - top) * row_bytes + before * pixel_bytes
        outside = address(x, ((block[0] + image) * channels * height + begin) * width)
        for some in range(first, last, lanes):
            channel = min(some, last - lanes)
            for at in range(0, size, lanes):
                pixel = max(min(at, size - lanes), 0)
                here, there = outside + channel * plane + pixel * itemsize, inside + channel * itemsize
                if size < lanes:
                    _copy_few(here, plane, there, pixels, size, comes, x)
                elif comes:
                    spread(here, plane, there, address(pixels, pixel), x)
                else:
                    collect(there, address(pixels, pixel), here, plane, x)


@jittable
def _copy_few(here: int, plane: int, there: int, pixels: Any, size: int, comes: bool, like: Any) -> None:
    """Copy a vector of channels of each of fewer pixels than a vector has elements."""
    lanes = VECTOR_BYTES // like.itemsize
    for lane in range(lanes):
        line = carray(pointer(here + lane * plane, like), size)
        for i in range(size):
            vector = carray(pointer(there + pixels[i], like), lanes)
            if comes:
                vector[lane] = line[i]
            else:
                line[i] = vector[lane]


@jittable
def _enter(grid: int, sums: int, side: Any, places: Any, of_image: int, first: int, count: int, like: Any) -> None:
    """Write the sums of some patches of a block, of which there are so many in an image."""
    channels, _, _, _, _, halo, row, step, image_bytes, row_bytes, pixel_bytes = side
    itemsize = like.itemsize
    lanes = VECTOR_BYTES // itemsize
    for i in range(count):
        image = (first + i) // of_image
        of = grid + image * image_bytes + places[first + i - image * of_image]
        for some in range(0, channels, lanes):
            channel = min(some, channels - lanes)
            source, target = of + channel * itemsize, sums + (i * row + channel) * itemsize
            if halo > 0:
                enter(source, row_bytes, pixel_bytes, target, step * itemsize, like)
            else:
                enter_gradient(source, row_bytes, pixel_bytes, target, step * itemsize, like)


@jittable
def _memory(work: Any, thread: int, count: int, images: Any, results: Any) -> tuple[int, int, int, int, int]:
    """Offsets in a thread's memory of the grids of images and of results, the sums of either, and the end."""
    _, _, _, _, _, _, _, step, image_bytes, _, _ = images
    _, _, _, _, _, _, _, out_step, out_image_bytes, _, _ = results
    grid = address(work, thread * work.shape[1])
    out_grid = grid + count * image_bytes
    sums = out_grid + count * out_image_bytes
    out_sums = sums + SUMS * step * work.itemsize
    return grid, out_grid, sums, out_sums, out_sums + SUMS * out_step * work.itemsize


@loop("R2 R1 R1 R1 I2 (11) (11) I1 I1 I2 (3) ? R1 ?", takes_long=True)
def _convolve(
    work: Any, out: Any, filters: Any, x: Any, blocks: Any, images: Any, results: Any, image_pixels: Any, result_pixels: Any, patches: Any,
    sizes: Any, clears: bool, bias: Any, rectify: bool,
) -> None:  # fmt: skip
    """Write results, as :class:`.tiling.Tiling` describes it.

    Args:
        filters: the sums of their weights.
        bias: what is added to each result; empty for nothing.
        rectify: whether negative results then become zero.
    """
    count, columns, at_once = sizes
    channels, _, _, _, _, _, row, step, _, _, _ = images
    maps, _, _, _, _, _, out_row, out_step, out_image_bytes, out_row_bytes, out_pixel_bytes = results
    itemsize = work.itemsize
    lanes, width = VECTOR_BYTES // itemsize, PANEL_BYTES // itemsize
    least = -np.inf
    if rectify:
        least = 0.0
    grid, out_grid, sums, products, added = _memory(work, slot(), count, images, results)
    low = added + out_row * itemsize
    grids, is_clear = work[slot(), : (sums - grid) // itemsize], False
    ends = work[slot(), work.shape[1] - out_row - lanes :]
    for turn in prange(len(blocks)):
        block = blocks[turn]
        if not is_clear:
            ends[:out_row] = 0
            for m in range(len(bias)):
                ends[m] = bias[m]
            ends[out_row:] = least
        if clears or not is_clear:
            grids[:], is_clear = 0, True
        _copy(grid, x, images, image_pixels, block, 0, channels, True)
        of_image = (block[3] - block[2]) * columns
        total = (block[1] - block[0]) * of_image
        for first in range(0, total, at_once):
            some = min(at_once, total - first)
            _enter(grid, sums, images, patches[0], of_image, first, some, work)
            tiles = (some + MOST_ROWS - 1) // MOST_ROWS
            for number in range(SUMS):
                left, to = sums + number * step * itemsize, products + number * out_step * itemsize
                for column in range(block[4], out_row if block[5] == maps else block[5], width):
                    is_half, at = out_row - column <= lanes, column * itemsize
                    begin, of_row = _panel(column, maps, out_row, itemsize)
                    right = address(filters, (number * out_row + begin) * channels + column - begin)
                    for tile in range(tiles):
                        i, end = some * tile // tiles, some * (tile + 1) // tiles
                        strided_tile(
                            is_half, False, end - i, left + i * row * itemsize, row * itemsize, itemsize,
                            right, of_row * itemsize, channels, to + i * out_row * itemsize + at, out_row * itemsize, work,
                        )  # fmt: skip
            for i in range(some):
                image = (first + i) // of_image
                to = out_grid + image * out_image_bytes + patches[1, first + i - image * of_image]
                for m in range(block[4], block[5], lanes):
                    at = min(m, block[5] - lanes) * itemsize
                    of = products + i * out_row * itemsize + at
                    leave(of, out_step * itemsize, added + at, low, to + at, out_row_bytes, out_pixel_bytes, work)
        _copy(out_grid, out, results, result_pixels, block, block[4], block[5], False)


@loop("R1 R1 I2 ?")
def _add(out: Any, residual: Any, parts: Any, rectify: bool) -> None:
    """Add what follows results to them: in a loop of its own, since that of the results gets slower by it.

    Args:
        parts: of each the first result, and the one behind the last.
        rectify: whether negative results then become zero.
    """
    zero = out.dtype.type(0)
    for part in prange(len(parts)):
        first, last = parts[part]
        some, added = out[first:last], residual[first:last]
        for i in range(len(some)):
            value = some[i] + added[i]
            some[i] = zero if rectify and value < zero else value


@loop("R2 R2 R1 R1 I2 I2 (11) (11) I1 I1 I2 (3) ?", takes_long=True)
def _weigh(
    work: Any, totals: Any, grad: Any, x: Any, parts: Any, blocks: Any, images: Any, results: Any, image_pixels: Any, result_pixels: Any,
    patches: Any, sizes: Any, clears: bool,
) -> None:  # fmt: skip
    """Sum up parts of the gradient of the sums of filters' weights, each (16, filters, channels).

    Args:
        parts: blocks that are summed up together: the first, and the one behind the last.
    """
    count, columns, at_once = sizes
    channels, _, _, _, _, _, row, step, _, _, _ = images
    maps, _, _, _, _, _, out_row, out_step, _, _, _ = results
    itemsize = work.itemsize
    lanes, width = VECTOR_BYTES // itemsize, PANEL_BYTES // itemsize
    grid, out_grid, sums, out_sums, _ = _memory(work, slot(), count, images, results)
    grids, is_clear = work[slot(), : (sums - grid) // itemsize], False
    for part in prange(len(parts)):
        if channels < row and not is_clear:  # what is behind the channels is computed with, though not read
            work[slot(), (sums - grid) // itemsize : (out_sums - grid) // itemsize] = 0
        totals[part, :] = 0
        for turn in range(parts[part, 0], parts[part, 1]):
            block = blocks[turn]
            if clears or not is_clear:
                grids[:], is_clear = 0, True
            _copy(grid, x, images, image_pixels, block, 0, channels, True)
            _copy(out_grid, grad, results, result_pixels, block, 0, maps, True)
            of_image = (block[3] - block[2]) * columns
            total = (block[1] - block[0]) * of_image
            for first in range(0, total, at_once):
                some = min(at_once, total - first)
                _enter(grid, sums, images, patches[0], of_image, first, some, work)
                _enter(out_grid, out_sums, results, patches[1], of_image, first, some, work)
                for number in range(SUMS):
                    left, right = out_sums + number * out_step * itemsize, sums + number * step * itemsize
                    to = address(totals, part * totals.shape[1] + number * maps * row)
                    for column in range(0, row, width):
                        is_half, at = row - column <= lanes, column * itemsize
                        for m in range(0, maps, MOST_ROWS):
                            strided_tile(
                                is_half, True, min(MOST_ROWS, maps - m), left + m * itemsize, itemsize, out_row * itemsize,
                                right + at, row * itemsize, some, to + m * row * itemsize + at, row * itemsize, work,
                            )  # fmt: skip


@loop("R2 R1 (3)")
def _transform_back(totals: Any, filters: Any, sizes: Any) -> None:
    """Write the gradient of filters, (filters, channels, 9), from parts of that of the sums of their weights, (16, filters, channels)."""
    maps, channels, row = sizes
    parts, itemsize = len(totals), totals.itemsize
    lanes, step = VECTOR_BYTES // itemsize, maps * row
    for m in prange(maps):
        for number in range(SUMS):
            at = number * step + m * row
            total = totals[0, at : at + row]
            for part in range(1, parts):
                more = totals[part, at : at + row]
                for i in range(row):
                    total[i] += more[i]
        for some in range(0, channels, lanes):
            first = min(some, channels - lanes)
            to = address(filters, (m * channels + first) * TAPS)
            leave_filters(address(totals, m * row + first), step * itemsize, to, TAPS * itemsize, totals)


def fits(g: Correlation, rows: int, itemsize: int) -> bool:
    """Whether so many images are correlated faster by the functions here."""
    w, lanes = g.windows, VECTOR_BYTES // itemsize
    if g.groups > 1 or g.over_channels or w.kernel != (SIZE, SIZE) or not w.strides == w.dilation == (1, 1):
        return False
    if min(g.channels, g.maps) < max(LEAST_CHANNELS, lanes):
        return False
    sizes, units = (g.channels, g.maps, *w.out), (lanes, lanes, 2, 2)
    filled = size_of([-(-size // unit) * unit for size, unit in zip(sizes, units, strict=True)])
    least = max(LEAST_RESULTS, size_of(g.weights) // WEIGHTS_A_RESULT)
    return filled <= MOST_FILLED * size_of(sizes) and rows * size_of(w.out) >= least


def correlate(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation, after: After = NOTHING) -> None:
    """Write the correlation of *filters* with *operand* into *out*, as the operators' own function does.

    Args:
        after: what follows, with a bias that has a number for each filter.
    """
    threads = max_threads() if _multiplications(out, g) >= thresholds.winograd_shared else 1
    for step, arguments, most in _steps(ctx, out, filters, operand, g, threads, after=after):
        step.run(*arguments, most=most)


def bound_correlation(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation, after: After = NOTHING) -> Callable[[], None]:
    """A function that correlates these arrays, as :func:`correlate` would."""
    if not lie_well(out, filters, operand, after):
        return partial(correlate, ctx, out, filters, operand, g, after)
    channels, maps = g.channels, g.maps
    row = tiling(channels, maps, g.windows, out.itemsize, len(operand)).results.row
    sums = ctx.prepared(0, filters, "sums of filters", (SUMS * channels * row,), out.dtype, partial(_prepare, channels, maps, row))
    offered = is_offered(_multiplications(out, g), thresholds.winograd_shared)
    steps = _steps(ctx, out, filters, operand, g, max_threads() if offered else 1, after=after, sums=sums)
    calls = [step.bound(*arguments, most=most, offered=offered) for step, arguments, most in steps]
    return calls[0] if len(calls) == 1 else in_turn(*calls)


def correlate_backward(ctx: Context, grad: Any, filters_grad: Any, operand_grad: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the gradients of the filters and of the operand, as the operators' own function does."""
    if operand_grad is not None:
        back = _reverse(g)
        threads = max_threads() if _multiplications(operand_grad, back) >= thresholds.winograd_shared else 1
        for step, arguments, most in _steps(ctx, operand_grad, filters, grad, back, threads, is_turned=True):
            step.run(*arguments, most=most)
    if filters_grad is not None:
        _sum_up(ctx, filters_grad, grad, operand, g)


@lru_cache(maxsize=256)
def _reverse(g: Correlation) -> Correlation:
    """The correlation with turned filters that sends gradients back."""
    w = g.windows
    lower, upper = (tuple(SIZE - 1 - padding for padding in of) for of in (w.lower, w.upper))
    return Correlation(1, g.maps, g.channels, Windows(w.out, w.kernel, w.strides, w.dilation, lower, upper, w.dims), False)


def _steps(
    ctx: Context, out: Any, filters: Any, x: Any, g: Correlation, threads: int, is_turned: bool = False,
    after: After = NOTHING, sums: Any = None,
) -> Sequence[Step]:  # fmt: skip
    """The loops that correlate, and their arguments; the first one writes the *sums* of filters' weights, unless they are there, the
    last one adds a residual, if there is one.

    Args:
        threads: among how many blocks are divided.
    """
    channels, maps = g.channels, g.maps
    shared = _multiplications(out, g) >= thresholds.winograd_shared
    how = tiling(channels, maps, g.windows, out.itemsize, len(x), threads)
    work = ctx.scratch("work", (min(max_threads(), len(how.blocks)), how.work), out.dtype)
    x = writable(ctx, "images", x).reshape(-1)
    transforms = []
    if sums is None:
        sums = ctx.scratch("sums of filters", (SUMS * channels * how.results.row,), out.dtype)
        transforms = [_transforming(writable(ctx, "filters", filters), sums, channels, maps, how.results.row, is_turned)]
    bias, residual, rectify = follows(ctx, after, work[0, :0])
    adds = after.residual is not None
    convolves = shared, work, out.reshape(-1), sums, x, *how.tables, bias, rectify and not adds
    steps = [*transforms, (_convolve, convolves, len(work))]
    if adds:
        parts = parts_of(out.size, max_threads() * PIECES)
        steps.append((_add, (out.size >= thresholds.elements_shared, out.reshape(-1), residual, parts, rectify), UNLIMITED))
    return steps


def _multiplications(out: Any, g: Correlation) -> int:
    """Multiplications for results without minimal filtering."""
    return int(out.size) * g.channels * TAPS


def _transforming(filters: Any, sums: Any, channels: int, maps: int, row: int, is_turned: bool = False) -> Step:
    strides = (maps * TAPS, TAPS) if is_turned else (TAPS, channels * TAPS)
    shared = filters.size >= thresholds.winograd_filters_shared
    return _transform, (shared, filters.reshape(-1), sums, is_turned, (channels, maps, row, *strides)), UNLIMITED


def _prepare(channels: int, maps: int, row: int, sums: Any, filters: Any) -> None:
    """Write the sums of the weights of filters that seldom change."""
    step, arguments, _ = _transforming(filters, sums, channels, maps, row)
    step.run(*arguments)


def _sum_up(ctx: Context, filters_grad: Any, grad: Any, operand: Any, g: Correlation) -> None:
    how = tiling(g.channels, g.maps, g.windows, grad.itemsize, len(grad))
    size = SUMS * g.maps * how.images.row
    count = parts_of_sums(len(how.blocks), size * grad.itemsize, 2)
    totals = ctx.scratch("parts of the filters' gradient", (count, size), grad.dtype)
    work = ctx.scratch("work", (min(max_threads(), count), how.work), grad.dtype)
    grad, operand = writable(ctx, "gradient", grad).reshape(-1), writable(ctx, "images", operand).reshape(-1)
    shared = grad.size * g.channels * TAPS >= thresholds.winograd_shared
    _weigh.run(shared, work, totals, grad, operand, parts_of(len(how.blocks), count), *how.tables, most=len(work))
    if count > TURNS:
        parts, totals = totals, ctx.scratch("the filters' gradient", (1, size), grad.dtype)
        ctx.sum_to(parts, totals)
    _transform_back.run(
        filters_grad.size >= thresholds.winograd_filters_shared, totals, filters_grad.reshape(-1), (g.maps, g.channels, how.images.row)
    )
