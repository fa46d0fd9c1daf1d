"""Correlation of filters with images, and its gradients, in compiled loops over the images.

Images are copied into grids (:mod:`.grid`), in which the elements that a weight is multiplied by form a run.  So all three are products of
matrices whose rows are runs of the grid, and nothing else is copied.  :mod:`.plan` determines what is copied where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.common.threads import max_threads
from ...core.common.thresholds import is_offered, thresholds
from ...core.common.windows import Correlation
from ...core.machine.language import copy_bytes, jittable, prange, slot
from ...core.machine.loops import loop
from ...core.types.context import Context
from . import few_pixels
from .followers import NOTHING, After
from .pieces import address, copy_lines, finish_lines, follows, lie_well, writable
from .plan import TERMS, Product, plan_of_filters, plan_of_images, plan_of_results, weights_of_phases
from .tile import DOT_COLUMNS, DOT_ROWS, MOST_ROWS, PANEL_BYTES, VECTOR_BYTES, dots, fetch, gathered_tile, strided_tile

TURNED = 16
"""Channels whose weights are copied at a time, so that all of a cache line is."""

LARGEST_FILTERS = 2**21
"""The largest number of weights whose gradient is summed in parts."""


@loop("R2 R1 R1 R1 I2 I2 I2 I2 I1 I2 I2 ? ? (12) R1 R1 ?", takes_long=True)
def _multiply(
    work: Any, out: Any, weights: Any, x: Any, blocks: Any, slabs: Any, fills: Any, tasks: Any, places: Any, runs: Any, gives: Any,
    is_direct: bool, clears: bool, sizes: Any, bias: Any, residual: Any, rectify: bool,
) -> None:  # fmt: skip
    """Write targets: a product, as :class:`.plan.Product` describes it.

    Args:
        bias: what is added to each target; empty for nothing.
        residual: what is then added to the result; empty for nothing.
        rectify: whether negative results then become zero.
    """
    groups, sources, source_grid, source_size, fill_stride, targets, target_grid, target_size, give_stride, pixel, image_step, most = sizes
    itemsize = out.itemsize
    grid, is_clear = work[slot(), : sources * source_grid], False
    result = work[slot(), len(grid) :]
    distance = address(residual, 0) - address(out, 0) if len(residual) > 0 else 0
    for turn in prange(len(blocks)):
        first_image, last_image, slab, first_target, last_target = blocks[turn]
        count, rows = last_image - first_image, last_target - first_target
        if clears or not is_clear:
            grid[:], is_clear = 0, True
        first_fill, last_fill, first_task, last_task = slabs[slab]
        for i in range(count * sources):
            at = i % sources * source_grid + i // sources * image_step
            copy_lines(grid, at, pixel, x, (first_image * sources + i) * source_size, fill_stride, fills[first_fill:last_fill])
        for task in range(first_task, last_task):
            depth, first_weight, first_place, first_run, last_run, first_give, last_give = tasks[task]
            seen, lines = address(places, first_place), gives[first_give:last_give]
            for group in range(groups):
                first_row = group * (targets // groups) + first_target
                left, origin = address(weights, first_weight + first_row * depth), address(grid, group * (sources // groups) * source_grid)
                if is_direct:
                    added = address(bias, first_row) if len(bias) > 0 else 0
                    for i in range(count):
                        to = address(out, ((first_image + i) * targets + first_row) * target_size)
                        _write_lines(
                            origin + i * image_step * itemsize, seen, left, depth, to, rows, target_size, lines, added, distance, rectify,
                            out,
                        )  # fmt: skip
                    continue
                for run in range(first_run, last_run):
                    begin, size, growth = runs[run]
                    of, to, size = origin + begin * itemsize, address(result, begin), size + (count - 1) * growth
                    if most > 0:
                        panels = address(result, targets // groups * target_grid)
                        seen_by = places[first_place : first_place + depth]
                        _write_packed(panels, most, of, seen_by, left, to, rows, target_grid, size, out)
                    else:
                        _write_run(of, seen, left, depth, to, rows, target_grid, size, out)
                for i in range(count * rows):
                    row, image = i % rows, i // rows
                    to = ((first_image + image) * targets + first_row + row) * target_size
                    at = row * target_grid + image * image_step
                    if rectify or len(bias) > 0 or len(residual) > 0:
                        number = bias[first_row + row] if len(bias) > 0 else out.dtype.type(0)
                        finish_lines(out, to, give_stride, result, at, pixel, lines, number, residual, rectify)
                    else:
                        copy_lines(out, to, give_stride, result, at, pixel, lines)


@jittable
def _write_lines(
    origin: int, seen: int, weights: int, depth: int, to: int, rows: int, target_size: int, lines: Any, bias: int, residual: int,
    rectify: bool, like: Any,
) -> None:  # fmt: skip
    """Write lines of some targets: the last tile of a line ends with it, and computes some results again.

    Args:
        origin, seen: address of the first place of the grid, and of the table of what each weight meets.
        weights, depth: address of the first target's weights, and how many each has.
        to, rows, target_size: address of the first target, how many there are, and elements of one.
        lines: where in a target, where in the grid, how many elements.
        bias, residual, rectify: as for :func:`.tile.gathered_tile`.
    """
    itemsize = like.itemsize
    width, parts = PANEL_BYTES // itemsize, (rows + MOST_ROWS - 1) // MOST_ROWS
    for line in range(len(lines)):
        target, of, size = lines[line]
        place = 0
        while place < size:
            span = width // 2 if 2 * (size - place) <= width else min(width, size)
            at, apart = min(place, size - span), (span - width // 2) * itemsize
            place += span
            for part in range(parts):
                row, end = rows * part // parts, rows * (part + 1) // parts
                left, added = weights + row * depth * itemsize, bias + row * itemsize if bias != 0 else 0
                written = to + (row * target_size + target + at) * itemsize
                panel, stride = origin + (of + at) * itemsize, target_size * itemsize
                for i in range(row, end):
                    fetch(to + (i * target_size + target + at + span) * itemsize)
                gathered_tile(
                    apart, end - row, left, depth * itemsize, panel, seen, depth, written, stride, added, residual, rectify, like
                )  # fmt: skip


@jittable
def _write_run(panel: int, seen: int, weights: int, depth: int, to: int, rows: int, target_size: int, size: int, like: Any) -> None:
    """Write a run of the grids of some targets; arguments as for :func:`_write_lines`, with the address of the run's first place."""
    itemsize = like.itemsize
    width, parts = PANEL_BYTES // itemsize, (rows + MOST_ROWS - 1) // MOST_ROWS
    for place in range(0, size, width):
        apart, ahead = 0 if 2 * (size - place) <= width else VECTOR_BYTES, place * itemsize
        for part in range(parts):
            row, end = rows * part // parts, rows * (part + 1) // parts
            left, written = weights + row * depth * itemsize, to + row * target_size * itemsize + ahead
            gathered_tile(
                apart, end - row, left, depth * itemsize, panel + ahead, seen, depth, written, target_size * itemsize, 0, 0, False,
                like,
            )  # fmt: skip


@jittable
def _write_packed(
    panels: int, most: int, of: int, places: Any, weights: int, to: int, rows: int, target_size: int, size: int, like: Any
) -> None:  # fmt: skip
    """The same, of many terms and targets: what some terms of each sum meet is copied to panels, *most* at a time, and multiplied there.

    Args:
        panels: address of memory for them.
        places: how many bytes ahead of a target's place lies what each weight meets.
    """
    itemsize, depth = like.itemsize, len(places)
    width, tiles, parts = PANEL_BYTES // itemsize, (rows + MOST_ROWS - 1) // MOST_ROWS, (depth + TERMS - 1) // TERMS
    for first in range(0, size, most * width):
        count = min(most, (size - first + width - 1) // width)
        for part in range(parts):
            begin, end = depth * part // parts, depth * (part + 1) // parts
            for number in range(count):
                panel, seen = panels + number * (end - begin) * PANEL_BYTES, of + (first + number * width) * itemsize
                for term in range(begin, end):
                    copy_bytes(panel + (term - begin) * PANEL_BYTES, seen + places[term], PANEL_BYTES)
            for tile in range(tiles):
                row, last = rows * tile // tiles, rows * (tile + 1) // tiles
                left, written = weights + (row * depth + begin) * itemsize, to + (row * target_size + first) * itemsize
                for number in range(count):
                    strided_tile(
                        False, part > 0, last - row, left, depth * itemsize, itemsize, panels + number * (end - begin) * PANEL_BYTES,
                        PANEL_BYTES, end - begin, written + number * PANEL_BYTES, target_size * itemsize, like,
                    )  # fmt: skip


@loop("R1 R1 I1 (4)")
def _turn(turned: Any, filters: Any, taps: Any, sizes: Any) -> None:
    """Copy some weights of filters in the order of channels, and for each of filters.

    Args:
        taps: which weights of a channel.
        sizes: groups, filters and channels of each, and the weights of a channel.
    """
    groups, maps, channels, weights = sizes
    pieces = (channels + TURNED - 1) // TURNED
    for number in prange(groups * pieces):
        group, first = number // pieces, number % pieces * TURNED
        for m in range(maps):
            for channel in range(first, min(channels, first + TURNED)):
                source, to = ((group * maps + m) * channels + channel) * weights, ((group * channels + channel) * maps + m) * len(taps)
                for i in range(len(taps)):
                    turned[to + i] = filters[source + taps[i]]


@loop("R2 R2 R1 R1 I2 I2 I2 I2 I2 I1 I1 I2 ? ? (10)", takes_long=True)
def _weigh(
    work: Any, totals: Any, grad: Any, x: Any, parts: Any, blocks: Any, slabs: Any, fills: Any, grads: Any, rows: Any, columns: Any,
    runs: Any, by_count: bool, clears: bool, sizes: Any,
) -> None:  # fmt: skip
    """Sum up parts of the gradient of filters, as :class:`.plan.Weighing` describes it."""
    groups, channels, channel_grid, channel_size, stride, maps, map_grid, map_size, pixel, image_step = sizes
    itemsize = x.itemsize
    per_row = len(columns)
    per_group = len(rows) * per_row
    memory, is_clear = work[slot()], False
    images, gradients = memory[: channels * channel_grid], memory[channels * channel_grid :]
    for part in prange(len(parts)):
        totals[part, :] = 0
        for turn in range(parts[part, 0], parts[part, 1]):
            first_image, last_image, slab = blocks[turn]
            count = last_image - first_image
            if clears or not is_clear:
                memory[:], is_clear = 0, True
            first_fill, last_fill, first_grad, last_grad = slabs[slab]
            for i in range(count * channels):
                at = i % channels * channel_grid + i // channels * image_step
                copy_lines(images, at, pixel, x, (first_image * channels + i) * channel_size, stride, fills[first_fill:last_fill])
            for i in range(count * maps):
                at = i % maps * map_grid + i // maps * image_step
                copy_lines(gradients, at, pixel, grad, (first_image * maps + i) * map_size, 1, grads[first_grad:last_grad])
            first_run, run_count = (count - 1, 1) if by_count else (0, len(runs))
            looked_at = address(runs, first_run * 2)
            for group in range(groups):
                left = address(gradients, group * (maps // groups) * map_grid)
                right = address(images, group * (channels // groups) * channel_grid)
                for column in range(0, per_row, DOT_COLUMNS):
                    for row in range(0, len(rows), DOT_ROWS):
                        to = address(totals[part], group * per_group + row * per_row + column)
                        dots(left, address(rows, row), right, address(columns, column), looked_at, run_count, to, per_row * itemsize, x)


def correlate(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation, after: After = NOTHING) -> None:
    """Write the correlation of *filters* with *operand* into *out*, as the operators' own function does.

    Args:
        after: what follows, with a bias that has a number for each filter.
    """
    multiplications = _multiplications(out, g)
    how = plan_of_results(g, out.itemsize, len(operand), max_threads() if multiplications >= thresholds.convolution_shared else 1)
    arguments = _arguments(ctx, how, out, filters, operand, multiplications, after)
    _multiply.run(*arguments, most=len(arguments[1]))


def bound_correlation(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation, after: After = NOTHING) -> Callable[[], None]:
    """A function that correlates these arrays, as :func:`correlate` would."""
    if not lie_well(out, filters, operand, after):
        return partial(correlate, ctx, out, filters, operand, g, after)
    multiplications = _multiplications(out, g)
    offered = is_offered(multiplications, thresholds.convolution_shared)
    how = plan_of_results(g, out.itemsize, len(operand), max_threads() if offered else 1)
    if len(operand) == 1 and few_pixels.fits(g, how, out.itemsize):
        call = few_pixels.bound(ctx, out, filters, operand, g, after)
        if call is not None:
            return call
    arguments = _arguments(ctx, how, out, filters, operand, multiplications, after)
    return _multiply.bound(*arguments, most=len(arguments[1]), offered=offered)


def correlate_backward(ctx: Context, grad: Any, filters_grad: Any, operand_grad: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the gradients of the filters and of the operand, as the operators' own function does."""
    if operand_grad is not None:
        _send_back(ctx, operand_grad, filters, grad, g)
    if filters_grad is not None:
        _sum_up(ctx, filters_grad, grad, operand, g)


def _send_back(ctx: Context, operand_grad: Any, filters: Any, grad: Any, g: Correlation) -> None:
    groups, maps, seen = g.weights
    channels, filters = g.channels // groups, writable(ctx, "filters", filters).reshape(-1)
    turned, start = ctx.scratch("turned filters", filters.shape, filters.dtype), 0
    for taps in weights_of_phases(g):
        sizes = groups, maps, channels, seen // channels
        _turn.run(filters.size >= thresholds.elements_shared, turned[start:], filters, np.array(taps, np.intp), sizes)
        start += groups * maps * channels * len(taps)
    how = plan_of_images(g, grad.itemsize, len(grad))
    if not how.covers:
        operand_grad[...] = 0
    arguments = _arguments(ctx, how, operand_grad, turned, grad, _multiplications(grad, g))
    _multiply.run(*arguments, most=len(arguments[1]))


def _sum_up(ctx: Context, filters_grad: Any, grad: Any, operand: Any, g: Correlation) -> None:
    how = plan_of_filters(g, grad.itemsize, len(grad))
    groups, maps, seen = g.weights
    totals = ctx.scratch("parts of the filters' gradient", (len(how.parts), groups, len(how.rows), len(how.columns)), grad.dtype)
    work = ctx.scratch("work", (min(max_threads(), len(how.parts)), how.work), grad.dtype)
    grad, operand = writable(ctx, "gradient", grad).reshape(-1), writable(ctx, "images", operand).reshape(-1)
    tables = how.parts, how.blocks, how.slabs, how.fills, how.grads, how.rows, how.columns, how.runs, how.by_count, how.clears, how.sizes
    is_shared = _multiplications(grad, g) >= thresholds.convolution_shared
    _weigh.run(is_shared, work, totals.reshape(len(totals), -1), grad, operand, *tables, most=len(work))
    ctx.sum_to(totals[:, :, :maps, :seen], filters_grad.reshape(g.weights))


def _arguments(ctx: Context, how: Product, out: Any, weights: Any, x: Any, multiplications: int, after: After = NOTHING) -> Sequence[Any]:
    """Whether threads share :func:`_multiply`, and its arguments."""
    work = ctx.scratch("work", (min(max_threads(), len(how.blocks)), how.work), out.dtype)
    out, weights, x = (writable(ctx, name, array).reshape(-1) for name, array in (("result", out), ("filters", weights), ("images", x)))
    tables = how.blocks, how.slabs, how.fills, how.tasks, how.places, how.runs, how.gives, how.is_direct, how.clears, how.sizes
    return multiplications >= thresholds.convolution_shared, work, out, weights, x, *tables, *follows(ctx, after, work[0, :0])


def _multiplications(result: Any, g: Correlation) -> int:
    """Multiplications for a result, or for one of the gradients."""
    return int(result.size) * g.weights[2]
