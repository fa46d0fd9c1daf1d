"""Pooling of regions of interest to one size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ...core.common.shape import as_shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec
from .pooling import MAX


class ROIPooling(Op):
    """Maxima over the parts of regions, each region cut into a grid of parts."""

    op_name = "ROIPooling"
    by_rows = False
    keep_inputs = ()
    gradient_inputs = (0,)

    def infer(self, x: Spec, rois: Spec) -> Spec:
        if x.rank != 3 or rois.rank != 2 or rois.dims[-1] not in (4, -1, -3):
            raise ValueError(f"expected an operand (channels, height, width) and regions (n, 4), got the shapes {x.dims} and {rois.dims}")
        if len(self.roi_output_shape) != 2 or min(self.roi_output_shape) < 1:
            raise ValueError(f"roi_output_shape={self.roi_output_shape} must be (height, width), both positive")
        return self.common(x, rois).but(shape=(rois.dims[0], x.dims[0], *self.roi_output_shape))

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        x = inputs[0].reshape(-1, *inputs[0].shape[-3:])
        images, channels, height, width = x.shape
        rois = inputs[1].reshape(-1, 4)
        if ctx.layouts[1] is None:
            rois = xp.tile(rois, (images, 1))
        # Channels last, so that one index serves them all.
        pixels = ctx.scratch("pixels", (images, height, width, channels), x.dtype)
        xp.copyto(pixels, x.transpose(0, 2, 3, 1))
        places = ctx.keep("places", (len(rois), *self.roi_output_shape, channels), np.int32)
        maxima = ctx.scratch("maxima", places.shape, x.dtype)
        first = xp.arange(len(rois)) * images // max(len(rois), 1) * height * width
        self._search(ctx, maxima, places, pixels.reshape(-1, channels), rois, first, (height, width))
        xp.copyto(maxima, 0, where=places < 0)
        xp.copyto(out.reshape(-1, channels, *self.roi_output_shape), maxima.transpose(0, 3, 1, 2))

    def _search(self, ctx: Context, maxima: Any, places: Any, pixels: Any, rois: Any, first: Any, size: tuple[int, int]) -> None:
        """Find the maximum of each part, of shape (regions, rows, columns, channels), and its pixel: -1 where a part is empty."""
        xp = ctx.xp
        (top, bottom), (left, right) = (
            self._parts(xp, rois[:, axis], rois[:, axis + 2], parts, dim)
            for axis, parts, dim in ((1, self.roi_output_shape[0], size[0]), (0, self.roi_output_shape[1], size[1]))
        )
        maxima.fill(-np.inf)
        places.fill(-1)
        value = ctx.scratch("value", maxima.shape, maxima.dtype)
        filled = ((bottom > top)[:, :, None] & (right > left)[:, None, :])[..., None]
        for row, column in product(range(_longest(top, bottom)), range(_longest(left, right))):
            y = xp.clip(xp.minimum(top + row, bottom - 1), 0, size[0] - 1)
            x = xp.clip(xp.minimum(left + column, right - 1), 0, size[1] - 1)
            place = first[:, None, None] + y[:, :, None] * size[1] + x[:, None, :]
            xp.take(pixels, place, axis=0, out=value, mode="clip")
            greater = ((value > maxima) | (places < 0)) & filled
            xp.copyto(maxima, value, where=greater)
            xp.copyto(places, place[..., None], where=greater, casting="same_kind")

    def _parts(self, xp: Any, start: Any, end: Any, parts: int, dim: int) -> tuple[Any, Any]:
        """First pixel, and the one behind the last, of each part of each region along one axis: arrays of shape (regions, parts)."""
        begin = _rounded(xp, start, self.spatial_scale)
        extent = xp.maximum(_rounded(xp, end, self.spatial_scale) - begin + 1, 1)[:, None]
        part = xp.arange(parts)
        lower = begin[:, None] + part * extent // parts
        upper = begin[:, None] - (-(part + 1) * extent // parts)
        return xp.clip(lower, 0, dim), xp.clip(upper, 0, dim)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp = ctx.xp
        dx = grads[0].reshape(-1, *grads[0].shape[-3:])
        images, channels, height, width = dx.shape
        grad = grad.reshape(-1, channels, *self.roi_output_shape).transpose(0, 2, 3, 1)
        places = ctx.keep("places", grad.shape, np.int32)
        pixels = ctx.scratch("pixels", (images, height, width, channels), dx.dtype)
        pixels.fill(0)
        values = xp.where(places < 0, 0, grad)
        element = xp.maximum(places, 0).astype(np.intp) * channels + xp.arange(channels)
        xp.add.at(pixels.reshape(-1), element.reshape(-1), values.reshape(-1))
        xp.copyto(dx, pixels.transpose(0, 3, 1, 2))


def _rounded(xp: Any, coordinate: Any, scale: float) -> Any:
    """The pixel of a coordinate, halves away from zero."""
    scaled = coordinate.astype(np.float64) * scale
    return xp.trunc(scaled + xp.copysign(0.5, scaled)).astype(np.intp)


def _longest(start: Any, end: Any) -> int:
    return max(int((end - start).max()), 0) if end.size else 0


def _expected(scale: float, height: int, width: int) -> Any:
    """An independent pooling of one sample's regions."""

    def pool(x: Any, rois: Any) -> Any:
        result = np.zeros((len(rois), len(x), height, width))
        for index, roi in enumerate(rois):
            x1, y1, x2, y2 = (int(np.floor(value * scale + 0.5)) for value in roi)
            for row, column in np.ndindex(height, width):
                tall, wide = (y2 - y1 + 1) / height, (x2 - x1 + 1) / width
                rows = slice(y1 + int(np.floor(row * tall)), y1 + int(np.ceil((row + 1) * tall)))
                columns = slice(x1 + int(np.floor(column * wide)), x1 + int(np.ceil((column + 1) * wide)))
                result[index, :, row, column] = x[:, rows, columns].max(axis=(1, 2))
        return result

    return pool


REGIONS = Operand(np.array([[0, 0, 6, 5], [1, 2, 4, 3]]), kind="static", gradient=False)


@operator(
    sample((2, 6, 7), REGIONS, pooling_type=MAX, roi_output_shape=(2, 3), spatial_scale=1.0, expected=_expected(1, 2, 3)),
    sample((2, 4, 5), REGIONS, pooling_type=MAX, roi_output_shape=(2, 2), spatial_scale=0.5, expected=_expected(0.5, 2, 2)),
)
def roipooling(
    operand: TensorLike, rois: TensorLike, pooling_type: int, roi_output_shape: int | Sequence[int], spatial_scale: float, name: str = ""
) -> Function:
    """Cut regions of interest into grids and take the maximum of each part, which brings regions of any size to one shape.

    After Girshick, "Fast R-CNN" (2015): parts may share pixels at their borders; a part outside the operand gives 0.

    Args:
        operand: feature maps of shape (channels, height, width), with any dynamic axes.
        rois: n regions (x1, y1, x2, y2), both corners belonging to them, in pixels of the image that the feature maps come from.  No
            gradient flows to them.
        pooling_type: ``MAX_POOLING``.
        roi_output_shape: (height, width) of the grid.
        spatial_scale: size of the feature maps divided by that of the image; scaled corners are rounded, halves away from zero.
        name: name of the function.

    Returns:
        Function: shape (n, channels, height, width) with the grid's height and width, and the operands' dynamic axes.

    Raises:
        ValueError: the shapes are no feature maps and regions, or the type is not ``MAX_POOLING``.

    Example:
        >>> x = C.input_variable((1, 3, 4))
        >>> regions = C.constant(np.array([[0, 0, 3, 1]], dtype=np.float32))
        >>> y = C.roipooling(x, regions, C.MAX_POOLING, roi_output_shape=(1, 2), spatial_scale=1.0)
        >>> y.eval({x: np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)})
        array([[[[[5., 7.]]]]], dtype=float32)
    """
    if pooling_type != MAX:
        raise ValueError(f"ROIPooling: pooling_type={pooling_type!r} must be MAX_POOLING ({MAX})")
    op = ROIPooling(pooling_type=pooling_type, roi_output_shape=as_shape(roi_output_shape), spatial_scale=spatial_scale)
    return op(operand, rois, name=name)
