"""Writes random numbers: other ones than here, of the same distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..tensors import code_of
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter

_LEAST = 2.0**-24
"""What the logarithm is taken of in place of 0."""


def uniform(op: Any, to: ModelWriter, *like: Value) -> str:
    """Write uniform numbers between two bounds."""
    low, high = op.arguments
    return _drawn("RandomUniform", to, like, low=low, high=high)


def normal(op: Any, to: ModelWriter, *like: Value) -> str:
    """Write normal numbers."""
    mean, scale = op.arguments
    if scale:
        return _drawn("RandomNormal", to, like, mean=mean, scale=scale)
    numbers, dtype = _drawn("RandomNormal", to, like), to.result.dtype  # programs do not draw without a deviation
    return str(to.node("Add", to.node("Mul", numbers, to.constant(0, dtype)), to.constant(mean, dtype)))


def gumbel(op: Any, to: ModelWriter, *like: Value) -> str:
    """Write Gumbel numbers, by inverting the distribution function."""
    location, scale = op.arguments
    dtype = to.result.dtype
    numbers = to.node("Max", _drawn("RandomUniform", to, like), to.constant(_LEAST, dtype))
    exponent = to.node("Log", to.node("Neg", to.node("Log", numbers)))
    return str(to.node("Sub", to.constant(location, dtype), to.node("Mul", exponent, to.constant(scale, dtype))))


def bernoulli(op: Any, to: ModelWriter, *like: Value) -> str:
    """Write 1 with a probability, otherwise 0."""
    (mean,) = op.arguments
    dtype = to.result.dtype
    return to.cast(to.node("Less", _drawn("RandomUniform", to, like), to.constant(mean, dtype)), dtype)


def _drawn(op_type: str, to: ModelWriter, like: tuple[Value, ...], **arguments: Any) -> str:
    """Numbers of the shape of an operand, or of a shape of their own."""
    dtype = to.result.dtype
    kind = np.dtype(np.promote_types(dtype, np.float32))
    if like:
        size = to.shape([*to.dynamic_sizes(like[0].axes), *to.static_sizes(like[0])])
        made = to.node(f"{op_type}Like", to.node("Expand", to.constant(0, kind), size), dtype=code_of(kind), **arguments)
    else:
        made = to.node(op_type, shape=to.result.shape, dtype=code_of(kind), **arguments)
    return str(made) if kind == dtype else to.cast(made, dtype)
