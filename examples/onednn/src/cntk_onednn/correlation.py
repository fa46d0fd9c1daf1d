"""Correlation of filters with images, and its gradients, by oneDNN's convolutions.

These choose the formats of what they read and write, mostly blocks of sixteen channels.  Arrays are brought there and back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any

from cntk.core.common.windows import Correlation
from cntk.extend import Context

from . import library as dnn
from .library import Dims
from .primitives import Border, Descriptor, Primitive, attributes, engine, free, plain, threads_of_calls

PLANS = 256
"""Geometries whose primitives a thread keeps."""

IMAGES, FILTERS, RESULT = range(3)
"""The three arrays of a convolution, or their gradients."""

NAMES = "oneDNN's images", "oneDNN's filters", "oneDNN's result"


class Filtering:
    """One of the three computations: a primitive and its borders.

    Args:
        descriptor: the library's description of the primitive.
        arguments: its numbers of images, filters and result.
        computed: which of the three it writes.
        formats: the formats of the arrays that come and go.
    """

    def __init__(self, descriptor: Descriptor, arguments: tuple[int, int, int], computed: int, formats: list[Any]) -> None:
        self.primitive = Primitive(descriptor, *arguments)
        self._computed = computed
        self.borders = [Border(formats[which], self.primitive, argument, which == computed) for which, argument in enumerate(arguments)]

    def enter(self, ctx: Context, which: int, array: Any) -> Any:
        """Bring an array to the primitive's format."""
        return self.borders[which].enter(ctx, NAMES[which], array)

    def __call__(self, ctx: Context, computed: Any, *entered: Any) -> None:
        """Write *computed*, given the other two as they have entered."""
        border = self.borders[self._computed]
        inner = border.inside(ctx, NAMES[self._computed], computed)
        arrays = list(entered)
        arrays.insert(self._computed, inner)
        self.primitive(ctx, *arrays)
        border.leave(ctx, inner, computed)


class Plan:
    """The computations for so many images of one geometry, made when they are first asked for.

    Args:
        g: the geometry.
        rows: number of images.
        threads: how many share the work; the caller has told OpenMP so.
    """

    def __init__(self, g: Correlation, rows: int, threads: int) -> None:
        w = g.windows
        groups = (g.groups,) if g.groups > 1 else ()
        filters = (*groups, g.maps // g.groups, g.channels // g.groups, *w.kernel)
        shapes = (rows, g.channels, *w.dims), filters, (rows, g.maps, *w.out)
        gaps = [dilation - 1 for dilation in w.dilation]
        self._plain, self._free = [plain(shape) for shape in shapes], [free(shape) for shape in shapes]
        self._slides = [Dims(*numbers) for numbers in (w.strides, gaps, w.lower, w.upper)]
        images, weights, result = self._free
        what = "dnnl_convolution_forward_primitive_desc_create", engine(), dnn.FORWARD_TRAINING, dnn.DIRECT
        self._forward = Descriptor(*what, images, weights, None, result, *self._slides, attributes())

    @cached_property
    def forward(self) -> Filtering:
        """What computes results."""
        return Filtering(self._forward, (dnn.SOURCE, dnn.WEIGHTS, dnn.RESULT), RESULT, self._plain)

    @cached_property
    def images(self) -> Filtering:
        """What computes the gradient of the images."""
        what = "dnnl_convolution_backward_data_primitive_desc_create", engine(), dnn.DIRECT
        descriptor = Descriptor(*what, *self._free, *self._slides, self._forward, attributes())
        return Filtering(descriptor, (dnn.SOURCE_GRADIENT, dnn.WEIGHTS, dnn.RESULT_GRADIENT), IMAGES, self._plain)

    @cached_property
    def filters(self) -> Filtering:
        """What computes the gradient of the filters."""
        images, weights, result = self._free
        what = "dnnl_convolution_backward_weights_primitive_desc_create", engine(), dnn.DIRECT
        descriptor = Descriptor(*what, images, weights, None, result, *self._slides, self._forward, attributes())
        return Filtering(descriptor, (dnn.SOURCE, dnn.WEIGHTS_GRADIENT, dnn.RESULT_GRADIENT), FILTERS, self._plain)

    @cached_property
    def share_result(self) -> bool:
        """Whether both gradients read the result's in one format."""
        return self.images.borders[RESULT].agrees_with(self.filters.borders[RESULT])


class _Plans(threading.local):
    """The plans of a thread of Python: which arrays primitives work on is said just before they run."""

    def __init__(self) -> None:
        self.get = lru_cache(maxsize=PLANS)(Plan)


_plans = _Plans()


@contextmanager
def _planned(g: Correlation, rows: int) -> Iterator[Plan]:
    with threads_of_calls() as threads:
        yield _plans.get(g, rows, threads)


def correlate(ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the correlation of *filters* with *operand* into *out*, as the operators' own function does."""
    with _planned(g, len(operand)) as plan:
        compute = plan.forward
        compute(ctx, out, compute.enter(ctx, IMAGES, operand), compute.enter(ctx, FILTERS, filters))


def correlate_backward(ctx: Context, grad: Any, filters_grad: Any, operand_grad: Any, filters: Any, operand: Any, g: Correlation) -> None:
    """Write the gradients of the filters and of the operand, as the operators' own function does."""
    with _planned(g, len(grad)) as plan:
        entered = None
        if operand_grad is not None:
            compute = plan.images
            entered = compute.enter(ctx, RESULT, grad)
            compute(ctx, operand_grad, compute.enter(ctx, FILTERS, filters), entered)
        if filters_grad is not None:
            compute = plan.filters
            if entered is None or not plan.share_result:
                entered = compute.enter(ctx, RESULT, grad)
            compute(ctx, filters_grad, compute.enter(ctx, IMAGES, operand), entered)
