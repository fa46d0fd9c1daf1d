"""Layers that slide filters over an image."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntk import ops
from cntk.axis import Axis
from cntk.core.graph.arguments import Flags, FunctionLike, InitLike, ShapeLike
from cntk.core.types.arguments import checked
from cntk.default_options import default_override_or, get_default_override
from cntk.initializer import glorot_uniform
from cntk.layers.arguments import INFERRED, activation_for, as_tuple, initializer_for, per_axis, shape_of_rank
from cntk.layers.basic_blocks import identity
from cntk.ops.functions import BlockFunction, Function
from cntk.variables import Parameter


@checked
def Convolution(
    filter_shape: ShapeLike,
    num_filters: int | None = None,
    sequential: bool = False,
    activation: FunctionLike | None = default_override_or(identity),
    init: InitLike = default_override_or(glorot_uniform()),
    pad: Flags = default_override_or(False),
    strides: ShapeLike = 1,
    sharing: bool = True,
    bias: bool = default_override_or(True),
    init_bias: InitLike = default_override_or(0),
    reduction_rank: int = 1,
    transpose_weight: bool = False,
    dilation: ShapeLike = 1,
    groups: int = 1,
    max_temp_mem_size_in_samples: int = 0,
    op_name: str = "Convolution",
    name: str = "",
) -> Function:
    """A convolution layer: activation(W * x + b), where * slides the filters ``W`` over the last axes of x without mirroring them.

    Args:
        filter_shape: size of the filters on each spatial axis, an int or a tuple of ints.
        num_filters: number of filters, the channels of the result; None for one filter and a result without channel axis.
        sequential: whether filters slide along the sequence axis, too: it is the first of the filters' axes, the others are
            static.  :func:`SequentialConvolution` does the same with a bias ``b`` that has no axis for it.
        activation: function applied to the result; None for none.
        init: initial value of ``W``, of shape (filters, channels, *filter_shape): a number or an initialiser; for
            *reduction_rank* 0 also an array of shape (filters, *filter_shape).
        pad: whether filters reach over the edge, where they meet zeros, so that the result is as large as the input divided by
            the stride; one value for all axes or one for each.
        strides: steps between positions of the filters, one for all axes or one for each.
        sharing: True, for all positions share the filters.
        bias: whether to add a parameter ``b`` of shape (filters, 1, ...).
        init_bias: initial value of ``b``: a number, an array or an initialiser.
        reduction_rank: 1 where the input has a channel axis, before the spatial ones; 0 where it has none.
        transpose_weight: False, for filters are not mirrored.
        dilation: steps between the elements of a filter, one for all axes or one for each.
        groups: 1; for grouped convolutions there is ``cntk.convolution``.
        max_temp_mem_size_in_samples: limit of working memory in samples; 0 for none.
        op_name: name of the block's operator.
        name: name of the block.

    Returns:
        A function of an input (channels, *spatial), or (*spatial) with *reduction_rank* 0; the result is (filters, *spatial').
        With *sequential* the result has a step for each place on the sequence axis, which is a new one unless it is padded
        and its stride is 1.

    Raises:
        ValueError: an argument has a value that is not allowed, or the wrong number of values.

    >>> from cntk.layers import Convolution
    >>> x = C.input_variable((3, 8, 8))
    >>> y = Convolution((3, 3), 16, activation=C.relu, pad=True, strides=2)(x)
    >>> y.shape, y.W.shape, y.b.shape
    ((16, 4, 4), (16, 3, 3, 3), (16, 1, 1))
    """
    return convolution_layer(
        "Convolution",
        filter_shape,
        num_filters,
        activation=get_default_override(Convolution, activation=activation),
        init=get_default_override(Convolution, init=init),
        pad=get_default_override(Convolution, pad=pad),
        strides=strides,
        sharing=sharing,
        bias=get_default_override(Convolution, bias=bias),
        init_bias=get_default_override(Convolution, init_bias=init_bias),
        reduction_rank=reduction_rank,
        transpose_weight=transpose_weight,
        dilation=dilation,
        groups=groups,
        max_temp_mem_size_in_samples=max_temp_mem_size_in_samples,
        sequential=sequential,
        bias_rank=len(as_tuple(filter_shape)),
        op_name=op_name,
        name=name,
    )


def convolution_layer(
    layer: str,
    filter_shape: Any,
    num_filters: int | None,
    *,
    activation: Any,
    init: Any,
    pad: Any,
    strides: Any,
    sharing: bool,
    bias: Any,
    init_bias: Any,
    reduction_rank: int,
    transpose_weight: bool,
    dilation: Any,
    groups: int,
    max_temp_mem_size_in_samples: int,
    sequential: bool,
    bias_rank: int,
    op_name: str,
    name: str,
) -> Function:
    """The common implementation of :func:`Convolution` and :func:`SequentialConvolution`, named *layer*.

    Args:
        bias_rank: number of axes of length 1 that the bias has behind the filters.
    """
    activation = activation_for(layer, activation)
    check_options(layer, reduction_rank, sharing)
    if transpose_weight:
        raise ValueError(f"{layer}: transpose_weight must be False; mirror the filters with ConvolutionTranspose")
    if groups != 1:
        raise ValueError(f"{layer}: groups must be 1, got {groups}; for several groups use cntk.convolution")

    filter_shape = as_tuple(filter_shape)
    rank = len(filter_shape)
    strides = per_axis(layer, "strides", strides, rank)
    pad = per_axis(layer, "pad", pad, rank)
    dilation = per_axis(layer, "dilation", dilation, rank)
    output_channels = (1,) if num_filters is None else as_tuple(num_filters)
    spatial_rank = rank - 1 if sequential else rank

    if isinstance(init, np.ndarray):
        initial = _filters_from_array(layer, init, () if num_filters is None else output_channels, filter_shape, reduction_rank)
    else:
        initial = initializer_for(init, filter_rank=rank, output_rank=-1)
    W = Parameter(output_channels + INFERRED + filter_shape, init=initial, name="W")
    b = Parameter(output_channels + (1,) * bias_rank, init=init_bias, name="b") if bias else None

    @BlockFunction(op_name, name)
    def convolve(x: Any) -> Any:
        r = ops.convolution(
            W,
            x if reduction_rank else add_channel_axis(x, spatial_rank),
            strides=(1, *strides),
            auto_padding=(False, *pad),
            sequential=sequential,
            dilation=dilation,
            max_temp_mem_size_in_samples=max_temp_mem_size_in_samples,
        )
        if b is not None:
            r = r + (b if bias_rank == spatial_rank else ops.reshape(b, (), begin_axis=1, end_axis=2))
        if num_filters is None:
            r = ops.reshape(r, (), begin_axis=0, end_axis=1)
        return activation(r)

    return convolve


def check_options(layer: str, reduction_rank: int, sharing: Any) -> None:
    """Refuse values of options that CNTK's signature has but no layer implements.

    Raises:
        ValueError: there is one.
    """
    if reduction_rank not in (0, 1):
        raise ValueError(f"{layer}: reduction_rank must be 0 (no channel axis) or 1, got {reduction_rank}")
    if not all(as_tuple(sharing)):
        raise ValueError(f"{layer}: sharing must be True; all positions share the filters")


def add_channel_axis(x: Any, spatial_rank: int) -> Any:
    """Insert an axis of one channel before the last *spatial_rank* axes."""
    place = -spatial_rank if spatial_rank else Axis.new_leading_axis()
    return ops.reshape(x, (1,), begin_axis=place, end_axis=place)


def _filters_from_array(layer: str, init: Any, output_channels: tuple[int, ...], filter_shape: tuple[int, ...], reduction_rank: int) -> Any:
    if reduction_rank != 0:
        raise ValueError(f"{layer}: init may be an array with reduction_rank=0 only; else give a number or an initializer")
    if init.shape != output_channels + filter_shape:
        raise ValueError(f"{layer}: init must have the filters' shape {output_channels + filter_shape}, got {init.shape}")
    return init.reshape((*(output_channels or (1,)), 1, *filter_shape))


@checked
def Convolution1D(
    filter_shape: ShapeLike,
    num_filters: int | None = None,
    activation: FunctionLike | None = default_override_or(identity),
    init: InitLike = default_override_or(glorot_uniform()),
    pad: Flags = default_override_or(False),
    strides: ShapeLike = 1,
    bias: bool = default_override_or(True),
    init_bias: InitLike = default_override_or(0),
    reduction_rank: int = 1,
    dilation: ShapeLike = 1,
    name: str = "",
) -> Function:
    """A convolution layer with one spatial axis.

    Args:
        filter_shape: size of the filters, an int.
        num_filters, activation, init, pad, strides, bias, init_bias, reduction_rank, dilation, name: as of :func:`Convolution`.

    Returns:
        A function of an input (channels, width); the result is (filters, width').

    Raises:
        ValueError: *filter_shape* has several axes, or as :func:`Convolution`.

    >>> from cntk.layers import Convolution1D
    >>> Convolution1D(3, 4, pad=True)(C.input_variable((2, 10))).shape
    (4, 10)
    """
    return Convolution(
        shape_of_rank("Convolution1D", filter_shape, 1),
        num_filters,
        activation=get_default_override(Convolution1D, activation=activation),
        init=get_default_override(Convolution1D, init=init),
        pad=get_default_override(Convolution1D, pad=pad),
        strides=strides,
        bias=get_default_override(Convolution1D, bias=bias),
        init_bias=get_default_override(Convolution1D, init_bias=init_bias),
        reduction_rank=reduction_rank,
        dilation=dilation,
        name=name,
    )


@checked
def Convolution2D(
    filter_shape: ShapeLike,
    num_filters: int | None = None,
    activation: FunctionLike | None = default_override_or(identity),
    init: InitLike = default_override_or(glorot_uniform()),
    pad: Flags = default_override_or(False),
    strides: ShapeLike = 1,
    bias: bool = default_override_or(True),
    init_bias: InitLike = default_override_or(0),
    reduction_rank: int = 1,
    dilation: ShapeLike = 1,
    groups: int = 1,
    name: str = "",
) -> Function:
    """A convolution layer with two spatial axes.

    Args:
        filter_shape: size of the filters, a pair, or an int for a square.
        num_filters, activation, init, pad, strides, bias, init_bias, reduction_rank, dilation, groups, name: as of
            :func:`Convolution`.

    Returns:
        A function of an input (channels, height, width); the result is (filters, height', width').

    Raises:
        ValueError: *filter_shape* has another number of axes, or as :func:`Convolution`.

    >>> from cntk.layers import Convolution2D
    >>> Convolution2D(3, 4)(C.input_variable((2, 10, 12))).shape
    (4, 8, 10)
    """
    return Convolution(
        shape_of_rank("Convolution2D", filter_shape, 2),
        num_filters,
        activation=get_default_override(Convolution2D, activation=activation),
        init=get_default_override(Convolution2D, init=init),
        pad=get_default_override(Convolution2D, pad=pad),
        strides=strides,
        bias=get_default_override(Convolution2D, bias=bias),
        init_bias=get_default_override(Convolution2D, init_bias=init_bias),
        reduction_rank=reduction_rank,
        dilation=dilation,
        groups=groups,
        name=name,
    )


@checked
def Convolution3D(
    filter_shape: ShapeLike,
    num_filters: int | None = None,
    activation: FunctionLike | None = default_override_or(identity),
    init: InitLike = default_override_or(glorot_uniform()),
    pad: Flags = default_override_or(False),
    strides: ShapeLike = 1,
    bias: bool = default_override_or(True),
    init_bias: InitLike = default_override_or(0),
    reduction_rank: int = 1,
    dilation: ShapeLike = 1,
    groups: int = 1,
    name: str = "",
) -> Function:
    """A convolution layer with three spatial axes.

    Args:
        filter_shape: size of the filters, a triple, or an int for a cube.
        num_filters, activation, init, pad, strides, bias, init_bias, reduction_rank, dilation, groups, name: as of
            :func:`Convolution`.

    Returns:
        A function of an input (channels, depth, height, width); the result is (filters, depth', height', width').

    Raises:
        ValueError: *filter_shape* has another number of axes, or as :func:`Convolution`.

    >>> from cntk.layers import Convolution3D
    >>> Convolution3D(3, 4)(C.input_variable((2, 5, 6, 7))).shape
    (4, 3, 4, 5)
    """
    return Convolution(
        shape_of_rank("Convolution3D", filter_shape, 3),
        num_filters,
        activation=get_default_override(Convolution3D, activation=activation),
        init=get_default_override(Convolution3D, init=init),
        pad=get_default_override(Convolution3D, pad=pad),
        strides=strides,
        bias=get_default_override(Convolution3D, bias=bias),
        init_bias=get_default_override(Convolution3D, init_bias=init_bias),
        reduction_rank=reduction_rank,
        dilation=dilation,
        groups=groups,
        name=name,
    )
