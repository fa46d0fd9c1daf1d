"""Writes convolutions, and their transposes, with explicit padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.common.shape import is_concrete
from .....core.common.windows import Windows, along_axes
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def convolution(op: Any, to: ModelWriter, filters: Value, x: Value) -> str:
    """Write a convolution.  Filters that slide over the channels as well have one axis more to slide over."""
    g = op.geometry(filters.shape, x.shape)
    w = g.windows
    padding = _padding(op, len(x.shape))[-len(w.dims) :]
    images, pads = padded(to, _images(to, x, (g.channels, *w.dims)), w, padding, 0, x.dtype)
    weights = to.with_static(filters, [g.maps, g.channels // g.groups, *w.kernel])
    made = to.single(
        "Conv",
        x.dtype,
        images,
        weights,
        kernel_shape=w.kernel,
        strides=w.strides,
        dilations=w.dilation,
        group=g.groups,
        pads=pads,
    )
    if x.leading == 1 and to.result.shape == (g.maps, *w.out):
        return made
    return to.split(made, x, to.result.shape, 2 if g.over_channels else 1)


def transposed(op: Any, to: ModelWriter, filters: Value, x: Value) -> str:
    """Write the transpose of a convolution.  Where windows leave elements at an end these are put in."""
    g = op.geometry(filters.shape, x.shape)
    w = g.windows
    lower, upper, missing = list(w.lower), list(w.upper), [0] * len(w.dims)
    padding = _padding(op, len(x.shape))[1:]
    for i, (dim, out, stride) in enumerate(zip(w.dims, w.out, w.strides, strict=True)):
        span = (w.kernel[i] - 1) * w.dilation[i] + 1
        if dim >= 0:
            missing[i] = max(dim - ((out - 1) * stride + span - lower[i]), 0)
        elif padding[i]:
            lower[i], upper[i] = (span - 1) // 2, span // 2
    made = to.single(
        "ConvTranspose",
        x.dtype,
        _images(to, x, (g.maps, *w.out)),
        to.with_static(filters, [g.maps, g.channels, *w.kernel]),
        kernel_shape=w.kernel,
        strides=w.strides,
        dilations=w.dilation,
        pads=[max(one, 0) for one in lower] + upper,
        output_padding=[behind if front >= 0 else 0 for behind, front in zip(missing, lower, strict=True)],
    )
    fronts = [max(-one, 0) for one in lower]
    if any(fronts):
        behind = [number if front else 0 for front, number in zip(fronts, missing, strict=True)]
        made = pad(to, made, fronts, behind, 0, x.dtype)
    if x.leading == 1 and to.result.shape == (g.channels, *w.dims):
        return made
    return to.split(made, x, to.result.shape)


def _padding(op: Any, rank: int) -> tuple[bool, ...]:
    """For each axis, channels first, whether it is padded; time is padded before filters slide over it."""
    padding = along_axes(op.strides, op.dilation, op.auto_padding, rank + 1 - op.reduction_rank, op.reduction_rank)[2]
    return (padding[0], False, *padding[2:]) if op.sequential else padding


def _images(to: ModelWriter, x: Value, shape: tuple[int, ...]) -> str:
    """The operand as samples of channels and places, an axis each."""
    images = to.merged(x)
    return images if len(shape) == len(x.shape) else to.unsqueeze(images, [1])


def padded(to: ModelWriter, images: str, w: Windows, padding: tuple[bool, ...], fill: float, dtype: Any) -> tuple[str, list[int]]:
    """Images, and how much of padding windows over them have in front and behind.

    Windows that leave out first elements, or of which the padding is known with the data, get it here as numbers.

    Args:
        to: the model.
        images: name of the samples, of channels and places.
        w: the windows.
        padding: for each axis whether it is padded where its size is known with the data.
        fill: the numbers in the padding.
        dtype: their type.
    """
    spans = [(kernel - 1) * dilation + 1 for kernel, dilation in zip(w.kernel, w.dilation, strict=True)]
    lower, upper = list(w.lower), list(w.upper)
    if not is_concrete(w.dims):
        for i, dim in enumerate(w.dims):
            if dim < 0 and padding[i]:
                lower[i], upper[i] = (spans[i] - 1) // 2, spans[i] // 2
        if any(dim < 0 and flag and stride > 1 for dim, flag, stride in zip(w.dims, padding, w.strides, strict=True)):
            return _padded_by_size(to, images, w, padding, (lower, upper), fill, dtype), [0] * 2 * len(lower)
    if min(lower, default=0) >= 0:
        return images, lower + upper
    return pad(to, images, lower, upper, fill, dtype), [0] * 2 * len(lower)


def pad(to: ModelWriter, images: str, lower: list[int], upper: list[int], fill: float, dtype: Any) -> str:
    """Images with padding; where it is negative elements are left out."""
    return str(to.node("Pad", images, to.integers(0, 0, *lower, 0, 0, *upper), to.constant(fill, dtype)))


def _padded_by_size(
    to: ModelWriter, images: str, w: Windows, padding: tuple[bool, ...], known: tuple[list[int], list[int]], fill: float, dtype: Any
) -> str:
    """Images with padding of which the size follows from theirs: half of what strides leave beside the last window is in front of it."""
    before: list[int | str] = list(known[0])
    behind: list[int | str] = list(known[1])
    for i, stride in enumerate(w.strides):
        if w.dims[i] < 0 and padding[i] and stride > 1:
            span = (w.kernel[i] - 1) * w.dilation[i] + 1
            last = to.node("Sub", to.size(images, 2 + i), to.integers(1))
            beside = to.node("Mod", last, to.integers(stride))
            front = to.node("Sub", to.integers((span - 1) // 2), to.node("Div", beside, to.integers(2)))
            before[i] = front
            behind[i] = to.node("Sub", to.node("Sub", to.integers(span - 1), beside), front)
    return str(to.node("Pad", images, to.shape([0, 0, *before, 0, 0, *behind]), to.constant(fill, np.dtype(dtype))))
