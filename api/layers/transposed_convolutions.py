"""Layers that slide filters over an image the other way: from each value to a patch of the result."""

from __future__ import annotations

from typing import Any

from cntk import ops
from cntk.core.graph.arguments import Flags, FunctionLike, InitLike, ShapeLike
from cntk.core.types.arguments import checked
from cntk.default_options import default_override_or, get_default_override
from cntk.initializer import glorot_uniform
from cntk.layers.arguments import INFERRED, activation_for, as_tuple, initializer_for, per_axis, shape_of_rank
from cntk.layers.basic_blocks import identity
from cntk.layers.convolutions import add_channel_axis, check_options
from cntk.ops.functions import BlockFunction, Function
from cntk.variables import Parameter


@checked
def ConvolutionTranspose(
    filter_shape: ShapeLike,
    num_filters: int,
    activation: FunctionLike | None = default_override_or(identity),
    init: InitLike = default_override_or(glorot_uniform()),
    pad: Flags = default_override_or(False),
    strides: ShapeLike = 1,
    sharing: bool = True,
    bias: bool = default_override_or(True),
    init_bias: InitLike = default_override_or(0),
    output_shape: ShapeLike | None = None,
    reduction_rank: int = 1,
    dilation: ShapeLike = 1,
    max_temp_mem_size_in_samples: int = 0,
    name: str = "",
) -> Function:
    """A transposed convolution layer: the gradient of a convolution with respect to its input, used to scale images up.

    Args:
        filter_shape: size of the filters on each spatial axis, an int or a tuple of ints.
        num_filters: channels of the result.
        activation: function applied to the result; None for none.
        init: initial value of ``W``, of shape (channels, filters, *filter_shape): a number or an initialiser.
        pad: whether the edges are cut off that a padded convolution would not see, so that the result measures
            (size - 1) * stride + 1; one value for all axes or one for each.
        strides: steps between the patches of neighbouring values, one for all axes or one for each.
        sharing: True, for all positions share the filters.
        bias: whether to add a parameter ``b`` of shape (filters, 1, ...).
        init_bias: initial value of ``b``: a number, an array or an initialiser.
        output_shape: spatial shape of the result, where it is to be another one that a convolution would map to the input's.
        reduction_rank: 1 where the input has a channel axis, before the spatial ones; 0 where it has none.
        dilation: steps between the elements of a filter, one for all axes or one for each.
        max_temp_mem_size_in_samples: limit of working memory in samples; 0 for none.
        name: name of the block.

    Returns:
        A function of an input (channels, *spatial), or (*spatial) with *reduction_rank* 0; the result is (filters, *spatial').

    Raises:
        ValueError: an argument has a value that is not allowed, or the wrong number of values.

    >>> from cntk.layers import ConvolutionTranspose
    >>> x = C.input_variable((3, 4, 4))
    >>> y = ConvolutionTranspose((3, 3), 2, strides=2, pad=True, output_shape=(8, 8))(x)
    >>> y.shape, y.W.shape
    ((2, 8, 8), (3, 2, 3, 3))
    """
    activation = activation_for("ConvolutionTranspose", get_default_override(ConvolutionTranspose, activation=activation))
    init = get_default_override(ConvolutionTranspose, init=init)
    pad = get_default_override(ConvolutionTranspose, pad=pad)
    bias = get_default_override(ConvolutionTranspose, bias=bias)
    init_bias = get_default_override(ConvolutionTranspose, init_bias=init_bias)
    check_options("ConvolutionTranspose", reduction_rank, sharing)

    filter_shape = as_tuple(filter_shape)
    rank = len(filter_shape)
    strides = per_axis("ConvolutionTranspose", "strides", strides, rank)
    pad = per_axis("ConvolutionTranspose", "pad", pad, rank)
    dilation = per_axis("ConvolutionTranspose", "dilation", dilation, rank)
    output_channels = as_tuple(num_filters)
    full_output_shape = None if output_shape is None else output_channels + as_tuple(output_shape)
    W = Parameter(INFERRED + output_channels + filter_shape, init=initializer_for(init, filter_rank=rank, output_rank=-1), name="W")
    b = Parameter(output_channels + (1,) * rank, init=init_bias, name="b") if bias else None

    @BlockFunction("ConvolutionTranspose", name)
    def convolve_transposed(x: Any) -> Any:
        r = ops.convolution_transpose(
            W,
            x if reduction_rank else add_channel_axis(x, rank),
            strides=(1, *strides),
            auto_padding=(False, *pad),
            output_shape=full_output_shape,
            dilation=dilation,
            max_temp_mem_size_in_samples=max_temp_mem_size_in_samples,
        )
        if b is not None:
            r = r + b
        return activation(r)

    return convolve_transposed


@checked
def ConvolutionTranspose1D(
    filter_shape: ShapeLike,
    num_filters: int,
    activation: FunctionLike | None = default_override_or(identity),
    init: InitLike = default_override_or(glorot_uniform()),
    pad: Flags = default_override_or(False),
    strides: ShapeLike = 1,
    bias: bool = default_override_or(True),
    init_bias: InitLike = default_override_or(0),
    output_shape: ShapeLike | None = None,
    reduction_rank: int = 1,
    dilation: ShapeLike = 1,
    name: str = "",
) -> Function:
    """A transposed convolution layer with one spatial axis.

    Args:
        filter_shape: size of the filters, an int.
        num_filters, activation, init, pad, strides, bias, init_bias, output_shape, reduction_rank, dilation, name: as of
            :func:`ConvolutionTranspose`.

    Returns:
        A function of an input (channels, width); the result is (filters, width').

    Raises:
        ValueError: *filter_shape* has several axes, or as :func:`ConvolutionTranspose`.

    >>> from cntk.layers import ConvolutionTranspose1D
    >>> ConvolutionTranspose1D(3, 4)(C.input_variable((2, 10))).shape
    (4, 12)
    """
    return ConvolutionTranspose(
        shape_of_rank("ConvolutionTranspose1D", filter_shape, 1),
        num_filters,
        activation=get_default_override(ConvolutionTranspose1D, activation=activation),
        init=get_default_override(ConvolutionTranspose1D, init=init),
        pad=get_default_override(ConvolutionTranspose1D, pad=pad),
        strides=strides,
        bias=get_default_override(ConvolutionTranspose1D, bias=bias),
        init_bias=get_default_override(ConvolutionTranspose1D, init_bias=init_bias),
        output_shape=output_shape,
        reduction_rank=reduction_rank,
        dilation=dilation,
        name=name,
    )


@checked
def ConvolutionTranspose2D(
    filter_shape: ShapeLike,
    num_filters: int,
    activation: FunctionLike | None = default_override_or(identity),
    init: InitLike = default_override_or(glorot_uniform()),
    pad: Flags = default_override_or(False),
    strides: ShapeLike = 1,
    bias: bool = default_override_or(True),
    init_bias: InitLike = default_override_or(0),
    output_shape: ShapeLike | None = None,
    reduction_rank: int = 1,
    dilation: ShapeLike = 1,
    name: str = "",
) -> Function:
    """A transposed convolution layer with two spatial axes.

    Args:
        filter_shape: size of the filters, a pair, or an int for a square.
        num_filters, activation, init, pad, strides, bias, init_bias, output_shape, reduction_rank, dilation, name: as of
            :func:`ConvolutionTranspose`.

    Returns:
        A function of an input (channels, height, width); the result is (filters, height', width').

    Raises:
        ValueError: *filter_shape* has another number of axes, or as :func:`ConvolutionTranspose`.

    >>> from cntk.layers import ConvolutionTranspose2D
    >>> ConvolutionTranspose2D(3, 4)(C.input_variable((2, 10, 12))).shape
    (4, 12, 14)
    """
    return ConvolutionTranspose(
        shape_of_rank("ConvolutionTranspose2D", filter_shape, 2),
        num_filters,
        activation=get_default_override(ConvolutionTranspose2D, activation=activation),
        init=get_default_override(ConvolutionTranspose2D, init=init),
        pad=get_default_override(ConvolutionTranspose2D, pad=pad),
        strides=strides,
        bias=get_default_override(ConvolutionTranspose2D, bias=bias),
        init_bias=get_default_override(ConvolutionTranspose2D, init_bias=init_bias),
        output_shape=output_shape,
        reduction_rank=reduction_rank,
        dilation=dilation,
        name=name,
    )


@checked
def ConvolutionTranspose3D(
    filter_shape: ShapeLike,
    num_filters: int,
    activation: FunctionLike | None = default_override_or(identity),
    init: InitLike = default_override_or(glorot_uniform()),
    pad: Flags = default_override_or(False),
    strides: ShapeLike = 1,
    bias: bool = default_override_or(True),
    init_bias: InitLike = default_override_or(0),
    output_shape: ShapeLike | None = None,
    reduction_rank: int = 1,
    dilation: ShapeLike = 1,
    name: str = "",
) -> Function:
    """A transposed convolution layer with three spatial axes.

    Args:
        filter_shape: size of the filters, a triple, or an int for a cube.
        num_filters, activation, init, pad, strides, bias, init_bias, output_shape, reduction_rank, dilation, name: as of
            :func:`ConvolutionTranspose`.

    Returns:
        A function of an input (channels, depth, height, width); the result is (filters, depth', height', width').

    Raises:
        ValueError: *filter_shape* has another number of axes, or as :func:`ConvolutionTranspose`.

    >>> from cntk.layers import ConvolutionTranspose3D
    >>> ConvolutionTranspose3D(3, 4)(C.input_variable((2, 5, 6, 7))).shape
    (4, 7, 8, 9)
    """
    return ConvolutionTranspose(
        shape_of_rank("ConvolutionTranspose3D", filter_shape, 3),
        num_filters,
        activation=get_default_override(ConvolutionTranspose3D, activation=activation),
        init=get_default_override(ConvolutionTranspose3D, init=init),
        pad=get_default_override(ConvolutionTranspose3D, pad=pad),
        strides=strides,
        bias=get_default_override(ConvolutionTranspose3D, bias=bias),
        init_bias=get_default_override(ConvolutionTranspose3D, init_bias=init_bias),
        output_shape=output_shape,
        reduction_rank=reduction_rank,
        dilation=dilation,
        name=name,
    )
