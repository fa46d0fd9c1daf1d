"""The geometry of windows that slide over the trailing axes of an array, for convolution and pooling.

Along one axis of size d a window of k elements, s apart from the next, starts ``lower`` elements before the first one.  Automatic
padding gives ceil(d / s) windows, whose centres (the left one of two) lie in the middle of the axis::

    d = 6, k = 4, s = 2          . 0 1 2 3 4 5 . .
    lower = 1, upper = 2         [-+---]
                                     [-+---]
                                         [-+---]

Large strides may leave so many elements beside the centres that windows start behind the first one: ``lower`` is negative.

Dimensions that are not known yet (negative ones) stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from .cached_property import cached_property
from .shape import Shape, size_of


@dataclass(frozen=True)
class Windows:
    """Windows of one size that slide over an array's trailing axes.

    Attributes:
        dims: sizes of the axes.
        kernel: elements of a window along each axis.
        strides: distance from a window to the next.
        dilation: distance between the elements of a window.
        lower: padding before each axis; negative where windows leave out first elements.
        upper: padding behind each axis, as far as windows reach; 0 where they do not reach the end.
        out: number of windows along each axis.
    """

    dims: Shape
    kernel: Shape
    strides: Shape
    dilation: Shape
    lower: Shape
    upper: Shape
    out: Shape

    @cached_property
    def is_padded(self) -> bool:
        """Whether windows reach into padding."""
        return any(self.lower) or any(self.upper)

    @cached_property
    def meet_elements(self) -> bool:
        """Whether every window meets an element of the array, where they are not dilated."""
        axes = zip(self.out, self.strides, self.lower, self.dims, self.kernel, strict=True)
        return all(kernel > lower and (out - 1) * stride - lower < dim for out, stride, lower, dim, kernel in axes)

    @cached_property
    def padded(self) -> Shape:
        """Sizes of the axes with their padding."""
        return tuple(lower + dim + upper for lower, dim, upper in zip(self.lower, self.dims, self.upper, strict=True))

    @cached_property
    def steps(self) -> Shape:
        """Distances in memory, in elements, between neighbours along each axis of an array of the padded size."""
        return tuple(size_of(self.padded[axis + 1 :]) for axis in range(len(self.padded)))

    @cached_property
    def inside(self) -> tuple[slice, ...]:
        """Where the array lies within its padding."""
        return tuple(slice(max(lower, 0), lower + dim) for lower, dim in zip(self.lower, self.dims, strict=True))

    @cached_property
    def seen(self) -> tuple[slice, ...]:
        """The part of the array that lies within its padding: all, unless windows leave out first elements."""
        return tuple(slice(max(-lower, 0), dim) for lower, dim in zip(self.lower, self.dims, strict=True))

    @cached_property
    def moving(self) -> Windows:
        """The same windows without the leading axes along which they do nothing."""
        lead = 0
        while lead < len(self.kernel) - 1 and self.kernel[lead] == self.strides[lead] == 1:
            lead += 1
        return Windows(*(getattr(self, field.name)[lead:] for field in fields(self)))


def per_axis(values: Sequence[Any], rank: int, what: str) -> tuple[Any, ...]:
    """One value for each of *rank* axes: a shorter list is filled up in front with its first value.

    Raises:
        ValueError: there are more values than axes, or none.
    """
    if not 0 < len(values) <= rank:
        raise ValueError(f"{what} {tuple(values)} has {len(values)} values for {rank} axes; give one for each axis, or one for all")
    return (values[0],) * (rank - len(values)) + tuple(values)


def as_flags(values: bool | Sequence[bool]) -> tuple[bool, ...]:
    """Flags for axes as a tuple; a single one is for all axes."""
    return (values,) if isinstance(values, bool) else tuple(bool(value) for value in values)


def along_axes(
    strides: Shape, dilation: Shape, padding: tuple[bool, ...], rank: int, reduction_rank: int
) -> tuple[Shape, Shape, tuple[bool, ...]]:
    """Strides, dilation and padding of a convolution for each of *rank* axes, channels first.

    Args:
        strides, dilation, padding: as the user gives them: for these axes, or without channels if *reduction_rank* is 0, when a value for
            channels makes no difference.
    """
    if reduction_rank == 0:
        return (
            (1, *_per_spatial_axis(strides, rank, "strides")),
            (1, *_per_spatial_axis(dilation, rank, "dilation")),
            (False, *_per_spatial_axis(padding, rank, "auto_padding")),
        )
    # One dilation for all axes is meant for the window, not for the channels.
    dilation = (1, *per_axis(dilation, rank - 1, "dilation")) if len(dilation) < rank else dilation
    return per_axis(strides, rank, "strides"), dilation, per_axis(padding, rank, "auto_padding")


def _per_spatial_axis(values: Sequence[Any], rank: int, what: str) -> tuple[Any, ...]:
    return per_axis(values[1:] if len(values) == rank else values, rank - 1, what)


@lru_cache(maxsize=1024)
def windows(dims: Shape, kernel: Shape, strides: Shape, dilation: Shape, padding: tuple[bool, ...], ceil: bool = False) -> Windows:
    """Windows over axes of sizes *dims*; with *ceil* the last one may reach beyond the end.

    Raises:
        ValueError: a stride or dilation is not positive, or a window is larger than its axis.
    """
    if any(value < 1 for value in (*strides, *dilation)):
        raise ValueError(f"strides {strides} and dilation {dilation} must be positive")
    axes = [_along(*axis, ceil) for axis in zip(dims, kernel, strides, dilation, padding, strict=True)]
    lower, upper, out = zip(*axes, strict=True)
    return Windows(dims, kernel, strides, dilation, lower, upper, out)


def _along(dim: int, kernel: int, stride: int, dilation: int, padded: bool, ceil: bool) -> tuple[int, int, int]:
    """Padding before, padding behind and number of windows along one axis."""
    if dim < 0:
        return 0, 0, dim
    span = (kernel - 1) * dilation + 1
    if not 1 <= kernel <= dim or (span > dim and not padded):
        apart = f", {dilation} apart," if dilation > 1 else ""
        hint = "axes are (channels, *axes of the image)" + ("" if padded else ", and pad=True puts zeros around them")
        raise ValueError(f"a window of {kernel} elements{apart} does not fit an axis of {dim}; {hint}")
    last = dim - 1 if padded else dim - span
    out = (last + stride - 1 if ceil else last) // stride + 1
    beside = dim - 1 - (out - 1) * stride
    before = (span - 1) // 2 - int(beside / 2) if padded else 0
    return before, max((out - 1) * stride + span - before - dim, 0), out


def unslide(out: int, kernel: int, stride: int, dilation: int, padded: bool) -> int:
    """The smallest axis over which *out* windows slide: the result of a transposed convolution along an axis of size *out*."""
    if out < 0:
        return out
    return (out - 1) * stride + (1 if padded else (kernel - 1) * dilation + 1)


@dataclass(frozen=True)
class Correlation:
    """Geometry of a convolution, with shapes in a common form.

    Where filters slide over the channels, rather than sum over them, the channels are one more axis of *windows*, the first,
    and the operand counts as having one channel.

    Attributes:
        groups: how many parts the channels fall into, each with filters of its own.
        channels: channels of the operand, which is (rows, channels, *windows.dims).
        maps: filters, and channels of the result, which is (rows, maps, *windows.out).
        windows: how the filters slide.
        over_channels: whether they slide over the channels, too.
    """

    groups: int
    channels: int
    maps: int
    windows: Windows
    over_channels: bool

    @cached_property
    def weights(self) -> Shape:
        """Shape of the filters: groups, filters of a group, weights of a filter."""
        return self.groups, self.maps // self.groups, self.channels // self.groups * size_of(self.windows.kernel)

    @cached_property
    def shape(self) -> Shape:
        """Static shape of the result, in which windows over channels are channels."""
        out = self.windows.out
        if not self.over_channels:
            return self.maps, *out
        return self.maps * out[0] if min(self.maps, out[0]) > 0 else min(self.maps, out[0]), *out[1:]


@lru_cache(maxsize=1024)
def correlation(
    maps: int, kernel: Shape, operand: Shape, strides: Shape, dilation: Shape, padding: tuple[bool, ...], groups: int
) -> Correlation:
    """Geometry of *maps* filters of shape *kernel* over an *operand*; the first axis of all is the channels.

    Raises:
        ValueError: the shapes are incompatible.
    """
    channels = operand[0]
    if groups < 1 or maps % groups:
        raise ValueError(f"groups={groups} must be positive and divide the {maps} filters")
    if groups > 1 and kernel[0] * groups != channels >= 0:
        raise ValueError(
            f"{groups} groups of filters of {kernel[0]} channels need {groups * kernel[0]} channels, but the operand has {channels}"
        )
    summed = channels < 0 or kernel[0] * groups == channels
    if summed and (channels == 1 or not padding[0]):
        spatial = windows(operand[1:], kernel[1:], strides[1:], dilation[1:], padding[1:])
        return Correlation(groups, channels, maps, spatial, False)
    return Correlation(1, 1, maps, windows(operand, kernel, strides, dilation, padding), True)
