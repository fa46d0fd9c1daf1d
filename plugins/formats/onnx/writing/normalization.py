"""Writes normalisations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .....core.common.dtypes import is_half, limits_of
from .....core.common.shape import size_of
from .reductions import reduced
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter

_IMAGE = 3
"""How many static axes images have."""


def batch_normalization(op: Any, to: ModelWriter, x: Value, *vectors: Value) -> str:
    """Write the normalisation by the running statistics.  The last operand, the number of samples seen, is for training."""
    has_channels = op.spatial and len(x.shape) > 0
    images = to.merged(x) if has_channels else to.merged(x, [size_of(vectors[0].shape)])
    scale, bias, mean, variance = (to.with_static(vector, [-1]) if len(vector.shape) != 1 else vector.name for vector in vectors[:4])
    wide = vectors[2].dtype
    if is_half(x.dtype) and wide != vectors[0].dtype:  # ONNX wants scale and bias of the operand's type, or all four of one
        scale, bias = (to.cast(one, wide) if vector.dtype != wide else one for one, vector in zip((scale, bias), vectors, strict=False))
    made = str(to.node("BatchNormalization", images, scale, bias, mean, variance, epsilon=float(op.epsilon)))
    if x.leading == 1 and has_channels:
        return made
    return to.split(made, x, x.shape)


def local_response(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the normalisation by neighbouring channels; programs have it for images alone."""
    images, rank = to.merged(x), len(x.shape)
    if rank > _IMAGE:
        images = to.reshape(images, [0, 0, -1, 1])
    more = list(range(1 + rank, 1 + _IMAGE))
    size = 2 * op.depth_radius + 1
    settings = {"size": size, "alpha": float(op.alpha), "beta": float(op.beta), "bias": float(op.bias)}
    made = to.squeeze(to.single("LRN", x.dtype, to.unsqueeze(images, more), **settings), more)
    if x.leading == 1 and rank <= _IMAGE:
        return made
    return to.reshape(made, to.sizes(x))


def mean_variance(op: Any, to: ModelWriter, x: Value) -> str:
    """Write a sample, or each channel, less its mean and divided by its deviation; epsilon is added to the deviation itself."""
    rank = len(x.shape)
    first = 0 if op.use_stats_across_channels or rank < 2 else 1
    axes = list(range(x.leading + first, x.rank))
    operand = to.widened(x)
    wide = operand.dtype
    lowered = operand.called(str(to.node("Sub", operand.name, reduced(to, "ReduceMean", operand, axes, True))))
    made = lowered.name
    if op.do_variance_scaling:
        squares = lowered.called(str(to.node("Mul", lowered.name, lowered.name)))
        deviation = to.node("Sqrt", reduced(to, "ReduceMean", squares, axes, True))
        deviation = to.node("Max", deviation, to.constant(limits_of(x.dtype).tiny, wide))
        made = str(to.node("Div", made, to.node("Add", deviation, to.constant(op.epsilon, wide))))
    return to.narrowed(operand.called(made), x.dtype)
