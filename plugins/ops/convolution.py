"""Convolution and its transpose, in one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.common.shape import InferredDimension, Shape, as_shape, size_of
from ...core.common.windows import Correlation, along_axes, as_flags, unslide
from ...core.common.windows import correlation as correlation_geometry
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.spec import Spec
from . import correlation
from .sequence_windows import SequenceWindows
from .shaping import reshape


class _Filtering(Op):
    """What the two have in common.

    Their methods also take what correlates, a module like :mod:`.correlation`.
    """

    op_name = "Convolution"
    keep_inputs = (0, 1)
    _kernel: Shape = ()

    @property
    def attributes(self) -> dict[str, Any]:
        """As CNTK shows them: for each axis of the kernel, which has the channels first, a stride, a dilation and two flags."""
        shown, rank = super().attributes, len(self._kernel)
        del shown["reductionRank"]
        for name in ("strides", "dilation", "sharing", "autoPadding"):
            given = tuple(shown[name])
            shown[name] = given[:1] * (rank - len(given)) + given
        for name in ("sharing", "autoPadding"):
            shown[name] = list(shown[name])
        return {**shown, "kernelShape": self._kernel, "lowerPad": (0,) * rank, "upperPad": (0,) * rank}


class Convolution(_Filtering):
    """Cross-correlation of filters with an operand."""

    def geometry(self, filters: Shape, operand: Shape) -> Correlation:
        """How filters of this static shape slide over such an operand."""
        slides = self.strides, self.dilation, self.auto_padding
        return _geometry(filters, operand, *slides, self.reduction_rank, self.groups, self.sequential)

    def infer(self, filters: Spec, operand: Spec) -> Spec:
        _check_filters(filters)
        kernels, channelled = _with_channel_axis(filters.dims, operand.dims, self.reduction_rank)
        self._kernel = kernels[len(kernels) - len(channelled) :]
        return self.common(filters, operand).but(shape=self.geometry(filters.dims, operand.dims).shape)

    def resolve(self, filters: Spec, operand: Spec) -> Sequence[Shape]:
        channels = operand.dims[0] // self.groups if self.reduction_rank and operand.dims and operand.dims[0] > 0 else InferredDimension
        return _with_channels(filters.dims, -operand.rank, channels), operand.dims

    def factored(self, factor: Shape, filters: Spec, operand: Spec) -> tuple[int, Shape] | None:
        """Into the filters, where there is a number for each of them."""
        g = self.geometry(filters.dims, operand.dims)
        along = (1,) * (len(g.shape) - len(factor)) + tuple(factor)
        fits = filters.dims[0] == g.maps == g.shape[0] and size_of(along[1:]) == 1 and not self.sequential
        return (0, (along[0], *(1,) * (filters.rank - 1))) if fits else None

    def flop(self, ctx: Context, out: Any, filters: Any, operand: Any) -> int:
        """A multiplication and an addition for each place of the result and each weight of a filter, those over padding included."""
        g = self.geometry(filters.shape, _static_shape(ctx, operand))
        return 2 * size_of(out.shape) * g.weights[-1]

    def forward(self, ctx: Context, out: Any, filters: Any, operand: Any, by: Any = correlation) -> None:
        g = self.geometry(filters.shape, _static_shape(ctx, operand))
        by.correlate(ctx, _rows(out, g.maps, g.windows.out), filters, _rows(operand, g.channels, g.windows.dims), g)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any, by: Any = correlation) -> None:
        g = self.geometry(filters.shape, _static_shape(ctx, operand))
        filters_grad, operand_grad = grads
        by.correlate_backward(
            ctx,
            _rows(grad, g.maps, g.windows.out),
            filters_grad,
            _rows(operand_grad, g.channels, g.windows.dims),
            filters,
            _rows(operand, g.channels, g.windows.dims),
            g,
        )


class ConvolutionTranspose(_Filtering):
    """What the gradient of a convolution's operand is to the gradient of its result."""

    _maps: int = 1

    @property
    def attributes(self) -> dict[str, Any]:
        shown, rank = super().attributes, len(self._kernel)
        if len(self.strides) < rank:
            shown["strides"] = (self._maps, *shown["strides"][1:])
        if len(self.auto_padding) < rank:
            shown["autoPadding"] = [False, *shown["autoPadding"][1:]]
        return shown

    def geometry(self, filters: Shape, operand: Shape) -> Correlation:
        """The convolution that is transposed: its operand has the shape of this op's result, its result that of the operand."""
        slides = self.strides, self.dilation, self.auto_padding
        return _transposed_geometry(filters, operand, *slides, self.output_shape, self.reduction_rank)

    def infer(self, filters: Spec, operand: Spec) -> Spec:
        _check_filters(filters)
        g = self.geometry(filters.dims, operand.dims)
        rank = len(g.windows.dims) + 1
        self._maps, *kernel = (1,) * (rank + 1 - filters.rank) + filters.dims
        self._kernel = tuple(kernel)
        return self.common(filters, operand).but(shape=(g.channels, *g.windows.dims))

    def resolve(self, filters: Spec, operand: Spec) -> Sequence[Shape]:
        channels = operand.dims[0] if self.reduction_rank and operand.dims and operand.dims[0] > 0 else InferredDimension
        return _with_channels(filters.dims, 0, channels), operand.dims

    def flop(self, ctx: Context, out: Any, filters: Any, operand: Any) -> int:
        """A multiplication and an addition for each element of the operand and each weight of a filter."""
        g = self.geometry(filters.shape, _static_shape(ctx, operand))
        return 2 * size_of(operand.shape) * g.weights[-1]

    def forward(self, ctx: Context, out: Any, filters: Any, operand: Any, by: Any = correlation) -> None:
        g = self.geometry(filters.shape, _static_shape(ctx, operand))
        grad, operand_grad = _rows(operand, g.maps, g.windows.out), _rows(out, g.channels, g.windows.dims)
        by.correlate_backward(ctx, grad, None, operand_grad, filters, None, g)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any, by: Any = correlation) -> None:
        g = self.geometry(filters.shape, _static_shape(ctx, operand))
        filters_grad, operand_grad = grads
        rows = _rows(grad, g.channels, g.windows.dims)
        if filters_grad is not None:
            by.correlate_backward(ctx, _rows(operand, g.maps, g.windows.out), filters_grad, None, filters, rows, g)
        if operand_grad is not None:
            by.correlate(ctx, _rows(operand_grad, g.maps, g.windows.out), filters, rows, g)


@lru_cache(maxsize=1024)
def _geometry(
    filters: Shape,
    operand: Shape,
    strides: Shape,
    dilation: Shape,
    padding: tuple[bool, ...],
    reduction_rank: int,
    groups: int,
    sequential: bool,
) -> Correlation:
    filters, operand = _with_channel_axis(filters, operand, reduction_rank)
    rank = len(operand)
    maps = _count(filters[:-rank])
    kernel = filters[-rank:]
    strides, dilation, padding = along_axes(strides, dilation, padding, rank, reduction_rank)
    if sequential:  # the time axis is one window of SequenceWindows, which has slid already
        strides, dilation, padding = _with_time(strides, 1), _with_time(dilation, 1), _with_time(padding, False)
    return correlation_geometry(maps, kernel, operand, strides, dilation, padding, groups)


def _with_time(values: tuple[Any, ...], time: Any) -> tuple[Any, ...]:
    """Values for all axes, channels first, with another one for the axis of time."""
    return (*values[:1], time, *values[2:])


@lru_cache(maxsize=1024)
def _transposed_geometry(
    filters: Shape, operand: Shape, strides: Shape, dilation: Shape, padding: tuple[bool, ...], output_shape: Shape, reduction_rank: int
) -> Correlation:
    rank = len(operand) + 1 - reduction_rank
    if reduction_rank == 0:
        operand = (1, *operand)
    filters = (1,) * (rank + 1 - len(filters)) + filters
    if rank < 2 or len(filters) != rank + 1:
        raise ValueError(f"filters of shape {filters} do not suit an operand of shape {operand}; expected (channels, maps, *kernel)")
    maps, *kernel = filters
    strides, dilation, padding = along_axes(strides, dilation, padding, rank, reduction_rank)
    if output_shape == (0,):
        axes = zip(operand[1:], kernel[1:], strides[1:], dilation[1:], padding[1:], strict=True)
        output_shape = (kernel[0], *(unslide(*axis) for axis in axes))
    if len(output_shape) != rank or output_shape[0] != kernel[0]:
        raise ValueError(f"output_shape={output_shape} is not a shape of {rank} axes with {kernel[0]} channels first, as the filters make")
    g = correlation_geometry(maps, tuple(kernel), output_shape, strides, dilation, (False, *padding[1:]), 1)
    if any(known != dim for known, dim in zip(g.shape, operand, strict=True) if known >= 0 and dim >= 0):
        raise ValueError(f"convolving an output of shape {output_shape} gives {g.shape}, not the operand's shape {operand}")
    return g


def _with_channel_axis(filters: Shape, operand: Shape, reduction_rank: int) -> tuple[Shape, Shape]:
    """Give filters and operand without channels an axis for one."""
    rank = len(operand)
    if rank <= reduction_rank:
        expected = "(channels, *axes)" if reduction_rank else "one at least"
        raise ValueError(f"an operand of shape {operand} has no axis to slide filters over; expected {expected}")
    if len(filters) < rank:
        raise ValueError(f"filters of shape {filters} have fewer axes than the operand of shape {operand}; expected (maps, *kernel)")
    if reduction_rank:
        return filters, operand
    if len(filters) > rank + 1:
        raise ValueError(f"filters of shape {filters} have more axes than (maps, *kernel) for the operand {operand} without channels")
    return (*filters[:-rank], 1, *filters[-rank:]), (1, *operand)


def _count(dims: Shape) -> int:
    return InferredDimension if any(dim < 0 for dim in dims) else size_of(dims)


def _with_channels(filters: Shape, axis: int, channels: int) -> Shape:
    """The filters' shape with its inferred number of channels, on *axis*, filled in."""
    if not -len(filters) <= axis < len(filters) or filters[axis] != InferredDimension:
        return filters
    known = list(filters)
    known[axis] = channels
    return tuple(known)


def _check_filters(filters: Spec) -> None:
    if filters.axes:
        raise ValueError("the convolution map has dynamic axes; filters are the same for every sample, so use a parameter or constant")


def _static_shape(ctx: Context, operand: Any) -> Shape:
    return operand.shape if ctx.layouts[1] is None else operand.shape[1:]


def _rows(array: Any, channels: int, dims: Shape) -> Any:
    """The array as (rows, channels, *dims); None remains None."""
    return None if array is None else array.reshape(-1, channels, *dims)


# ---- public operators ----


def _direct(padding: bool = False, strides: int = 1, dilation: int = 1, groups: int = 1) -> Any:
    """An independent convolution of one image, straight from the definition."""

    def convolve(filters: Any, operand: Any) -> Any:
        maps, channels, *kernel = filters.shape
        spans = [(k - 1) * dilation + 1 for k in kernel]
        lower = [(span - 1) // 2 if padding else 0 for span in spans]
        upper = [span - 1 - before if padding else 0 for span, before in zip(spans, lower, strict=True)]
        operand = np.pad(operand, [(0, 0), *zip(lower, upper, strict=True)])
        out = [(dim - span) // strides + 1 for dim, span in zip(operand.shape[1:], spans, strict=True)]
        result = np.zeros((maps, *out))
        for place in np.ndindex(maps, *out):
            first = place[0] // (maps // groups) * channels
            window = [slice(at * strides, at * strides + span, dilation) for at, span in zip(place[1:], spans, strict=True)]
            result[place] = np.sum(filters[place[0]] * operand[(slice(first, first + channels), *window)])
        return result

    return convolve


def _scattered(strides: int = 1, lower: int = 0, output: Shape | None = None) -> Any:
    """An independent transposed convolution of one image: each element adds its multiple of the filter to the output."""

    def scatter(filters: Any, operand: Any) -> Any:
        _, maps, *kernel = filters.shape
        dims = operand.shape[1:]
        full = np.zeros((maps, *(dim * strides + k + strides for dim, k in zip(dims, kernel, strict=True))))
        for place in np.ndindex(operand.shape):
            window = [slice(at * strides, at * strides + k) for at, k in zip(place[1:], kernel, strict=True)]
            full[(slice(None), *window)] += operand[place] * filters[place[0]]
        if output is None:
            output_dims = [(dim - 1) * strides + (1 if lower else k) for dim, k in zip(dims, kernel, strict=True)]
        else:
            output_dims = list(output[1:])
        return full[(slice(None), *(slice(lower, lower + dim) for dim in output_dims))]

    return scatter


FILTERS = Operand((2, 3, 3, 2), kind="parameter")
KERNEL = Operand((2, 2), kind="parameter")
SPATIAL = (False, True, True)


@operator(
    sample(FILTERS, (3, 5, 6), auto_padding=[False], expected=_direct()),
    sample(FILTERS, (3, 5, 6), auto_padding=SPATIAL, expected=_direct(padding=True)),
    sample(FILTERS, (3, 6, 7), auto_padding=SPATIAL, strides=2, expected=_direct(padding=True, strides=2)),
    sample(FILTERS, (3, 6, 7), auto_padding=SPATIAL, dilation=2, expected=_direct(padding=True, dilation=2)),
    sample(Operand((4, 2, 2, 2), kind="parameter"), (4, 3, 3), auto_padding=[False], groups=2, expected=_direct(groups=2)),
    sample(Operand((2, 3, 4), kind="parameter"), (3, 7), auto_padding=(False, True), expected=_direct(padding=True)),
    sample(Operand((2, 1, 2, 2, 2), kind="parameter"), (1, 3, 4, 3), auto_padding=[False], expected=_direct()),
    sample(KERNEL, (3, 4), reduction_rank=0, expected=lambda w, x: _direct(padding=True)(w[None, None], x[None])),
    sample(Operand((2, 2, 2), kind="parameter"), (2, 3, 3), expected=lambda w, x: _direct(padding=True)(w[None, None], x[None])[0]),
    sample(FILTERS, Operand((3, 4, 4), kind="static"), auto_padding=[False], expected=_direct()),
)
def convolution(
    convolution_map: TensorLike,
    operand: TensorLike,
    strides: int | Sequence[int] = (1,),
    sharing: Sequence[bool] = (True,),
    auto_padding: bool | Sequence[bool] = (True,),
    sequential: bool = False,
    dilation: int | Sequence[int] = (1,),
    reduction_rank: int = 1,
    groups: int = 1,
    max_temp_mem_size_in_samples: int = 0,
    name: str = "",
) -> Function:
    """Slide filters over an image, a signal or a volume, and sum up the products at each place.

    What is computed is the cross-correlation: filters are not flipped.

    Args:
        convolution_map: filters of shape (O, I, *k): O filters for I channels, with kernels of shape k.  A dimension I of -1 is
            inferred.  Without the axis O there is one filter.
        operand: input of shape (I, *d), with any dynamic axes.
        strides: steps from one place to the next along each axis, channels included; a shorter list is filled up in front with its
            first value.
        sharing: only [True] is supported: filters are the same at all places.
        auto_padding: for each axis, channels included, whether it is padded with zeros so that the result has ceil(d / stride)
            places along it; a shorter list is filled up in front with its first value.  **The default pads the channels, too**: filters
            then slide over them and the result has O x I channels.  Pass ``[False, True, True]`` for an image.  Filters whose I is
            inferred span the channels whatever is given for these, which a shorter list leaves out.
        sequential: whether the sequence axis is convolved, too: it counts as the first spatial axis, so that filters are
            (O, I, time, *k), and *strides*, *auto_padding* and *dilation* have a value for it, behind the one for the channels.
        dilation: distance between the elements that a filter looks at, along each axis.
        reduction_rank: 1 when filters sum over the channels; 0 when the operand has no axis of channels.
        groups: number of parts that the channels and filters fall into, each convolved on its own: filters are (O, I / groups, *k).
        max_temp_mem_size_in_samples: accepted and ignored; the memory used is bounded anyway.
        name: name of the function.

    Returns:
        Function: shape (O, *places), the operand's dynamic axes.  With *sequential* there is a step for each place on the sequence
        axis, which is a new one unless it is padded and convolved with stride 1.

    Raises:
        ValueError: shapes, strides or groups are incompatible, a kernel is larger than the operand, or, with *sequential*, the
            operand has no sequence axis, or one of the sequences is shorter than the filters and not padded.

    Example:
        >>> x = C.input_variable((1, 3, 4))
        >>> edges = C.constant(np.array([[[[1, -1]]]], dtype=np.float32))
        >>> C.convolution(edges, x, auto_padding=[False]).eval({x: np.array([[[[1, 1, 5, 5], [1, 1, 5, 5], [0, 2, 4, 6]]]], np.float32)})
        array([[[[ 0., -4.,  0.],
                 [ 0., -4.,  0.],
                 [-2., -2., -2.]]]], dtype=float32)

        >>> x = C.sequence.input_variable(1)
        >>> steps = C.constant(np.array([[[-1, 1]]], dtype=np.float32))
        >>> C.convolution(steps, x, auto_padding=[False], sequential=True).eval([np.array([[1], [1], [5], [7]], np.float32)])
        [array([[0.],
               [4.],
               [2.]], dtype=float32)]
    """
    if reduction_rank not in (0, 1):
        raise ValueError(f"Convolution: reduction_rank={reduction_rank} must be 1, or 0 for an operand without channels")
    op = Convolution(
        strides=as_shape(strides),
        sharing=_shared("Convolution", sharing),
        auto_padding=_padding_of(convolution_map, as_flags(auto_padding)) if reduction_rank else as_flags(auto_padding),
        dilation=as_shape(dilation),
        groups=groups,
        output_shape=(0,),
        transpose=False,
        sequential=sequential,
        max_temp_mem_size_in_samples=max_temp_mem_size_in_samples,
        reduction_rank=reduction_rank,
    )
    if not sequential:
        return op(convolution_map, operand, name=name)
    windows = SequenceWindows(op.strides, op.dilation, op.auto_padding, reduction_rank)(convolution_map, operand)
    return reshape(op(convolution_map, windows), (), begin_axis=1, end_axis=2, name=name)


TRANSPOSED = Operand((3, 2, 3, 3), kind="parameter")


def _padding_of(filters: Any, given: tuple[bool, ...]) -> tuple[bool, ...]:
    """Flags for all axes of a kernel whose channels are to be inferred, and thus spanned; else what is given."""
    shape: Shape = getattr(filters, "shape", ())
    if len(shape) < 3 or shape[1] != InferredDimension:
        return given
    spatial = len(shape) - 2
    return (False, *given[:1] * (spatial - len(given)), *given[-spatial:])


@operator(
    sample(TRANSPOSED, (3, 2, 3), auto_padding=[False], expected=_scattered()),
    sample(TRANSPOSED, (3, 2, 3), auto_padding=SPATIAL, strides=2, expected=_scattered(2, lower=1)),
    sample(TRANSPOSED, (3, 2, 3), strides=2, output_shape=(2, 4, 6), expected=_scattered(2, lower=1, output=(2, 4, 6))),
    sample(TRANSPOSED, (3, 2, 2), auto_padding=[False], strides=2, output_shape=(2, 6, 6), expected=_scattered(2, output=(2, 6, 6))),
    sample(Operand((2, 1, 3), kind="parameter"), (2, 4), auto_padding=[False], expected=_scattered()),
    sample(KERNEL, (3, 4), auto_padding=[False], reduction_rank=0, expected=lambda w, x: _scattered()(w[None, None], x[None])),
)
def convolution_transpose(
    convolution_map: TensorLike,
    operand: TensorLike,
    strides: int | Sequence[int] = (1,),
    sharing: Sequence[bool] = (True,),
    auto_padding: bool | Sequence[bool] = (True,),
    output_shape: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] = (1,),
    reduction_rank: int = 1,
    max_temp_mem_size_in_samples: int = 0,
    name: str = "",
) -> Function:
    """Run a convolution backwards: each element of the operand adds its multiple of the filters to the result.

    The result has the shape of an operand that :func:`convolution`, with the same filters and settings, brings to the shape of this
    operand.  Where strides leave several such shapes the smallest is taken, unless *output_shape* names another.

    Args:
        convolution_map: filters of shape (I, O, *k) for an operand of I channels and a result of O.  A dimension I of -1 is inferred.
        operand: input of shape (I, *d), with any dynamic axes.
        strides: places in the result from one element of the operand to the next, channels included but without effect there; a shorter
            list is filled up in front with its first value.
        sharing: only [True] is supported: filters are the same at all places.
        auto_padding: for each axis whether the convolution run backwards is padded; channels never are.  Along a padded axis the
            result has (d - 1) * stride + 1 places, else (d - 1) * stride + k.
        output_shape: shape (O, *places) of the result.
        dilation: distance between the elements of a filter, along each axis.
        reduction_rank: 1, or 0 when the operand has no axis of channels and filters are (O, *k).
        max_temp_mem_size_in_samples: accepted and ignored; the memory used is bounded anyway.
        name: name of the function.

    Returns:
        Function: shape (O, *places), the operand's dynamic axes.

    Raises:
        ValueError: shapes or strides are incompatible, or convolving *output_shape* does not give the operand's shape.

    Example:
        >>> x = C.input_variable((1, 1, 3))
        >>> filters = C.constant(np.array([[[[1, 2]]]], dtype=np.float32))
        >>> C.convolution_transpose(filters, x, strides=2, auto_padding=[False]).eval({x: np.array([[[[1, 3, 5]]]], np.float32)})
        array([[[[ 1.,  2.,  3.,  6.,  5., 10.]]]], dtype=float32)
    """
    if reduction_rank not in (0, 1):
        raise ValueError(f"ConvolutionTranspose: reduction_rank={reduction_rank} must be 1, or 0 for an operand without channels")
    op = ConvolutionTranspose(
        strides=as_shape(strides),
        sharing=_shared("ConvolutionTranspose", sharing),
        auto_padding=as_flags(auto_padding),
        dilation=as_shape(dilation),
        groups=1,
        output_shape=(0,) if output_shape is None else as_shape(output_shape),
        transpose=True,
        sequential=False,
        max_temp_mem_size_in_samples=max_temp_mem_size_in_samples,
        reduction_rank=reduction_rank,
    )
    return op(convolution_map, operand, name=name)


def _shared(op: str, sharing: Sequence[bool]) -> tuple[bool, ...]:
    if not all(sharing):
        raise ValueError(f"{op}: sharing={list(sharing)} asks for filters that differ from place to place; only [True] is supported")
    return tuple(sharing)
