"""Pooling, the maximum or average of windows, and unpooling, which puts values back to where maxima came from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.common.shape import Shape, UnknownDimension, as_shape, size_of
from ...core.common.windows import Windows, as_flags, per_axis, windows
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec
from .planes import gradient_planes, padded_planes, take_gradient
from .sliding import blocks, positions, slide, slide_first_maximum, spread_sum, tap_type

MAX = 0
AVERAGE = 1


class Pooling(Op):
    """Maximum or average of windows."""

    op_name = "Pooling"
    by_rows = False
    keep_inputs = (0,)

    def infer(self, x: Spec) -> Spec:
        return self.common(x).but(shape=self.windows(x.dims).out)

    def windows(self, shape: Shape) -> Windows:
        """The windows over an operand of this static shape."""
        return pooling_windows(shape, self.pooling_window_shape, self.strides, self.auto_padding, self.ceil_out_dim)

    def commutes_with_monotone(self, operand: Spec) -> bool:
        """Maxima do, unless a window meets nothing but padding."""
        return self.pooling_type == MAX and operand.is_concrete and self.windows(operand.dims).meet_elements

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """One for each element of each window."""
        return size_of(out.shape) * size_of(self.windows(static_shape(ctx, inputs[0])).kernel)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        x, w = planes_of(ctx, inputs[0], self.windows(static_shape(ctx, inputs[0])))
        out = out.reshape(-1, *w.out)
        if self.pooling_type == AVERAGE:
            _average(ctx, out, x, w, self.include_pad)
        elif ctx.training:
            _maximum_with_taps(ctx, out, _taps(ctx, x, w), x, w)
        else:
            _maximum(ctx, out, x, w)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        x, w = planes_of(ctx, inputs[0], self.windows(static_shape(ctx, inputs[0])))
        grad, dx = grad.reshape(-1, *w.out), grads[0].reshape(x.shape)
        if self.pooling_type == AVERAGE:
            _average_backward(ctx, dx, grad, w, self.include_pad)
            return
        taps = _taps(ctx, x, w)
        if not ctx.training:
            _maximum_with_taps(ctx, None, taps, x, w)
        _scatter(ctx, ctx.xp.add.at, dx, taps, grad, w)


class Unpooling(Op):
    """Values put back to where the maxima of the second operand's windows are."""

    op_name = "Unpooling"
    keep_inputs = (1,)
    gradient_inputs = (0,)
    by_rows = False

    def infer(self, values: Spec, pooled: Spec) -> Spec:
        if (values.axes == ()) != (pooled.axes == ()):
            raise ValueError("one operand has dynamic axes, the other has none; places and values must belong to the same samples")
        shape = self.windows(pooled.dims).out
        if any(a != b for a, b in zip(shape, values.dims, strict=False) if a >= 0 and b >= 0) or len(shape) != values.rank:
            raise ValueError(f"pooling an operand of shape {pooled.dims} gives {shape}, not the values' shape {values.dims}")
        return self.common(values, pooled).but(shape=pooled.dims)

    def windows(self, shape: Shape) -> Windows:
        """The windows over an operand of pooling with this static shape."""
        return pooling_windows(shape, self.unpooling_window_shape, self.strides, self.auto_padding, False)

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """One for each element of each window, whose maximum is found."""
        static = out.shape if ctx.layout is None else out.shape[1:]
        return size_of(inputs[0].shape) * size_of(self.windows(static).kernel)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        values, pooled = inputs
        x, w = planes_of(ctx, pooled, self.windows(out.shape if ctx.layout is None else out.shape[1:]))
        taps = _taps(ctx, x, w)
        _maximum_with_taps(ctx, None, taps, x, w)
        _scatter(ctx, ctx.xp.put, out.reshape(x.shape), taps, values.reshape(-1, *w.out), w)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        _, pooled = inputs
        x, w = planes_of(ctx, pooled, self.windows(grad.shape if ctx.layout is None else grad.shape[1:]))
        taps = _taps(ctx, x, w)
        grad, values_grad = grad.reshape(x.shape), grads[0].reshape(-1, *w.out)
        for rows in blocks(w, len(x), grad.itemsize):
            planes = padded_planes(ctx, grad[rows], w, grad.dtype, 0)
            ctx.xp.take(planes, positions(ctx, taps[rows], w), out=values_grad[rows], mode="clip")


# ---- geometry ----


@lru_cache(maxsize=1024)
def pooling_windows(shape: Shape, window: Shape, strides: Shape, padding: tuple[bool, ...], ceil: bool) -> Windows:
    """Windows over all static axes of an operand; they cover the trailing ones."""
    rank = len(shape)
    if window == (UnknownDimension,):
        window = tuple(max(dim, 1) for dim in shape[1:])
    if not 0 < len(window) <= rank:
        raise ValueError(f"the window {window} has {len(window)} axes, the operand, of shape {shape}, {rank}; it covers the trailing axes")
    strides = per_axis(strides, max(len(window), min(len(strides), rank)), "strides")
    strides = (1,) * (rank - len(strides)) + strides
    return windows(shape, (1,) * (rank - len(window)) + window, strides, (1,) * rank, per_axis(padding, rank, "auto_padding"), ceil)


@lru_cache(maxsize=1024)
def _counts(w: Windows, include_pad: bool, dtype: Any) -> Any:
    """How many elements an average is over: a number, or an array for windows that reach into the padding."""
    if include_pad or not w.is_padded:
        return dtype.type(size_of(w.kernel))
    counts = np.ones(())
    for dim, kernel, stride, lower, out in zip(w.dims, w.kernel, w.strides, w.lower, w.out, strict=True):
        starts = np.arange(out) * stride - lower
        inside = np.minimum(starts + kernel, dim) - np.maximum(starts, 0)
        counts = np.multiply.outer(counts, np.maximum(inside, 0))
    return counts.astype(dtype)


def static_shape(ctx: Context, x: Any) -> Shape:
    """Static shape of the first operand."""
    return x.shape if ctx.layouts[0] is None else x.shape[1:]


def planes_of(ctx: Context, x: Any, w: Windows) -> tuple[Any, Windows]:
    """The operand as rows of what the windows slide over, be they samples or channels."""
    w = w.moving
    return x.reshape(-1, *w.dims), w


# ---- values ----


def _taps(ctx: Context, x: Any, w: Windows) -> Any:
    """Space for the number of the maximum in each window."""
    return ctx.keep("taps", (len(x), *w.out), tap_type(w))


def _maximum(ctx: Context, out: Any, x: Any, w: Windows) -> None:
    dtype = computing_type(x.dtype)
    for rows in blocks(w, len(x), dtype.itemsize):
        planes = padded_planes(ctx, x[rows], w, dtype, -np.inf)
        ctx.xp.copyto(out[rows], slide(ctx, ctx.xp.maximum, planes, w))


def _maximum_with_taps(ctx: Context, out: Any, taps: Any, x: Any, w: Windows) -> None:
    dtype = computing_type(x.dtype)
    for rows in blocks(w, len(x), dtype.itemsize):
        planes = padded_planes(ctx, x[rows], w, dtype, -np.inf)
        maxima, numbers = slide_first_maximum(ctx, planes, w)
        ctx.xp.copyto(taps[rows], numbers)
        if out is not None:
            ctx.xp.copyto(out[rows], maxima)


def _scatter(ctx: Context, put: Any, target: Any, taps: Any, values: Any, w: Windows) -> None:
    """Bring *values* to the window elements numbered by *taps*, with zeros elsewhere; *put* says what happens where several meet."""
    dtype = computing_type(values.dtype)
    for rows in blocks(w, len(target), dtype.itemsize):
        planes = gradient_planes(ctx, target[rows], w, dtype)
        put(planes.reshape(-1), positions(ctx, taps[rows], w).reshape(-1), values[rows].reshape(-1))
        take_gradient(ctx, target[rows], planes, w)


def _average(ctx: Context, out: Any, x: Any, w: Windows, include_pad: bool) -> None:
    dtype = computing_type(x.dtype)
    counts = ctx.xp.asarray(_counts(w, include_pad, dtype))
    for rows in blocks(w, len(x), dtype.itemsize):
        planes = padded_planes(ctx, x[rows], w, dtype, 0)
        ctx.xp.divide(slide(ctx, ctx.xp.add, planes, w), counts, out=out[rows])


def _average_backward(ctx: Context, dx: Any, grad: Any, w: Windows, include_pad: bool) -> None:
    dtype = computing_type(grad.dtype)
    counts = ctx.xp.asarray(_counts(w, include_pad, dtype))
    for rows in blocks(w, len(dx), dtype.itemsize):
        shares = ctx.scratch("shares", grad[rows].shape, dtype)
        ctx.xp.divide(grad[rows], counts, out=shares)
        sums = spread_sum(ctx, shares, w)
        if any(lower < 0 for lower in w.lower):
            dx[rows].fill(0)
        ctx.xp.copyto(dx[(rows, *w.seen)], sums[(..., *w.inside)])


# ---- public operators ----


def _reference(reduce: Any, window: Shape, strides: int, lower: int = 0, upper: int = 0) -> Any:
    """An independent pooling of one operand, straight from the definition; the padding is NaN, which *reduce* leaves out."""

    def pool(x: Any) -> Any:
        lead = x.ndim - len(window)
        x = np.pad(x, [(0, 0)] * lead + [(lower, upper)] * len(window), constant_values=np.nan)
        out = [(dim - k) // strides + 1 for dim, k in zip(x.shape[lead:], window, strict=True)]
        result = np.zeros((*x.shape[:lead], *out))
        for place in np.ndindex(*result.shape):
            part = tuple(slice(at * strides, at * strides + k) for at, k in zip(place[lead:], window, strict=True))
            result[place] = reduce(x[(*place[:lead], *part)])
        return result

    return pool


def _with_zeros(window: Any) -> Any:
    return np.mean(np.nan_to_num(window))


@operator(
    sample((2, 5, 7), pooling_type=MAX, pooling_window_shape=(3, 3), strides=2, expected=_reference(np.nanmax, (3, 3), 2)),
    sample((2, 5, 5), pooling_type=MAX, pooling_window_shape=(3, 3), strides=2, auto_padding=[True],
           expected=_reference(np.nanmax, (3, 3), 2, 1, 1)),
    sample((6, 6), pooling_type=MAX, pooling_window_shape=(3, 3), strides=2, ceil_out_dim=True,
           expected=_reference(np.nanmax, (3, 3), 2, 0, 1)),
    sample((2, 4, 5, 3), pooling_type=MAX, pooling_window_shape=(2, 3, 2), expected=_reference(np.nanmax, (2, 3, 2), 1)),
    sample((3, 4), pooling_type=MAX, pooling_window_shape=(3, 4), expected=_reference(np.nanmax, (3, 4), 1)),
    sample((2, 5, 7), pooling_type=AVERAGE, pooling_window_shape=(3, 3), strides=2, expected=_reference(np.nanmean, (3, 3), 2)),
    sample((2, 5, 5), pooling_type=AVERAGE, pooling_window_shape=(3, 3), auto_padding=[True],
           expected=_reference(np.nanmean, (3, 3), 1, 1, 1)),
    sample((2, 5, 5), pooling_type=AVERAGE, pooling_window_shape=(3, 3), auto_padding=[True], include_pad=True,
           expected=_reference(_with_zeros, (3, 3), 1, 1, 1)),
    sample((3, 7), pooling_type=AVERAGE, pooling_window_shape=2, strides=3, expected=_reference(np.nanmean, (2,), 3)),
    sample((3, 4), pooling_type=AVERAGE, pooling_window_shape=(3, 4), expected=_reference(np.nanmean, (3, 4), 1)),
    sample(Operand((2, 4, 4), kind="static"), pooling_type=MAX, pooling_window_shape=(2, 2), strides=2,
           expected=_reference(np.nanmax, (2, 2), 2)),
)  # fmt: skip
def pooling(
    operand: TensorLike,
    pooling_type: int,
    pooling_window_shape: int | Sequence[int],
    strides: int | Sequence[int] = (1,),
    auto_padding: bool | Sequence[bool] = (False,),
    ceil_out_dim: bool = False,
    include_pad: bool = False,
    name: str = "",
) -> Function:
    """Take the maximum or the average of each window.

    The gradient of a maximum goes to the first of equal elements only.

    Args:
        operand: input of shape (*channels, *d), with any dynamic axes.
        pooling_type: ``MAX_POOLING`` or ``AVG_POOLING``.
        pooling_window_shape: size of the window along the trailing axes; the axes before are left alone.
        strides: steps from one window to the next along the trailing axes; a shorter list is filled up in front with its first value.
        auto_padding: for each axis of the operand whether windows may reach over the edge, so that there are ceil(d / stride) of them;
            a shorter list is filled up in front with its first value.
        ceil_out_dim: let a last window reach over the end where strides leave a rest.
        include_pad: let averages count the padding, as zeros, rather than leave it out.
        name: name of the function.

    Returns:
        Function: the operand's shape with the number of windows along the trailing axes, and its dynamic axes.

    Raises:
        ValueError: the window has more axes than the operand or is larger, or the pooling type is neither of the two.

    Example:
        >>> x = C.input_variable((1, 2, 4))
        >>> image = np.array([[[[1, 2, 3, 4], [5, 6, 7, 8]]]], dtype=np.float32)
        >>> C.pooling(x, C.MAX_POOLING, (2, 2), strides=2).eval({x: image})
        array([[[[6., 8.]]]], dtype=float32)
        >>> C.pooling(x, C.AVG_POOLING, (2, 2), strides=2).eval({x: image})
        array([[[[3.5, 5.5]]]], dtype=float32)
    """
    if pooling_type not in (MAX, AVERAGE):
        raise ValueError(f"Pooling: pooling_type={pooling_type!r} is neither MAX_POOLING ({MAX}) nor AVG_POOLING ({AVERAGE})")
    op = Pooling(
        pooling_type=pooling_type,
        pooling_window_shape=_window_shape(pooling_window_shape),
        strides=as_shape(strides),
        auto_padding=as_flags(auto_padding),
        ceil_out_dim=ceil_out_dim,
        include_pad=include_pad,
    )
    return op(operand, name=name)


def _unpooled(window: int, strides: int) -> Any:
    """An independent unpooling of one sample (channels, height, width)."""

    def unpool(values: Any, pooled: Any) -> Any:
        result = np.zeros(pooled.shape)
        for channel, row, column in np.ndindex(values.shape):
            top, left = row * strides, column * strides
            part = pooled[channel, top : top + window, left : left + window]
            dy, dx = np.unravel_index(np.argmax(part), part.shape)
            result[channel, top + dy, left + dx] = values[channel, row, column]
        return result

    return unpool


@operator(
    sample((2, 2, 3), Operand((2, 4, 6), gradient=False), unpooling_type=MAX, unpooling_window_shape=(2, 2), strides=2,
           expected=_unpooled(2, 2)),
    sample((2, 3, 3), Operand((2, 7, 7), gradient=False), unpooling_type=MAX, unpooling_window_shape=(2, 2), strides=3,
           auto_padding=[True]),
)  # fmt: skip
def unpooling(
    operand: TensorLike,
    pooling_input: TensorLike,
    unpooling_type: int,
    unpooling_window_shape: int | Sequence[int],
    strides: int | Sequence[int] = (1,),
    auto_padding: bool | Sequence[bool] = (False,),
    name: str = "",
) -> Function:
    """Put values back to where the maxima of another value's windows are, and zeros elsewhere.

    Args:
        operand: values to put back, of the shape that pooling *pooling_input* gives.
        pooling_input: what tells the places: the operand of :func:`pooling`, whose windows are searched for their first maximum.  No
            gradient flows to it.
        unpooling_type: ``MAX_UNPOOLING``.
        unpooling_window_shape: size of the window along the trailing axes.
        strides: steps from one window to the next, as for pooling.
        auto_padding: whether windows may reach over the edge, as for pooling.
        name: name of the function.

    Returns:
        Function: the shape and dynamic axes of *pooling_input*.  Where windows share a maximum, the last one's value is put.

    Raises:
        ValueError: the shapes are incompatible, or the type is not ``MAX_UNPOOLING``.

    Example:
        >>> x = C.input_variable((1, 2, 4))
        >>> y = C.pooling(x, C.MAX_POOLING, (2, 2), strides=2)
        >>> z = C.unpooling(y, x, C.MAX_UNPOOLING, (2, 2), strides=2)
        >>> z.eval({x: np.array([[[[1, 9, 3, 4], [5, 6, 7, 8]]]], dtype=np.float32)})
        array([[[[0., 9., 0., 0.],
                 [0., 0., 0., 8.]]]], dtype=float32)
    """
    if unpooling_type != MAX:
        raise ValueError(f"Unpooling: unpooling_type={unpooling_type!r} must be MAX_UNPOOLING ({MAX}); an average tells no place")
    op = Unpooling(
        pooling_type=unpooling_type,
        unpooling_window_shape=_window_shape(unpooling_window_shape),
        strides=as_shape(strides),
        auto_padding=as_flags(auto_padding),
    )
    return op(operand, pooling_input, name=name)


def _window_shape(shape: int | Sequence[int]) -> Shape:
    """The window as a tuple; (UnknownDimension,) stands for all axes but the first."""
    return (UnknownDimension,) if shape == (UnknownDimension,) else as_shape(shape)
