"""Layers that bring values to mean 0 and variance 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntk import ops
from cntk.core.common.dtypes import as_dtype, computing_type
from cntk.core.graph.arguments import InitLike
from cntk.core.types.arguments import checked
from cntk.default_options import default_override_or, get_default_override
from cntk.layers.arguments import INFERRED
from cntk.ops.functions import BlockFunction, Function
from cntk.variables import Constant, Parameter


@checked
def BatchNormalization(
    map_rank: int | None = default_override_or(None),
    init_scale: InitLike = 1,
    normalization_time_constant: float = default_override_or(5000),
    blend_time_constant: float = 0,
    epsilon: float = default_override_or(0.00001),
    use_cntk_engine: bool = default_override_or(False),
    disable_regularization: bool = default_override_or(False),
    name: str = "",
) -> Function:
    """A layer that normalises over the minibatch: scale · (x - mean) / sqrt(variance + epsilon) + bias.

    Training uses the minibatch's own statistics and updates running ones, which evaluation uses.  The parameters ``scale`` and
    ``bias`` and the constants ``aggregate_mean``, ``aggregate_variance`` and ``aggregate_count`` are float32 for input of 16 bits.

    Args:
        map_rank: 1 for one mean and variance a channel, the first static axis; None for one an element.
        init_scale: initial value of ``scale``.
        normalization_time_constant: number of samples over which running statistics forget; 0 for those of the last minibatch,
            negative for the average over all.
        blend_time_constant: number of samples' worth that running statistics weigh against those of the minibatch in training.
        epsilon: added to the variance.
        use_cntk_engine: which implementation CNTK used on GPUs; makes no difference here.
        disable_regularization: whether regularisation of learners leaves scale and bias alone.
        name: name of the block.

    Returns:
        A function of an input with a batch axis; the result has the same shape and axes.

    Raises:
        ValueError: *map_rank* is neither None nor 1.

    Source: S. Ioffe, C. Szegedy, "Batch normalization", ICML 2015.

    >>> from cntk.layers import BatchNormalization
    >>> x = C.input_variable((3, 4, 4))
    >>> y = BatchNormalization(map_rank=1)(x)
    >>> y.shape, y.scale.shape
    ((3, 4, 4), (3,))
    """
    map_rank = get_default_override(BatchNormalization, map_rank=map_rank)
    normalization_time_constant = get_default_override(BatchNormalization, normalization_time_constant=normalization_time_constant)
    epsilon = get_default_override(BatchNormalization, epsilon=epsilon)
    use_cntk_engine = get_default_override(BatchNormalization, use_cntk_engine=use_cntk_engine)
    disable_regularization = get_default_override(BatchNormalization, disable_regularization=disable_regularization)
    if map_rank not in (None, 1):
        raise ValueError(f"BatchNormalization: map_rank must be None (an element each) or 1 (a channel each), got {map_rank}")

    dtype = as_dtype(get_default_override(None, dtype=default_override_or(np.float32)))
    statistics_dtype = computing_type(dtype).type
    scale = Parameter(INFERRED, init=init_scale, dtype=statistics_dtype, name="scale")
    bias = Parameter(INFERRED, init=0, dtype=statistics_dtype, name="bias")
    mean = Constant(0, shape=INFERRED, dtype=statistics_dtype, name="aggregate_mean")
    variance = Constant(0, shape=INFERRED, dtype=statistics_dtype, name="aggregate_variance")
    count = Constant(0, shape=(), dtype=statistics_dtype, name="aggregate_count")

    @BlockFunction("BatchNormalization", name)
    def batch_normalize(x: Any) -> Any:
        return ops.batch_normalization(
            x,
            scale,
            bias,
            mean,
            variance,
            running_count=count,
            spatial=map_rank == 1,
            normalization_time_constant=normalization_time_constant,
            blend_time_constant=blend_time_constant,
            epsilon=epsilon,
            use_cudnn_engine=not use_cntk_engine,
            disable_regularization=disable_regularization,
        )

    return batch_normalize


@checked
def LayerNormalization(
    initial_scale: InitLike = 1, initial_bias: InitLike = 0, epsilon: float = default_override_or(0.00001), name: str = ""
) -> Function:
    """A layer that normalises each sample over all its static axes: scale · (x - mean) / (deviation + epsilon) + bias.

    Args:
        initial_scale, initial_bias: initial values of the parameters ``scale`` and ``bias``, of the shape of the last static axis.
        epsilon: added to the standard deviation; 0 to add nothing.
        name: name of the block.

    Returns:
        A function of an input of any shape and dynamic axes; the result has the same.

    Source: J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", arXiv:1607.06450, 2016.

    >>> from cntk.layers import LayerNormalization
    >>> x = C.input_variable(4)
    >>> LayerNormalization()(x).eval({x: [[1, 1, 3, 3]]}).round(3)
    array([[-1., -1.,  1.,  1.]], dtype=float32)
    """
    epsilon = get_default_override(LayerNormalization, epsilon=epsilon)
    scale = Parameter(INFERRED, init=initial_scale, name="scale")
    bias = Parameter(INFERRED, init=initial_bias, name="bias")

    @BlockFunction("LayerNormalization", name)
    def layer_normalize(x: Any) -> Any:
        centred = x - ops.reduce_mean(x)
        deviation = ops.sqrt(ops.reduce_mean(centred * centred))
        if epsilon != 0:
            deviation = deviation + epsilon
        return centred / deviation * scale + bias

    return layer_normalize
