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
from ...core.common.thresholds import thresholds
from ...core.common.windows import Correlation
from ...core.machine.language import prange, slot
from ...core.machine.loops import loop
from ...core.types.context import Context
from .pieces import address, copy_lines, finish_lines, writable
from .plan import Product, plan_of_filters, plan_of_images, plan_of_results, weights_of_phases
from .tile import DOT_COLUMNS, DOT_ROWS, MOST_ROWS, PANEL_BYTES, dots, gathered_tile

LARGEST_FILTERS = 2**21
"""The largest number of weights whose gradient is summed in parts."""


@loop("R2 R1 R1 R1 I2 I2 I2 I2 I1 I2 I2 ? (11) R1 ?", takes_long=True)
def _multiply(
    work: Any, out: Any, weights: Any, x: Any, blocks: Any, slabs: Any, fills: Any, tasks: Any, places: Any, runs: Any, gives: Any,
    clears: bool, sizes: Any, bias: Any, rectify: bool,
) -> None:  # fmt: skip
    """Write targets: a product, as :class:`.plan.Product` describes it.

    Args:
        bias: what is added to each target; empty for nothing.
        rectify: whether negative results then become zero.
    """
    groups, sources, source_grid, source_size, fill_stride, targets, target_grid, target_size, give_stride, pixel, image_step = sizes
    rows, itemsize, width = targets // groups, out.itemsize, PANEL_BYTES // out.itemsize
    grid, is_clear = work[slot(), : sources * source_grid], False
    result = work[slot(), len(grid) :]
    for turn in prange(len(blocks)):
        first_image, last_image, slab = blocks[turn]
        count = last_image - first_image
        if clears or not is_clear:
            grid[:], is_clear = 0, True
        first_fill, last_fill, first_task, last_task = slabs[slab]
        for i in range(count * sources):
            at = i % sources * source_grid + i // sources * image_step
            copy_lines(grid, at, pixel, x, (first_image * sources + i) * source_size, fill_stride, fills[first_fill:last_fill])
        for task in range(first_task, last_task):
            depth, first_weight, first_place, first_run, last_run, first_give, last_give = tasks[task]
            seen = address(places, first_place)
            for group in range(groups):
                origin, of_group = group * (sources // groups) * source_grid, first_weight + group * rows * depth
                for run in range(first_run, last_run):
                    begin, size, growth = runs[run]
                    end = begin + size + (count - 1) * growth
                    for place in range(begin, end, width):
                        panel, is_half = address(grid, origin + place), 2 * (end - place) <= width
                        for row in range(0, rows, MOST_ROWS):
                            left, to = address(weights, of_group + row * depth), address(result, row * target_grid + place)
                            at_once = min(MOST_ROWS, rows - row)
                            gathered_tile(is_half, at_once, left, depth * itemsize, panel, seen, depth, to, target_grid * itemsize, out)
                for i in range(count * rows):
                    row, image = i % rows, i // rows
                    to = ((first_image + image) * targets + group * rows + row) * target_size
                    at = row * target_grid + image * image_step
                    lines = gives[first_give:last_give]
                    if rectify or len(bias) > 0:
                        added = bias[group * rows + row] if len(bias) > 0 else out.dtype.type(0)
                        finish_lines(out, to, give_stride, result, at, pixel, lines, added, rectify)
                    else:
                        copy_lines(out, to, give_stride, result, at, pixel, lines)


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


def correlate(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation, bias: Any = None, rectify: bool = False) -> None:
    """Write the correlation of *filters* with *operand* into *out*, as the operators' own function does.

    Args:
        bias: an array with a number for each filter that is added to its results; None for none.
        rectify: whether negative results then become zero.
    """
    how = plan_of_results(g, out.itemsize, len(operand))
    arguments = _arguments(ctx, how, out, filters, operand, _multiplications(out, g), bias, rectify)
    _multiply.run(*arguments, most=len(arguments[1]))


def bound_correlation(
    ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation, bias: Any = None, rectify: bool = False
) -> Callable[[], None]:
    """A function that correlates these arrays, as :func:`correlate` would."""
    if not all(array.flags.carray for array in (out, filters, operand)):
        return partial(correlate, ctx, out, filters, operand, g, bias, rectify)
    how = plan_of_results(g, out.itemsize, len(operand))
    arguments = _arguments(ctx, how, out, filters, operand, _multiplications(out, g), bias, rectify)
    return _multiply.bound(*arguments, most=len(arguments[1]))


def correlate_backward(ctx: Context, grad: Any, filters_grad: Any, operand_grad: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the gradients of the filters and of the operand, as the operators' own function does."""
    if operand_grad is not None:
        _send_back(ctx, operand_grad, filters, grad, g)
    if filters_grad is not None:
        _sum_up(ctx, filters_grad, grad, operand, g)


def _send_back(ctx: Context, operand_grad: Any, filters: Any, grad: Any, g: Correlation) -> None:
    groups, maps, _ = g.weights
    filters = filters.reshape(groups, maps, g.channels // groups, -1).transpose(0, 2, 1, 3)
    turned, start = ctx.scratch("turned filters", (filters.size,), filters.dtype), 0
    for taps in weights_of_phases(g):
        shape = (*filters.shape[:3], len(taps))
        part = turned[start : start + filters.size // filters.shape[3] * len(taps)]
        np.copyto(part.reshape(shape), filters[..., taps] if len(taps) < filters.shape[3] else filters)
        start += len(part)
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


def _arguments(
    ctx: Context, how: Product, out: Any, weights: Any, x: Any, multiplications: int, bias: Any = None, rectify: bool = False
) -> Sequence[Any]:
    """Whether threads share :func:`_multiply`, and its arguments."""
    work = ctx.scratch("work", (min(max_threads(), len(how.blocks)), how.work), out.dtype)
    out, weights, x = (writable(ctx, name, array).reshape(-1) for name, array in (("result", out), ("filters", weights), ("images", x)))
    if bias is None:
        bias = work[0, :0]
    tables = how.blocks, how.slabs, how.fills, how.tasks, how.places, how.runs, how.gives, how.clears, how.sizes
    return multiplications >= thresholds.convolution_shared, work, out, weights, x, *tables, bias, rectify


def _multiplications(result: Any, g: Correlation) -> int:
    """Multiplications for a result, or for one of the gradients."""
    return int(result.size) * g.weights[2]
