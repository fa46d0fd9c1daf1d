"""Readers of operators whose windows slide over arrays: convolution, pooling, and interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product as all_of
from typing import Any, NamedTuple

import numpy as np

from .....core.common import windows as geometry
from .....core.common.dtypes import limits_of
from ....ops import convolution, maximum, pooling
from .arrays import (
    Array,
    Unsupported,
    batched,
    check_room,
    concat,
    elementwise,
    expand,
    known,
    made,
    matmul,
    normal,
    reshape,
    slice_,
    static,
    take,
    transpose,
)
from .elementary import select
from .importer import Operator
from .interpolation import interpolated, scaled
from .shapes import padded
from .sizes import Dim, Size, product, quotient


class Axis(NamedTuple):
    """How windows slide along an axis.

    Attributes:
        dim: its size.
        kernel, stride, dilation: elements of a window, from one window to the next, from one element to the next.
        head, foot: padding in front and behind, as the file says.
        out: number of windows.
        extra: what must be added behind so that the last window lies inside; negative where elements are left over.
    """

    dim: Dim
    kernel: int
    stride: int
    dilation: int
    head: int
    foot: int
    out: Dim
    extra: int

    @property
    def span(self) -> int:
        """Elements from the first of a window to the last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def is_automatic(self) -> bool:
        """Whether our own way of padding gives the same windows."""
        if isinstance(self.dim, Size):
            return False  # the axis may turn out shorter than the window
        try:
            w = geometry.windows((self.dim,), (self.kernel,), (self.stride,), (self.dilation,), (True,))
        except ValueError:
            return False
        return (w.lower, w.out) == ((self.head,), (self.out,))

    @property
    def is_padded(self) -> bool:
        return bool(self.head or self.foot + max(self.extra, 0))


def axes_of(node: Operator, dims: Sequence[Dim], kernel: Sequence[int], default_dilations: Sequence[int] | None = None) -> list[Axis]:
    """How windows slide along each of the last axes."""
    rank = len(kernel)
    if len(dims) != rank:
        raise Unsupported(f"windows of {rank} axes over an array of {len(dims)} beside samples and channels")
    strides, dilations = node.attribute("strides", [1] * rank), node.attribute("dilations", default_dilations or [1] * rank)
    pads, how = node.attribute("pads", [0] * (2 * rank)), node.attribute("auto_pad", "NOTSET")
    ceil = bool(node.attribute("ceil_mode", 0))
    if not (len(strides) == len(dilations) == rank and len(pads) == 2 * rank) or min([*strides, *dilations, *kernel], default=1) < 1:
        raise Unsupported(f"strides {strides}, dilations {dilations} and pads {pads} for windows of the shape {list(kernel)}")
    found = []
    for axis, dim in enumerate(dims):
        k, stride, dilation = kernel[axis], strides[axis], dilations[axis]
        head, foot, span = pads[axis], pads[axis + rank], (k - 1) * dilation + 1
        if how in ("SAME_UPPER", "SAME_LOWER"):
            head, foot = _same(dim, stride, span, how == "SAME_UPPER")
        elif how == "VALID":
            head = foot = 0
        room = dim + head + foot - span
        if not isinstance(room, Size) and room < 0 and not ceil:
            raise Unsupported(f"windows of {span} elements do not fit an axis of {dim}, with a padding of {head} and {foot}")
        out: Any = room // stride + 1
        if ceil and not isinstance(room, Size):
            out = -(-room // stride) + 1
            if how == "NOTSET" and isinstance(dim, int) and (out - 1) * stride >= dim + head:
                out -= 1
        elif ceil and stride != 1:
            raise Unsupported(f"ceil_mode for an axis of {dim} elements")
        extra = 0 if isinstance(room, Size) else (out - 1) * stride + span - (dim + head + foot)
        found.append(Axis(dim, k, stride, dilation, head, foot, out, extra))
    return found


def _same(dim: Dim, stride: int, span: int, upper: bool) -> tuple[int, int]:
    """The padding that gives as many windows as there are strides."""
    if isinstance(dim, Size):
        if stride != 1:
            raise Unsupported(f"auto_pad with strides of {stride} for an axis of {dim} elements")
        total = span - 1
    else:
        total = max((-(-dim // stride) - 1) * stride + span - dim, 0)
    return (total // 2, total - total // 2) if upper else (total - total // 2, total // 2)


def _pad_where_needed(x: Array, axes: Sequence[Axis], fill: float = 0.0) -> tuple[Array, list[bool]]:
    """The array, padded along those axes where our own way of padding does not do it; and for each axis whether it does."""
    automatic = [one.is_padded and one.is_automatic for one in axes]
    head = [0, 0, *(0 if own else one.head for one, own in zip(axes, automatic, strict=True))]
    foot = [0, 0, *(0 if own else one.foot + max(one.extra, 0) for one, own in zip(axes, automatic, strict=True))]
    return padded(x, head, foot, fill), automatic


# ---- convolution ---------------------------------------------------------------------------------


def read_conv(node: Operator, x: Array, w: Array, bias: Array | None = None) -> Array:
    axes = axes_of(node, x.dims[2:], [int(dim) for dim in w.dims[2:]])
    x, automatic = _pad_where_needed(batched(x), axes)
    made_of = convolution.convolution(
        _filters(w, x),
        x.held(),
        strides=[one.stride for one in axes],
        auto_padding=[False, *automatic],
        dilation=[one.dilation for one in axes],
        groups=node.attribute("group", 1),
    )
    result = made(made_of, [x.dims[0], w.dims[0], *(one.out for one in axes)], x.dtype, 0)
    return _with_bias(result, bias)


def _filters(w: Array, x: Array) -> Any:
    return static(w).held(x.storage)


def _with_bias(x: Array, bias: Array | None) -> Array:
    return x if bias is None else x + reshape(bias, [-1, *[1] * (x.rank - 2)])


def read_conv_transpose(node: Operator, x: Array, w: Array, bias: Array | None = None) -> Array:
    """All that the filters reach is computed, and the padding cut off."""
    rank = x.rank - 2
    kernel = [int(dim) for dim in w.dims[2:]]
    strides, dilations = node.attribute("strides", [1] * rank), node.attribute("dilations", [1] * rank)
    more = node.attribute("output_padding", [0] * rank)
    groups = node.attribute("group", 1)
    pads = _cut(node, x, kernel, strides, dilations, more)
    x = batched(x)
    parts = []
    for group in range(groups):
        channels, filters = int(x.dims[1]) // groups, int(w.dims[0]) // groups
        part = slice_(x, 1, group * channels, (group + 1) * channels)
        own = slice_(w, 0, group * filters, (group + 1) * filters)
        full = [(dim - 1) * s + (k - 1) * d + 1 for dim, s, k, d in zip(x.dims[2:], strides, kernel, dilations, strict=True)]
        found = convolution.convolution_transpose(_filters(own, x), part.held(), strides=strides, auto_padding=[False], dilation=dilations)
        parts.append(made(found, [x.dims[0], w.dims[1], *full], x.dtype, 0))
    result = concat(parts, 1) if groups > 1 else parts[0]
    for axis in range(rank):
        head, foot = pads[axis]
        foot -= more[axis]
        if foot < 0:
            result = padded(result, [0] * result.rank, [-foot if at == axis + 2 else 0 for at in range(result.rank)])
        result = slice_(result, axis + 2, head, -foot if foot > 0 else None)
    return _with_bias(result, bias)


def _cut(
    node: Operator, x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], more: Sequence[int]
) -> list[tuple[int, int]]:
    """What is cut off in front and behind along each axis."""
    rank, how = len(kernel), node.attribute("auto_pad", "NOTSET")
    pads = node.attribute("pads", [0] * (2 * rank))
    wanted = node.attribute("output_shape")
    if wanted is None and how in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [dim * stride for dim, stride in zip(x.dims[2:], strides, strict=True)]
    if wanted is None:
        return [(pads[axis], pads[axis + rank]) if how == "NOTSET" else (0, 0) for axis in range(rank)]
    found = []
    for axis, size in enumerate(wanted[-rank:]):
        total = strides[axis] * (x.dims[axis + 2] - 1) + more[axis] + (kernel[axis] - 1) * dilations[axis] + 1 - size
        if isinstance(total, Size):
            raise Unsupported("output_shape of an axis whose size depends on the data")
        small, large = total // 2, total - total // 2
        found.append((small, large) if how == "SAME_UPPER" else (large, small))
    return found


# ---- pooling -------------------------------------------------------------------------------------


def _pooled(x: Array, kind: int, axes: Sequence[Axis], automatic: Sequence[bool], include_pad: bool = False) -> Array:
    x = batched(x)
    found = pooling.pooling(
        x.held(),
        kind,
        [one.kernel for one in axes],
        strides=[one.stride for one in axes],
        auto_padding=[False, *automatic],
        include_pad=include_pad,
    )
    return made(found, [*x.dims[:2], *(one.out for one in axes)], x.dtype, 0)


def _taps(x: Array, axes: Sequence[Axis]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """For each element of a window where it is in it, and the elements that all windows have there, of an array that is padded."""
    if math.prod(one.kernel for one in axes) > 4096:
        raise Unsupported("windows of more than 4096 elements that are dilated, or whose places are wanted")
    for place in all_of(*(range(one.kernel) for one in axes)):
        part = x
        for axis, (at, one) in enumerate(zip(place, axes, strict=True), 2):
            part = _tap(part, axis, at, one)
        yield place, part


def _tap(x: Array, axis: int, at: int, one: Axis) -> Array:
    """The elements that all windows have at a place, along an axis."""
    begin = at * one.dilation
    return slice_(x, axis, begin, begin + (int(one.out) - 1) * one.stride + 1, one.stride)


def _all_padded(x: Array, axes: Sequence[Axis], fill: float) -> Array:
    return padded(x, [0, 0, *(one.head for one in axes)], [0, 0, *(one.foot + max(one.extra, 0) for one in axes)], fill)


def read_max_pool(node: Operator, x: Array) -> Any:
    kernel = node.required("kernel_shape")
    axes = axes_of(node, x.dims[2:], kernel)
    lowest = float(limits_of(x.dtype).min if x.is_float else np.iinfo(x.dtype).min)
    if node.outputs > 1 and node.wanted[1]:
        return _with_places(node, x, axes, lowest)
    if any(one.dilation != 1 for one in axes):
        best = _all_padded(x, axes, lowest)
        for axis, one in enumerate(axes, 2):  # the largest along one axis, of those along the others
            parts = [_tap(best, axis, at, one) for at in range(one.kernel)]
            best = reduce(lambda a, b: elementwise(np.maximum, maximum.element_max, a, b), parts)
        return best
    x, automatic = _pad_where_needed(x, axes, lowest)
    return _pooled(x, pooling.MAX, axes, automatic)


def _with_places(node: Operator, x: Array, axes: Sequence[Axis], lowest: float) -> tuple[Array, Array]:
    """The largest elements of windows, and their numbers in the whole array."""
    if not x.is_concrete:
        raise Unsupported("the places of the largest elements of an array whose size depends on the data")
    dims = [int(dim) for dim in x.dims]
    spatial = dims[2:]
    weights = [math.prod(spatial[axis + 1 :]) for axis in range(len(spatial))]
    if node.attribute("storage_order", 0):
        weights = [math.prod(spatial[:axis]) for axis in range(len(spatial))]
    best: Array | None = None
    place: Array | None = None
    out = [int(one.out) for one in axes]
    check_room([*dims[:2], *out])
    for at, part in _taps(_all_padded(static(x), axes, lowest), axes):
        number: Any = np.zeros([1] * len(axes), np.int64)
        for axis, one in enumerate(axes):
            along = np.arange(out[axis]) * one.stride + at[axis] * one.dilation - one.head
            number = number + (along * weights[axis]).reshape([-1 if other == axis else 1 for other in range(len(axes))])
        numbers = known(np.broadcast_to(number, [1, 1, *out]).astype(np.int64))
        if best is None or place is None:
            best, place = part, expand(numbers, part.dims)
            continue
        better = elementwise(np.greater, _greater, part, best, dtype=np.bool_)
        place = select(better, numbers, place)
        best = elementwise(np.maximum, maximum.element_max, best, part)
    assert best is not None
    assert place is not None
    size = math.prod(spatial)
    images = (np.arange(dims[0])[:, None] * dims[1] + np.arange(dims[1])) * size
    return best, place + known(images.reshape([*dims[:2], *[1] * len(spatial)]).astype(np.int64))


def _greater(a: Any, b: Any) -> Any:
    from ....ops.comparison import greater

    return greater(a, b)


def read_average_pool(node: Operator, x: Array) -> Array:
    axes = axes_of(node, x.dims[2:], node.required("kernel_shape"))
    return _averaged(x, axes, bool(node.attribute("count_include_pad", 0)))


def _averaged(x: Array, axes: Sequence[Axis], count_pad: bool) -> Array:
    if all(one.dilation == 1 and (not one.is_padded or (one.is_automatic and one.extra <= 0)) for one in axes):
        return _pooled(x, pooling.AVERAGE, axes, [one.is_padded for one in axes], count_pad)
    total = _sums(x, axes)
    factor: Any = np.ones([1] * len(axes))
    for axis, one in enumerate(axes):
        if isinstance(one.dim, Size):
            if not count_pad:
                raise Unsupported(f"averages without the padding of an axis of {one.dim} elements")
            counts = np.full(1, one.kernel)
        else:
            check_room([one.out, one.kernel])
            places = np.arange(int(one.out))[:, None] * one.stride + np.arange(one.kernel) * one.dilation - one.head
            low, high = (-one.head, one.dim + one.foot) if count_pad else (0, one.dim)
            counts = ((places >= low) & (places < high)).sum(1)
        factor = factor * counts.reshape([-1 if other == axis else 1 for other in range(len(axes))])
    return total / known(factor.astype(x.dtype)[None, None])


def _sums(x: Array, axes: Sequence[Axis]) -> Array:
    """The sums of windows, over padding of 0."""
    if any(one.dilation != 1 for one in axes):
        total = None
        for _, part in _taps(_all_padded(x, axes, 0.0), axes):
            total = part if total is None else total + part
        assert total is not None
        return total
    full = _all_padded(x, axes, 0.0)
    return _pooled(full, pooling.AVERAGE, axes, [False] * len(axes)) * float(math.prod(one.kernel for one in axes))


def read_lp_pool(node: Operator, x: Array) -> Array:
    axes, p = axes_of(node, x.dims[2:], node.required("kernel_shape")), node.attribute("p", 2)
    return _power(_sums(_power(_absolute(x), p), axes), 1 / p)


def _absolute(x: Array) -> Array:
    from ....ops.arithmetic import abs as absolute

    return elementwise(np.abs, absolute, x)


def _power(x: Array, exponent: float) -> Array:
    from ....ops.arithmetic import pow as power

    return elementwise(np.power, power, x, known(np.array(exponent, x.dtype)))


def read_global_average_pool(node: Operator, x: Array) -> Array:
    from .reductions import mean_over

    return mean_over(x, list(range(2, x.rank)))


def read_global_max_pool(node: Operator, x: Array) -> Array:
    from .reductions import max_over

    return max_over(x, list(range(2, x.rank)))


def read_global_lp_pool(node: Operator, x: Array) -> Array:
    from .reductions import sum_over

    p = node.attribute("p", 2)
    return _power(sum_over(_power(_absolute(x), p), list(range(2, x.rank))), 1 / p)


def read_max_unpool(node: Operator, x: Array, places: Array, shape: Array | None = None) -> Array:
    """Values go to the places that their numbers say."""
    from .selections import scattered

    kernel = node.required("kernel_shape")
    strides, pads = node.attribute("strides", [1] * len(kernel)), node.attribute("pads", [0] * (2 * len(kernel)))
    rank = len(kernel)
    natural = [(dim - 1) * strides[axis] - pads[axis] - pads[axis + rank] + kernel[axis] for axis, dim in enumerate(x.dims[2:])]
    inner = [*x.dims[:2], *natural]
    wanted = inner if shape is None else shape.sizes
    check_room(inner)
    zeros = known(np.zeros(int(product(inner)), x.dtype))
    flat = scattered(zeros, reshape(places, [-1]), reshape(x, [-1]), 0)
    foot = [size - dim for size, dim in zip(wanted, inner, strict=True)]
    if any(not isinstance(size, int) or size < 0 for size in foot):
        raise Unsupported(f"output_shape {wanted} where {inner} is natural")
    return padded(reshape(flat, inner), [0] * len(foot), foot)


# ---- interpolation -------------------------------------------------------------------------------


def read_upsample(node: Operator, x: Array, scales: Array | None = None) -> Array:
    """Resize of old: an element is where its number times the scale is."""
    factors = node.attribute("scales") if scales is None else scales.numbers.tolist()
    if factors is None:
        raise Unsupported("the scales are missing")
    mode = node.attribute("mode", "nearest")
    return resized(x, factors, None, "linear" if mode in ("bilinear", "linear") else mode, "asymmetric", "floor")


def read_resize(node: Operator, x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None) -> Array:
    if node.version < 11:
        return resized(
            x,
            [float(one) for one in (roi.numbers if roi is not None else [])],
            None,
            node.attribute("mode", "nearest"),
            "asymmetric",
            "floor",
        )
    place = node.attribute("coordinate_transformation_mode", "half_pixel")
    axes = [normal(axis, x.rank) for axis in node.attribute("axes", list(range(x.rank)))]
    factors = [1.0] * x.rank
    wanted: list[Any] | None = None
    if scales is not None and scales.dims != (0,):
        for axis, one in zip(axes, scales.numbers.tolist(), strict=True):
            factors[axis] = one
    elif sizes is not None:
        wanted = list(x.dims)
        for axis, size in zip(axes, sizes.sizes, strict=True):
            wanted[axis] = size
        factors, wanted = _kept_ratio(x, factors, wanted, axes, node.attribute("keep_aspect_ratio_policy", "stretch"))
    else:
        raise Unsupported("both scales and sizes are missing")
    regions = None
    if place == "tf_crop_and_resize":
        if roi is None:
            raise Unsupported("the regions are missing")
        bounds = roi.numbers.tolist()
        regions = {axis: (bounds[at], bounds[at + len(axes)]) for at, axis in enumerate(axes)}
    return resized(
        x,
        factors,
        wanted,
        node.attribute("mode", "nearest"),
        place,
        node.attribute("nearest_mode", "round_prefer_floor"),
        cubic=node.attribute("cubic_coeff_a", -0.75),
        exclude=bool(node.attribute("exclude_outside", 0)),
        antialias=bool(node.attribute("antialias", 0)),
        regions=regions,
        outside=node.attribute("extrapolation_value", 0.0),
    )


def _kept_ratio(x: Array, factors: list[float], wanted: list[Any], axes: list[int], policy: str) -> tuple[list[float], list[Any]]:
    """Scales and sizes that follow from the sizes that are wanted."""
    for axis in axes:
        if isinstance(x.dims[axis], Size) or isinstance(wanted[axis], Size):
            if policy != "stretch":
                raise Unsupported(f"an axis of {x.dims[axis]} elements resized to {wanted[axis]} with the policy {policy!r}")
            ratio = quotient(wanted[axis], x.dims[axis])
            factors[axis] = float(ratio) if isinstance(ratio, int) else math.nan
        else:
            factors[axis] = wanted[axis] / x.dims[axis]
    if policy != "stretch":
        one = (min if policy == "not_larger" else max)(factors[axis] for axis in axes)
        for axis in axes:
            factors[axis] = one
            wanted[axis] = int(one * x.dims[axis] + 0.5)
    return factors, wanted


def resized(
    x: Array,
    factors: Sequence[float],
    wanted: Sequence[Any] | None,
    mode: str,
    place: str,
    rounding: str,
    cubic: float = -0.75,
    exclude: bool = False,
    antialias: bool = False,
    regions: dict[int, tuple[float, float]] | None = None,
    outside: float = 0.0,
) -> Array:
    """The array interpolated along each axis: its elements by their numbers where *mode* is nearest, else by a matrix."""
    if len(factors) != x.rank:
        raise Unsupported(f"{len(factors)} scales for an array of {x.rank} axes")
    for axis, factor in enumerate(factors):
        dim = x.dims[axis]
        if factor == 1 and (wanted is None or wanted[axis] == dim) and not (regions and axis in regions):
            continue
        if isinstance(dim, Size) or (wanted is not None and isinstance(wanted[axis], Size)):
            if exclude or antialias or regions:
                raise Unsupported(f"an axis of {dim} elements resized with exclude_outside, antialias or regions")
            if mode == "nearest" and factor == int(0 if math.isnan(factor) else factor) and REPEATS.get(place) == rounding:
                x = _repeated(x, axis, int(factor))
                continue
            size = scaled(dim, factor) if wanted is None else wanted[axis]
            x = interpolated(x, axis, size, None if math.isnan(factor) else factor, mode, place, rounding, cubic)
            continue
        out = math.floor(dim * factor) if wanted is None else int(wanted[axis])
        if out > 2**24 or out < 1 or (mode != "nearest" and dim * out > 2**26):
            raise Unsupported(f"an axis of {dim} elements resized to {out}")
        where = _coordinates(place, dim, out, factor, (regions or {}).get(axis))
        if mode == "nearest":
            numbers = np.clip(ROUNDINGS[rounding](where), 0, dim - 1).astype(np.int64)
            x = take(x, known(numbers), axis)
        else:
            matrix = _interpolation(where, dim, mode, cubic, exclude, factor if antialias and factor < 1 else 1.0)
            x = _along(x, axis, matrix.astype(x.dtype))
        if regions and axis in regions:
            beyond = (where < 0) | (where > dim - 1)
            mask = known(beyond.reshape([-1 if other == axis else 1 for other in range(x.rank)]))
            x = select(mask, known(np.array(outside, x.dtype)), x)
    return x


ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda where: np.ceil(where - 0.5),
    "round_prefer_ceil": lambda where: np.floor(where + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


REPEATS = {"asymmetric": "floor", "tf_half_pixel_for_nn": "floor", "half_pixel": "round_prefer_floor"}
"""Roundings with which each element comes as often as a whole factor says, by the places of elements."""


def _repeated(x: Array, axis: int, factor: int) -> Array:
    """Each element as often as a whole factor says, of an axis whose size depends on the data."""
    split = reshape(x, [*x.dims[: axis + 1], 1, *x.dims[axis + 1 :]])
    wide = concat([split] * factor, axis + 1)
    return reshape(wide, [*x.dims[:axis], x.dims[axis] * factor, *x.dims[axis + 1 :]])


def _coordinates(place: str, dim: int, out: int, factor: float, region: tuple[float, float] | None) -> Any:
    """Where in the operand each element of the result is."""
    at = np.arange(out, dtype=np.float64)
    if place == "align_corners":
        return at * (dim - 1) / (out - 1) if out > 1 else np.zeros(1)
    if place == "asymmetric":
        return at / factor
    if place == "pytorch_half_pixel":
        return (at + 0.5) / factor - 0.5 if out > 1 else np.full(1, -0.5)
    if place == "tf_half_pixel_for_nn":
        return (at + 0.5) / factor
    if place == "half_pixel_symmetric":
        adjustment = out / (factor * dim)
        return dim / 2 * (1 - adjustment) + (at + 0.5) / factor - 0.5
    if place == "tf_crop_and_resize":
        assert region is not None
        begin, end = region
        if out == 1:
            return np.full(1, 0.5 * (begin + end) * (dim - 1))
        return begin * (dim - 1) + at * (end - begin) * (dim - 1) / (out - 1)
    if place != "half_pixel":
        raise Unsupported(f"coordinate_transformation_mode {place!r}")
    return (at + 0.5) / factor - 0.5


def _interpolation(where: Any, dim: int, mode: str, cubic: float, exclude: bool, factor: float) -> Any:
    """The matrix whose columns are the weights of the operand's elements in each element of the result."""
    if mode not in ("linear", "cubic"):
        raise Unsupported(f"interpolation of mode {mode!r}")
    reach = math.ceil((1 if mode == "linear" else 2) / factor)
    matrix = np.zeros((dim, len(where)))
    first = np.floor(where).astype(np.int64)
    taps = np.arange(-reach + 1, reach + 1)
    distance = np.abs((first[:, None] + taps) - where[:, None]) * factor
    if mode == "linear":
        weights = np.maximum(1 - distance, 0)
    else:
        near = ((cubic + 2) * distance - (cubic + 3)) * distance**2 + 1
        far = ((cubic * distance - 5 * cubic) * distance + 8 * cubic) * distance - 4 * cubic
        weights = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
    places = first[:, None] + taps
    if exclude:
        weights = np.where((places >= 0) & (places < dim), weights, 0)
    if exclude or factor != 1:
        weights = weights / weights.sum(1, keepdims=True)
    columns = np.broadcast_to(np.arange(len(where))[:, None], places.shape)
    np.add.at(matrix, (np.clip(places, 0, dim - 1), columns), weights)
    return matrix


def _along(x: Array, axis: int, matrix: Any) -> Array:
    """The product with a matrix along an axis."""
    if x.is_known:
        return known(np.moveaxis(np.tensordot(x.numbers, matrix, (axis, 0)), -1, axis))
    order = [other for other in range(x.rank) if other != axis] + [axis]
    found = matmul(transpose(x, order), known(matrix))
    return transpose(found, [order.index(other) for other in range(x.rank)])
