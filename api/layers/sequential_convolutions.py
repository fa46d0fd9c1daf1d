"""The layer that slides filters along sequences."""

from __future__ import annotations

from cntk.core.graph.arguments import Flags, FunctionLike, InitLike, ShapeLike
from cntk.core.types.arguments import checked
from cntk.default_options import default_override_or, get_default_override
from cntk.initializer import glorot_uniform
from cntk.layers.arguments import as_tuple
from cntk.layers.basic_blocks import identity
from cntk.layers.convolutions import convolution_layer
from cntk.ops.functions import Function


@checked
def SequentialConvolution(
    filter_shape: ShapeLike,
    num_filters: int | None = None,
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
    """A convolution layer along the sequence axis: activation(W * x + b), where * slides the filters ``W`` over the steps of a
    sequence and over the last static axes of each step.

    Every sequence is convolved by itself, whatever others are in the minibatch.

    Args:
        filter_shape: size of the filters along the sequence, in steps, then on each spatial axis: an int or a tuple of ints.
        num_filters: number of filters, the channels of the result; None for one filter and a result without channel axis.
        activation: function applied to the result; None for none.
        init: initial value of ``W``, of shape (filters, channels, *filter_shape): a number or an initialiser; for
            *reduction_rank* 0 also an array of shape (filters, *filter_shape).
        pad: whether filters reach over the edge, where they meet zeros, so that the result is as long as the sequence divided by
            the stride; one value for all axes of the filter or one for each.
        strides: steps between positions of the filters, one for all axes or one for each.
        sharing: True, for all positions share the filters.
        bias: whether to add a parameter ``b`` of shape (filters, 1, ...), with an axis for each spatial axis.
        init_bias: initial value of ``b``: a number, an array or an initialiser.
        reduction_rank: 1 where a step has a channel axis, before the spatial ones; 0 where it has none.
        transpose_weight: False, for filters are not mirrored.
        dilation: steps between the elements of a filter, one for all axes or one for each.
        groups: 1; for grouped convolutions there is ``cntk.convolution``.
        max_temp_mem_size_in_samples: limit of working memory in samples; 0 for none.
        op_name: name of the block's operator.
        name: name of the block.

    Returns:
        A function of sequences with steps of shape (channels, *spatial), or (*spatial) with *reduction_rank* 0; the result has
        steps of shape (filters, *spatial').  Its sequence axis is a new one unless it is padded and its stride is 1.

    Raises:
        ValueError: an argument has a value that is not allowed, or the wrong number of values.

    >>> from cntk.layers import SequentialConvolution
    >>> x = C.sequence.input_variable((3, 8))
    >>> y = SequentialConvolution((5, 3), 16, activation=C.relu, pad=(False, True), strides=(2, 1))(x)
    >>> y.shape, y.W.shape, y.b.shape
    ((16, 8), (16, 3, 5, 3), (16, 1))
    >>> [len(sequence) for sequence in y.eval([np.zeros((9, 3, 8), np.float32), np.zeros((5, 3, 8), np.float32)])]
    [3, 1]
    """
    return convolution_layer(
        "SequentialConvolution",
        filter_shape,
        num_filters,
        activation=get_default_override(SequentialConvolution, activation=activation),
        init=get_default_override(SequentialConvolution, init=init),
        pad=get_default_override(SequentialConvolution, pad=pad),
        strides=strides,
        sharing=sharing,
        bias=get_default_override(SequentialConvolution, bias=bias),
        init_bias=get_default_override(SequentialConvolution, init_bias=init_bias),
        reduction_rank=reduction_rank,
        transpose_weight=transpose_weight,
        dilation=dilation,
        groups=groups,
        max_temp_mem_size_in_samples=max_temp_mem_size_in_samples,
        sequential=True,
        bias_rank=len(as_tuple(filter_shape)) - 1,
        op_name=op_name,
        name=name,
    )


__all__ = ["SequentialConvolution"]
