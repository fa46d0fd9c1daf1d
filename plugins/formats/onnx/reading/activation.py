"""Readers of activations, and of operators that pass values on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ops import activation, arithmetic, comparison, maximum, softmax
from ....ops.dropout import dropout
from .arrays import Array, Unsupported, elementwise, fold, known, made, normal, reshape, static
from .elementary import read_erf, unary
from .importer import Operator
from .sizes import product


def of_attributes(compute: Callable[..., Any], operator: Callable[..., Any], **defaults: float) -> Callable[..., Array]:
    """The reader of an operator of one operand, and of attributes that are numbers."""

    def read(node: Operator, x: Array) -> Array:
        values = {name: node.attribute(name, default) for name, default in defaults.items()}
        return elementwise(lambda one: compute(one, **values), lambda one: operator(one, **values), x)

    return read


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, 0)


read_relu = unary(lambda x: np.maximum(x, 0), activation.relu)
read_sigmoid = unary(_sigmoid, activation.sigmoid)
read_tanh = unary(np.tanh, activation.tanh)
read_softplus = unary(_softplus, activation.softplus)
read_softsign = unary(lambda x: x / (1 + np.abs(x)), activation.softsign)
read_mish = unary(lambda x: x * np.tanh(_softplus(x)), lambda x: arithmetic.element_times(x, activation.tanh(activation.softplus(x))))

read_leaky_relu = of_attributes(lambda x, alpha: np.where(x < 0, alpha * x, x), activation.leaky_relu, alpha=0.01)
read_elu = of_attributes(lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x), activation.elu, alpha=1.0)
read_hard_sigmoid = of_attributes(
    lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    lambda x, alpha, beta: activation.hard_sigmoid(x, alpha, beta),
    alpha=0.2,
    beta=0.5,
)
read_selu = of_attributes(
    lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(x)),
    lambda x, alpha, gamma: activation.selu(x, gamma, alpha),
    alpha=1.67326319217681884765625,
    gamma=1.05070102214813232421875,
)
read_celu = of_attributes(
    lambda x, alpha: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)),
    lambda x, alpha: arithmetic.element_times(activation.elu(arithmetic.element_times(x, 1 / alpha)), alpha),
    alpha=1.0,
)
read_thresholded_relu = of_attributes(
    lambda x, alpha: np.where(x > alpha, x, 0),
    lambda x, alpha: arithmetic.element_times(x, comparison.greater(x, alpha)),
    alpha=1.0,
)
read_swish = of_attributes(
    lambda x, alpha: x * _sigmoid(alpha * x),
    lambda x, alpha: arithmetic.element_times(x, activation.sigmoid(arithmetic.element_times(x, alpha))),
    alpha=1.0,
)
read_hard_swish = unary(
    lambda x: x * np.clip(x / 6 + 0.5, 0, 1), lambda x: arithmetic.element_times(x, activation.hard_sigmoid(x, 1 / 6, 0.5))
)


def _shrunk(x: Any, lambd: float, bias: float) -> Any:
    low, high = comparison.less(x, -lambd), comparison.greater(x, lambd)
    return arithmetic.plus(
        arithmetic.element_times(low, arithmetic.plus(x, bias)), arithmetic.element_times(high, arithmetic.minus(x, bias))
    )


read_shrink = of_attributes(
    lambda x, lambd, bias: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)), _shrunk, lambd=0.5, bias=0.0
)


def read_gelu(node: Operator, x: Array) -> Array:
    if node.attribute("approximate", "none") == "tanh":
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * 0.5 * (elementwise(np.tanh, activation.tanh, inner) + 1)
    return x * 0.5 * (read_erf(node, x / math.sqrt(2)) + 1)


def read_p_relu(node: Operator, x: Array, slope: Array) -> Array:
    """The slopes of as many numbers as there are channels are lined up with these before version 7."""
    if node.version < 7 and slope.rank == 1 and slope.dims[0] != 1:
        slope = reshape(slope, [-1, *[1] * (x.rank - 2)])
    zero = known(0, x.dtype)
    return elementwise(np.maximum, maximum.element_max, x, zero) + slope * elementwise(np.minimum, maximum.element_min, x, zero)


# ---- softmax and its like ------------------------------------------------------------------------


def along_axis(operator: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Array]:
    """The reader of an operator that works along an axis, before version 13 along all from an axis on."""

    def read(node: Operator, x: Array) -> Array:
        axis = normal(node.attribute("axis", 1 if node.version < 13 else -1), x.rank) if x.rank else 0
        if node.version >= 13 or axis == x.rank - 1:
            return apply(x, axis)
        flat = reshape(x, [*x.dims[:axis], product(x.dims[axis:])])
        return reshape(apply(flat, axis), x.dims)

    def apply(x: Array, axis: int) -> Array:
        if x.is_known:
            return fold(lambda one: compute(one, axis), x, dtype=x.dtype)
        if x.batch == axis:
            x = static(x)
        place = axis - (x.batch is not None and axis > x.batch)
        return made(operator(x.held(), place), x.dims, x.dtype, x.batch)

    read.apply = apply  # type: ignore[attr-defined]
    return read


def _number_softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


read_softmax = along_axis(softmax.softmax, _number_softmax)
read_log_softmax = along_axis(softmax.log_softmax, lambda x, axis: np.log(_number_softmax(x, axis)))


def softmax_over(x: Array, axis: int) -> Array:
    """The softmax along an axis."""
    return read_softmax.apply(x, normal(axis, x.rank))  # type: ignore[attr-defined]


def log_softmax_over(x: Array, axis: int) -> Array:
    """The logarithm of the softmax along an axis."""
    return read_log_softmax.apply(x, normal(axis, x.rank))  # type: ignore[attr-defined]


def read_hardmax(node: Operator, x: Array) -> Array:
    """1 at the first largest element along an axis, before version 13 of all from an axis on."""
    from .reductions import arg_extremum
    from .selections import one_hot

    axis = normal(node.attribute("axis", 1 if node.version < 13 else -1), x.rank)
    flat = reshape(x, [*x.dims[:axis], product(x.dims[axis:])]) if node.version < 13 else x
    chosen = arg_extremum(flat, axis, largest=True)
    hot = one_hot(chosen, flat.dims[axis], flat.rank - 1 if axis == flat.rank - 1 else axis, x.dtype)
    return reshape(hot, x.dims)


# ---- values passed on ----------------------------------------------------------------------------


def read_identity(node: Operator, x: Array) -> Array:
    return x


def read_dropout(node: Operator, x: Array, ratio: Array | None = None, training: Array | None = None) -> Any:
    """Dropout works in training, as ours does, and does nothing elsewhere; its mask is then all true."""
    rate = float(node.attribute("ratio", 0.5)) if node.version < 12 else float(ratio.numbers) if ratio is not None else 0.5
    if training is not None and bool(training.numbers) and node.version >= 12 and rate > 0:
        raise Unsupported("dropout that is to work outside training; its results are random")
    if node.outputs > 1 and node.wanted[1]:
        return x, known(np.ones((), np.bool_), dims=x.dims)
    if x.is_known or not 0 < rate < 1:
        return x
    return made(dropout(x.held(), rate), x.dims, x.dtype, x.batch)
