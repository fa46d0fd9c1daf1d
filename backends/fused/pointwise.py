"""Correlation of filters of one weight a channel with images, and its gradients: products of matrices, whose rows are the pixels of a
channel.  Where strides skip pixels, those that are left are gathered first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.common.threads import max_threads
from ...core.common.thresholds import thresholds
from ...core.common.windows import Correlation
from ...core.machine.language import prange
from ...core.machine.loops import loop
from ...core.machine.pool import PIECES
from ...core.types.context import Context
from . import correlation, packed, products
from .followers import NOTHING, After
from .panels import FEW_PANELS
from .pieces import copy, lie_well, writable
from .tile import MOST_ROWS, PANEL_BYTES

LARGEST_FILTERS = 2**62
"""There is no limit: gradients of filters are not summed in parts where there are many weights."""

LEAST_CHANNELS, LEAST_PIXELS = 32, 32
"""The fewest channels on either side, and pixels of all results of a filter, for which products pay."""


@loop("R1 R1 (3)")
def _join(joined: Any, x: Any, shape: Any) -> None:
    """Copy the pixels of images, so that those of a channel lie side by side."""
    images, channels, pixels = shape
    for number in prange(images * channels):
        image, channel = number // channels, number % channels
        copy(joined, (channel * images + image) * pixels, x, number * pixels, pixels)


def fits(g: Correlation, rows: int) -> bool:
    """Whether so many images are correlated faster by the functions here."""
    w = g.windows
    is_pointwise = g.groups == 1 and not g.over_channels and size_of(w.kernel) == 1 and max(w.lower) <= 0
    return is_pointwise and min(g.channels, g.maps) >= LEAST_CHANNELS and rows * size_of(w.out) >= LEAST_PIXELS


def correlate(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation, after: After = NOTHING) -> None:
    """See :func:`.correlation.correlate`."""
    bound_correlation(ctx, out, filters, operand, g, after)()


def bound_correlation(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation, after: After = NOTHING) -> Callable[[], None]:
    """See :func:`.correlation.bound_correlation`."""
    if not lie_well(out, filters, operand, after):
        return correlation.bound_correlation(ctx, out, filters, operand, g, after)
    weights = filters.reshape(g.maps, g.channels)
    if _skips_nothing(g):
        return _bound_product(ctx, weights, _pixels(operand), _pixels(out), after)
    gathered = _gathered(ctx, operand, g)
    multiply = _bound_product(ctx, weights, _pixels(gathered), _pixels(out), after)

    def call() -> None:
        np.copyto(gathered, operand[_seen(g)])
        multiply()

    return call


def _bound_product(ctx: Context, weights: Any, pixels: Any, out: Any, after: After) -> Callable[[], None]:
    """A function that multiplies filters by the pixels of each image; of one image of few pixels threads share the filters."""
    (images, maps, n), pieces = out.shape, PIECES * max_threads()
    if images == 1 and max_threads() > 1 and n * out.itemsize < pieces * FEW_PANELS * PANEL_BYTES and maps >= pieces * MOST_ROWS:
        return packed.bound_by_rows(ctx, weights, pixels[0], out[0], after)
    return products.bound(ctx, weights, pixels, out, after, of_rows=True)


def correlate_backward(ctx: Context, grad: Any, filters_grad: Any, operand_grad: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """See :func:`.correlation.correlate_backward`."""
    if operand_grad is not None:
        _send_back(ctx, operand_grad, filters, _pixels(grad), g)
    if filters_grad is not None:
        sum_up(ctx, filters_grad.reshape(g.maps, g.channels), _pixels(grad), _left(ctx, operand, g))


def _send_back(ctx: Context, operand_grad: Any, filters: Any, grad: Any, g: Correlation) -> None:
    turned = filters.reshape(g.maps, g.channels).T
    if _skips_nothing(g):
        products.bound(ctx, turned, grad, _pixels(operand_grad))()
        return
    of_left = ctx.scratch("pixels", (len(grad), g.channels, grad.shape[2]), grad.dtype)
    products.bound(ctx, turned, grad, of_left)()
    operand_grad[...] = 0
    seen = operand_grad[_seen(g)]
    np.copyto(seen, of_left.reshape(seen.shape))


def is_one_product(maps: int, seen: int, pixels: int) -> bool:
    """Whether copies of both operands of a product for all images take less memory than the results of one for each image."""
    return pixels * (maps + seen) < maps * seen


def sum_up(ctx: Context, filters_grad: Any, grad: Any, operand: Any) -> None:
    """Write the gradient of filters.

    Args:
        filters_grad: an array ``(maps, seen)``.
        grad: the results' gradient, ``(images, maps, pixels)``.
        operand: what filters see, ``(images, seen, pixels)``.
    """
    images, maps, pixels = grad.shape
    if is_one_product(maps, operand.shape[1], pixels):
        left, right = (_joined(ctx, name, array) for name, array in (("gradients", grad), ("images", operand)))
        products.bound(ctx, left, right.T, filters_grad)()
        return
    totals = ctx.scratch("parts of the filters' gradient", (images, *filters_grad.shape), grad.dtype)
    products.bound(ctx, grad, operand.swapaxes(1, 2), totals)()
    ctx.sum_to(totals, filters_grad)


def _joined(ctx: Context, name: str, array: Any) -> Any:
    """The pixels of all images side by side, a row for each channel."""
    images, channels, pixels = array.shape
    by_channel = array.swapaxes(0, 1)
    if by_channel.flags.c_contiguous:
        return by_channel.reshape(channels, -1)
    joined = ctx.scratch(f"{name} side by side", (channels, images, pixels), array.dtype)
    flat = writable(ctx, name, array).reshape(-1)
    _join.run(flat.size >= thresholds.elements_shared, joined.reshape(-1), flat, array.shape)
    return joined.reshape(channels, -1)


def _left(ctx: Context, operand: Any, g: Correlation) -> Any:
    """The pixels that strides do not skip."""
    if _skips_nothing(g):
        return _pixels(operand)
    gathered = _gathered(ctx, operand, g)
    np.copyto(gathered, operand[_seen(g)])
    return _pixels(gathered)


def _gathered(ctx: Context, operand: Any, g: Correlation) -> Any:
    """Memory for them."""
    return ctx.scratch("pixels", (len(operand), g.channels, *g.windows.out), operand.dtype)


def _skips_nothing(g: Correlation) -> bool:
    return g.windows.dims == g.windows.out


def _seen(g: Correlation) -> tuple[Any, ...]:
    """Where the pixels that are left lie."""
    w = g.windows
    axes = zip(w.lower, w.strides, w.out, strict=True)
    return slice(None), slice(None), *(slice(-lower, (out - 1) * stride - lower + 1, stride) for lower, stride, out in axes)


def _pixels(images: Any) -> Any:
    """Images ``(images, channels, pixels)``."""
    return images.reshape(*images.shape[:2], -1)
