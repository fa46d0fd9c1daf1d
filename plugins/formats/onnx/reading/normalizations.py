"""Readers of normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from .....core.common.dtypes import is_half
from .....core.graph.variable import Constant
from ....ops import arithmetic, elementary
from ....ops.batch_normalization import batch_normalization
from ....ops.normalization import local_response_normalization
from .arrays import Array, Unsupported, batched, elementwise, known, made, normal, reshape, slice_
from .elementary import read_pow
from .importer import Operator
from .reductions import l1_over, l2_over, mean_over
from .shapes import padded


def root(x: Array) -> Array:
    """The square root of each element."""
    return elementwise(np.sqrt, elementary.sqrt, x)


def squared(x: Array) -> Array:
    """The square of each element."""
    return elementwise(np.square, arithmetic.square, x)


def standardized(x: Array, axes: list[int], epsilon: float) -> tuple[Array, Array, Array]:
    """The array without its mean over axes and with variance 1, the mean, and one divided by the standard deviation."""
    mean = mean_over(x, axes)
    centred = x - mean
    inverse = 1.0 / root(mean_over(squared(centred), axes) + epsilon)
    return centred * inverse, mean, inverse


def by_channel(numbers: Array, x: Array) -> Array:
    """A number for each channel, lined up with an array of which the second axis is the channels."""
    return reshape(numbers, [-1, *[1] * (x.rank - 2)])


def read_batch_normalization(node: Operator, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Any:
    epsilon = node.attribute("epsilon", 1e-5)
    if node.attribute("training_mode", 0) and node.version >= 14:
        return _trained(node, x, scale, bias, mean, variance, epsilon)
    if any(node.wanted[1:]):
        raise Unsupported("the statistics of batch normalisation as results")
    spatial = bool(node.attribute("spatial", 1))
    if spatial and mean.is_known and variance.is_known and not x.is_known and x.rank > 1:
        x = batched(x)
        kind = statistics = x.storage
        if is_half(kind):  # beside these the others may be of float32
            kind = max((scale.dtype, bias.dtype), key=lambda one: one.itemsize)
            statistics = max((mean.dtype, variance.dtype), key=lambda one: one.itemsize)
        found = batch_normalization(
            x.held(),
            scale.held(kind),
            bias.held(kind),
            _statistic(mean, statistics),
            _statistic(variance, statistics),
            spatial=True,
            epsilon=epsilon,
            running_count=Constant(1.0, dtype=np.float32),
        )
        return made(found, x.dims, x.dtype, 0)
    line = (lambda one: by_channel(one, x)) if spatial and x.rank > 1 else (lambda one: one)
    return (x - line(mean)) / root(line(variance) + epsilon) * line(scale) + line(bias)


def _statistic(numbers: Array, dtype: Any) -> Constant:
    """A running statistic, which training changes and learners do not."""
    return Constant(numbers.numbers.astype(dtype), dtype=dtype, name=numbers.name)


def _trained(node: Operator, x: Array, scale: Array, bias: Array, mean: Array, variance: Array, epsilon: float) -> tuple[Array, ...]:
    """Normalisation by the statistics of the minibatch, which move the running ones."""
    axes = [axis for axis in range(x.rank) if axis != 1]
    momentum = node.attribute("momentum", 0.9)
    result, own_mean, _ = standardized(x, axes, epsilon)
    own_variance = mean_over(squared(x - own_mean), axes)
    moved = [old * momentum + reshape(new, [x.dims[1]]) * (1 - momentum) for old, new in ((mean, own_mean), (variance, own_variance))]
    return result * by_channel(scale, x) + by_channel(bias, x), *moved


def read_instance_normalization(node: Operator, x: Array, scale: Array, bias: Array) -> Array:
    result, _, _ = standardized(x, list(range(2, x.rank)), node.attribute("epsilon", 1e-5))
    return result * by_channel(scale, x) + by_channel(bias, x)


def read_layer_normalization(node: Operator, x: Array, scale: Array, bias: Array | None = None) -> tuple[Array, ...]:
    axis = normal(node.attribute("axis", -1), x.rank)
    result, mean, inverse = standardized(x, list(range(axis, x.rank)), node.attribute("epsilon", 1e-5))
    result = result * scale
    return (result if bias is None else result + bias), mean, inverse


def read_rms_normalization(node: Operator, x: Array, scale: Array) -> Array:
    axis = normal(node.attribute("axis", -1), x.rank)
    power = mean_over(squared(x), list(range(axis, x.rank)))
    return x / root(power + node.attribute("epsilon", 1e-5)) * scale


def read_group_normalization(node: Operator, x: Array, scale: Array, bias: Array) -> Array:
    """Scale and bias are one number a group before version 21, one a channel from then on."""
    groups, channels = node.required("num_groups"), x.dims[1]
    parted = reshape(x, [x.dims[0], groups, channels // groups, *x.dims[2:]])
    result, _, _ = standardized(parted, list(range(2, parted.rank)), node.attribute("epsilon", 1e-5))
    if node.version < 21:
        return reshape(result * by_channel(scale, parted) + by_channel(bias, parted), x.dims)
    return reshape(result, x.dims) * by_channel(scale, x) + by_channel(bias, x)


def read_mean_variance_normalization(node: Operator, x: Array) -> Array:
    usual = [0, 1, 2, 3] if node.attribute("across_channels", 0) else [0, 2, 3]
    axes = [normal(axis, x.rank) for axis in node.attribute("axes", usual)]
    centred = x - mean_over(x, axes)
    if not node.attribute("normalize_variance", 1):
        return centred
    return centred / (root(mean_over(squared(centred), axes)) + 1e-9)


def read_lp_normalization(node: Operator, x: Array) -> Array:
    axis, p = normal(node.attribute("axis", -1), x.rank), node.attribute("p", 2)
    if p not in (1, 2):
        raise Unsupported(f"a norm of order {p}")
    return x / (l1_over if p == 1 else l2_over)(x, [axis])


def read_lrn(node: Operator, x: Array) -> Array:
    size = node.required("size")
    alpha, beta, bias = node.attribute("alpha", 0.0001), node.attribute("beta", 0.75), node.attribute("bias", 1.0)
    if size % 2 and not x.is_known and bias > 0:
        x = batched(x)
        found = local_response_normalization(x.held(), size // 2, bias, alpha, beta)
        return made(found, x.dims, x.dtype, 0)
    before, channels = (size - 1) // 2, x.dims[1]
    powers = padded(
        squared(x),
        [before if axis == 1 else 0 for axis in range(x.rank)],
        [size - 1 - before if axis == 1 else 0 for axis in range(x.rank)],
    )
    total = slice_(powers, 1, 0, channels)
    for at in range(1, size):
        total = total + slice_(powers, 1, at, at + channels)
    return x / read_pow(node, total * (alpha / size) + bias, known(np.array(beta, x.dtype)))
