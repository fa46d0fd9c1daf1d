"""Correlation of filters with an operand, and its gradients, as matrix products.

What a filter sees at each of its positions is copied into a column of a matrix (*im2col*); one product with the filters then gives
all results.  This goes in blocks of some images, or some lines of one image, so that a block's columns stay in the cache.

Windows one element apart are taken from whole runs of memory: the next position lies one element further even across the end of a
line, so one long run holds what a filter weight meets everywhere.  The few columns for positions that straddle two lines are computed
for nothing, which costs less than copying line by line.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.common.shape import Shape, size_of
from ...core.common.windows import Correlation
from ...core.types.context import Context
from .dense_product import multiply
from .planes import cut, gradient_planes, padded_planes, take_gradient

BLOCK_BYTES = 4 << 20
"""Size that a block's columns should not exceed."""


def correlate(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the correlation of *filters* with *operand* into *out*.

    Args:
        out: array of shape (rows, maps, *g.windows.out).
        filters: array whose elements are those of the shape ``g.weights``.
        operand: array of shape (rows, channels, *g.windows.dims).
    """
    xp = ctx.xp
    filters = _computed(ctx, filters, g)
    for images in _images(g, len(operand), filters.itemsize):
        planes = padded_planes(ctx, operand[images], g.windows, filters.dtype)
        for lines in _lines(g, filters.itemsize):
            columns = _columns(ctx, planes, g, lines)
            products = _products(ctx, len(planes), g, lines, planes.dtype)
            xp.matmul(filters, columns, out=products)
            xp.copyto(out[images, :, lines], _positions(ctx, products, len(planes), g, lines))


def correlate_backward(ctx: Context, grad: Any, filters_grad: Any, operand_grad: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the gradients of the filters and of the operand, where their places are not None, given the result's gradient *grad*."""
    xp = ctx.xp
    dtype = computing_type(grad.dtype)
    if filters_grad is not None:
        total = ctx.scratch("filter gradient", g.weights, np.float64)
        total.fill(0)
    if operand_grad is not None:
        transposed = _computed(ctx, filters, g).swapaxes(-1, -2)
    for images in _images(g, len(grad), dtype.itemsize):
        planes = None if filters_grad is None else padded_planes(ctx, operand[images], g.windows, dtype)
        grad_planes = None if operand_grad is None else gradient_planes(ctx, operand_grad[images], g.windows, dtype)
        for lines in _lines(g, dtype.itemsize):
            products = _spread(ctx, grad[images, :, lines], g, lines, dtype)
            if planes is not None:
                _add_filter_grad(ctx, total, products, _columns(ctx, planes, g, lines))
            if grad_planes is not None:
                _add_operand_grad(ctx, grad_planes, transposed, products, g, lines)
        if grad_planes is not None:
            take_gradient(ctx, operand_grad[images], grad_planes, g.windows)
    if filters_grad is not None:
        xp.copyto(filters_grad, total.reshape(filters_grad.shape))


# ---- blocks ----


def _images(g: Correlation, rows: int, itemsize: int) -> Iterator[slice]:
    """Cut the rows into blocks of whole images: one image at least."""
    return cut(rows, _line_bytes(g, itemsize) * g.windows.out[0], BLOCK_BYTES)


def _lines(g: Correlation, itemsize: int) -> Iterator[slice]:
    """Cut the first axis of an image's results into blocks: one, unless the columns of an image are too many."""
    return cut(g.windows.out[0], _line_bytes(g, itemsize), BLOCK_BYTES)


def _line_bytes(g: Correlation, itemsize: int) -> int:
    return g.channels * size_of(g.windows.kernel) * size_of(g.windows.padded[1:]) * itemsize


# ---- operands ----


def _computed(ctx: Context, filters: Any, g: Correlation) -> Any:
    """The filters in their canonical shape and in the type to compute in."""
    filters = filters.reshape(g.weights)
    dtype = computing_type(filters.dtype)
    if filters.dtype == dtype:
        return filters
    wide = ctx.scratch("filters", g.weights, dtype)
    ctx.xp.copyto(wide, filters)
    return wide


# ---- columns and products ----


def _run(g: Correlation, lines: slice) -> tuple[Shape, Shape]:
    """How a filter weight's column entries lie in the planes: the shape of a run, and of the results' places in it the strides."""
    out = (lines.stop - lines.start, *g.windows.out[1:])
    if any(stride > 1 for stride in g.windows.strides):
        return out, _contiguous(out)
    steps = g.windows.steps
    return (1 + sum((count - 1) * step for count, step in zip(out, steps, strict=True)),), steps


def _contiguous(shape: Shape) -> Shape:
    """Strides, in elements, of a contiguous array."""
    return tuple(size_of(shape[axis + 1 :]) for axis in range(len(shape)))


def _windows(ctx: Context, planes: Any, g: Correlation, lines: slice) -> Any:
    """What each filter weight meets: a view of the planes of shape (channels, *kernel, images, *run)."""
    w = g.windows
    run, _ = _run(g, lines)
    planes = planes[:, :, lines.start * w.strides[0] :]
    image, channel, *steps = planes.strides
    taps = [step * dilation for step, dilation in zip(steps, w.dilation, strict=True)]
    along = [planes.itemsize] if len(run) < len(w.out) else [step * stride for step, stride in zip(steps, w.strides, strict=True)]
    shape = (g.channels, *w.kernel, len(planes), *run)
    return ctx.xp.lib.stride_tricks.as_strided(planes, shape, (channel, *taps, image, *along))


def _columns(ctx: Context, planes: Any, g: Correlation, lines: slice) -> Any:
    """The matrix with what a filter sees in each column, for each group."""
    windows = _windows(ctx, planes, g, lines)
    columns = ctx.scratch("columns", windows.shape, windows.dtype)
    ctx.xp.copyto(columns, windows)
    return columns.reshape(g.groups, g.weights[-1], -1)


def _products(ctx: Context, images: int, g: Correlation, lines: slice, dtype: Any) -> Any:
    """Space for the product of filters and columns."""
    run, _ = _run(g, lines)
    return ctx.scratch("products", (*g.weights[:2], images * size_of(run)), dtype)


def _positions(ctx: Context, products: Any, images: int, g: Correlation, lines: slice) -> Any:
    """The results within a product: a view of shape (images, maps, *out)."""
    run, steps = _run(g, lines)
    length, size = size_of(run), products.itemsize
    shape = (images, g.maps, lines.stop - lines.start, *g.windows.out[1:])
    strides = (length * size, images * length * size, *(step * size for step in steps))
    return ctx.xp.lib.stride_tricks.as_strided(products, shape, strides)


def _spread(ctx: Context, grad: Any, g: Correlation, lines: slice, dtype: Any) -> Any:
    """The gradient laid out like a product, with zeros for the columns that are no results."""
    products = _products(ctx, len(grad), g, lines, dtype)
    products.fill(0)
    ctx.xp.copyto(_positions(ctx, products, len(grad), g, lines), grad)
    return products


def _add_filter_grad(ctx: Context, total: Any, products: Any, columns: Any) -> None:
    part = ctx.scratch("filter gradient part", total.shape, products.dtype)
    multiply(ctx, products, columns.swapaxes(-1, -2), part)
    ctx.xp.add(total, part, out=total)


def _add_operand_grad(ctx: Context, planes: Any, transposed: Any, products: Any, g: Correlation, lines: slice) -> None:
    """Add what the filters send back to each place (*col2im*), one filter weight after the other, for windows overlap."""
    windows = _windows(ctx, planes, g, lines)
    columns = ctx.scratch("columns", windows.shape, windows.dtype)
    ctx.xp.matmul(transposed, products, out=columns.reshape(g.groups, g.weights[-1], -1))
    for tap in product(*map(range, g.windows.kernel)):
        place = windows[(slice(None), *tap)]
        ctx.xp.add(place, columns[(slice(None), *tap)], out=place)
