"""Writes pooling with explicit padding, and unpooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.common.dtypes import limits_of
from .....core.common.shape import FreeDimension, is_concrete, size_of
from .....core.common.windows import Windows, per_axis
from ....ops.pooling import MAX
from .convolution import pad, padded
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def pooling(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the maximum or average of windows."""
    w = op.windows(x.shape).moving
    padding = per_axis(op.auto_padding, len(x.shape), "auto_padding")[-len(w.dims) :]
    images = _images(to, x, len(w.dims))
    settings = {"kernel_shape": w.kernel, "strides": w.strides}
    if op.pooling_type == MAX:
        images, pads = _padded(to, images, w, padding, -np.inf, x.dtype)
        made = str(to.node("MaxPool", images, pads=pads, **settings))
        if is_concrete(w.dims) and not w.meet_elements:  # of padding alone programs make the least number there is
            nothing = to.node("Equal", made, to.constant(limits_of(x.dtype).min, x.dtype))
            made = str(to.node("Where", nothing, to.constant(-np.inf, x.dtype), made))
    elif op.include_pad:
        images, pads = _padded(to, images, w, padding, 0, x.dtype)
        made = to.single("AveragePool", x.dtype, images, pads=pads, count_include_pad=1, **settings)
    else:
        filled, pads = _padded(to, images, w, padding, 0, x.dtype)
        made = to.single("AveragePool", x.dtype, filled, pads=pads, **settings)
        if filled != images:  # numbers put in must not count
            ones = to.node("Expand", to.constant(1, x.dtype), to.node("Shape", images))
            share, _ = _padded(to, str(ones), w, padding, 0, x.dtype)
            made = str(to.node("Div", made, to.single("AveragePool", x.dtype, share, pads=pads, **settings)))
    if x.leading == 1 and len(x.shape) == len(w.dims) + 1:
        return made
    return to.split(made, x, to.result.shape, 2 + len(w.dims) - len(x.shape))


def unpooling(op: Any, to: ModelWriter, values: Value, pooled: Value) -> str:
    """Write values put back to where the maxima of windows are."""
    w = op.windows(pooled.shape).moving
    padding = per_axis(op.auto_padding, len(pooled.shape), "auto_padding")[-len(w.dims) :]
    pooled, values = (to.spread(one, to.result.axes) for one in (pooled, values))
    images = _images(to, pooled, len(w.dims))
    filled, pads = _padded(to, images, w, padding, -np.inf, pooled.dtype)
    settings = {"kernel_shape": w.kernel, "strides": w.strides, "pads": pads}
    _, places = to.node("MaxPool", filled, outputs=2, **settings)
    put = _images(to, values, len(w.dims))
    size = to.node("Shape", filled)
    made = to.single("MaxUnpool", values.dtype, put, integers=(places, size), **settings)
    if filled != images:
        if not is_concrete(w.dims):
            raise ValueError("save: ONNX files cannot have unpooling that pads free dimensions where strides are larger than 1")
        made = pad(to, made, [-one for one in w.lower], [-one for one in w.upper], 0, values.dtype)
    return to.split(made, pooled, to.result.shape, 2 + len(w.dims) - len(pooled.shape))


def _padded(to: ModelWriter, images: str, w: Windows, padding: tuple[bool, ...], fill: float, dtype: Any) -> tuple[str, list[int]]:
    """Images and their padding; padding as large as a window is numbers, since programs refuse that."""
    if any(pad >= kernel for pads in (w.lower, w.upper) for pad, kernel in zip(pads, w.kernel, strict=True)):
        return pad(to, images, list(w.lower), list(w.upper), fill, dtype), [0] * 2 * len(w.dims)
    return padded(to, images, w, padding, fill, dtype)


def _images(to: ModelWriter, x: Value, rank: int) -> str:
    """The operand as samples of channels and *rank* axes of places; all axes in front of these are channels."""
    channels, places = x.shape[: len(x.shape) - rank], x.shape[len(x.shape) - rank :]
    if len(channels) == 1:
        return to.merged(x)
    if FreeDimension in channels:
        raise ValueError("save: ONNX files cannot have pooling of several axes in front of the windows' where these are free")
    if not channels:
        return to.unsqueeze(to.merged(x), [1])
    merged = to.merged(x)
    names: list[int | str] = [size if size >= 0 else to.size(merged, 1 + len(channels) + i) for i, size in enumerate(places)]
    return to.reshape(merged, [0, size_of(channels), *names])
