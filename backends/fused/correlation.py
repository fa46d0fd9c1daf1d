"""Correlation of filters with images, and its gradients, in compiled loops over the images.

What a filter sees at each of its positions is copied into a column of a matrix, for a few images at a time or for some lines of one, so
that the matrix stays in a processor's cache; then comes a product with the filters.  What is copied where, :mod:`.plan` has found out.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from ...core.context import Context
from ...core.threads import max_threads
from ...core.windows import Correlation
from . import blas
from .blas import multiply
from .loops import Loop
from .pieces import copy, gather, scatter, writable
from .plan import Plan, plan

CORRELATE, SEND_BACK, WEIGH = range(3)
"""What is computed: results, the gradient of the images, or that of the filters."""

SHARED_FROM = 2**22
"""Multiplications from which on threads share them: just after a product of the BLAS, whose threads spin, others take long to begin."""


@Loop
def _loop(
    kind: int, work: Any, out: Any, filters: Any, x: Any, blocks: Any, slabs: Any, lines: Any, runs: Any, wide: bool, sizes: Any
) -> None:
    """Compute one of the three.

    Args:
        work: memory for each thread.
        out: results, or their gradient.
        filters: the filters in a row, or parts of their gradient, transposed.
        x: images, or their gradient.
        blocks: first image, the one behind the last, first slab, the one behind the last, and row of *filters* of each block.
        slabs, lines, runs, sizes: what the plan says.
        wide: whether the BLAS's integers have 64 bits.
    """
    groups, channels, maps, taps, image_size, out_size, line_store, stride, images, plain = sizes
    seen, group_maps = channels // groups * taps, maps // groups
    threads = len(work)
    for thread in numba.prange(threads):
        store = work[thread, : images * channels * line_store]
        rest = work[thread, len(store) :]
        for turn in range(thread, len(blocks), threads):
            first_image, last_image, first_slab, last_slab, part = blocks[turn]
            for image in range(first_image, last_image, images):
                count = min(images, last_image - image)
                if kind == SEND_BACK and not plain:
                    x[image * channels * image_size : (image + count) * channels * image_size] = 0
                for slab in range(first_slab, last_slab):
                    position, pixels, first_line, last_line, first_run, last_run = slabs[slab]
                    line, run = lines[first_line:last_line], runs[first_run:last_run]
                    columns, begin, pitch = rest, 0, images * pixels
                    if plain:
                        columns, begin, pitch = x, image * channels * image_size + position, image_size
                    elif kind != SEND_BACK:
                        store[:] = 0
                        for i in range(count * channels):
                            gather(store, i * line_store, x, (image * channels + i) * image_size, stride, line)
                        for i in range(channels):
                            for n in range(count):
                                gather(columns, i * taps * pitch + n * pixels, store, (n * channels + i) * line_store, 1, run)
                    products, start, step = out, image * maps * out_size + position, out_size
                    if images > 1:
                        products, start, step = rest[channels * taps * pitch :], 0, pitch
                        if kind != CORRELATE:
                            for i in range(maps):
                                for n in range(count):
                                    copy(products, i * pitch + n * pixels, out, ((image + n) * maps + i) * out_size, pixels)
                    width = count * pixels
                    for group in range(groups):
                        weights, n = (filters[part], group * group_maps * seen), group_maps
                        matrix, result = (columns, begin + group * seen * pitch), (products, start + group * n * step)
                        if kind == CORRELATE:
                            multiply(wide, False, False, n, width, seen, weights, seen, matrix, pitch, False, result, step)
                        elif kind == SEND_BACK:
                            multiply(wide, True, False, seen, width, n, weights, seen, result, step, False, matrix, pitch)
                        else:
                            add = image > first_image or slab > first_slab
                            multiply(wide, False, True, seen, n, width, matrix, pitch, result, step, add, weights, n)
                    if images > 1 and kind == CORRELATE:
                        for i in range(maps):
                            for n in range(count):
                                copy(out, ((image + n) * maps + i) * out_size, products, i * pitch + n * pixels, pixels)
                    if kind == SEND_BACK and not plain:
                        store[:] = 0
                        for i in range(channels):
                            for n in range(count):
                                scatter(columns, i * taps * pitch + n * pixels, store, (n * channels + i) * line_store, 1, run)
                        for i in range(count * channels):
                            scatter(store, i * line_store, x, (image * channels + i) * image_size, stride, line)


def correlate(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the correlation of *filters* with *operand* into *out*, as the operators' own function does."""
    how = plan(g, out.itemsize, len(operand))
    _run(ctx, CORRELATE, how, out, filters.reshape(1, -1), operand, how.by_slabs)


def correlate_backward(ctx: Context, grad: Any, filters_grad: Any, operand_grad: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the gradients of the filters and of the operand, as the operators' own function does."""
    how = plan(g, grad.itemsize, len(grad))
    if operand_grad is not None:
        _run(ctx, SEND_BACK, how, grad, filters.reshape(1, -1), operand_grad, how.by_images)
    if filters_grad is not None:
        groups, maps, seen = g.weights
        parts = ctx.scratch("filter gradient parts", (len(how.by_parts), groups, seen, maps), grad.dtype)
        _run(ctx, WEIGH, how, grad, parts.reshape(len(parts), -1), operand, how.by_parts)
        total = ctx.scratch("filter gradient", parts.shape[1:], grad.dtype)
        np.add.reduce(parts, axis=0, out=total)
        np.copyto(filters_grad.reshape(g.weights), total.swapaxes(-1, -2))


def _run(ctx: Context, kind: int, how: Plan, out: Any, filters: Any, x: Any, blocks: Any) -> None:
    library = blas.found()
    work = ctx.scratch("work", (min(max_threads(), len(blocks)), how.work), out.dtype)
    out, filters, x = (writable(ctx, name, array) for name, array in (("result", out), ("filters", filters), ("images", x)))
    tables = blocks, how.slabs, how.lines, how.runs
    groups, channels, _, taps, *_ = how.sizes
    shared = out.size * (channels // groups) * taps >= SHARED_FROM
    with blas.one_thread(library):
        _loop.run(shared, kind, work, out.reshape(-1), filters, x.reshape(-1), *tables, library.wide, how.sizes)
