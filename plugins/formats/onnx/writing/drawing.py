"""Writes random numbers: other ones than here, of the same distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..tensors import code_of
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def uniform(op: Any, to: ModelWriter, *like: Value) -> str:
    """Write uniform numbers between two bounds."""
    low, high = op.arguments
    dtype = to.result.dtype
    numbers = _rounded(_drawn("RandomUniform", to, like, low=low, high=high), to)
    below = np.nextafter(dtype.type(high), dtype.type(low))
    return str(to.node("Min", numbers, to.constant(below, dtype)))  # rounding may have reached the bound


def normal(op: Any, to: ModelWriter, *like: Value) -> str:
    """Write normal numbers."""
    mean, scale = op.arguments
    dtype = to.result.dtype
    if scale:
        return _rounded(_drawn("RandomNormal", to, like, mean=mean, scale=scale), to)
    numbers = _rounded(_drawn("RandomNormal", to, like), to)  # programs do not draw without a deviation
    return str(to.node("Add", to.node("Mul", numbers, to.constant(0, dtype)), to.constant(mean, dtype)))


def gumbel(op: Any, to: ModelWriter, *like: Value) -> str:
    """Write Gumbel numbers, by inverting the distribution function."""
    location, scale = op.arguments
    kind = _drawn_in(to)
    least = np.finfo(kind).epsneg  # of 0 and of 1 the logarithm's logarithm is infinite
    numbers = to.node("Clip", _drawn("RandomUniform", to, like), to.constant(least, kind), to.constant(1 - least, kind))
    exponent = to.node("Log", to.node("Neg", to.node("Log", numbers)))
    drawn = to.node("Sub", to.constant(location, kind), to.node("Mul", exponent, to.constant(scale, kind)))
    return _rounded(str(drawn), to)


def bernoulli(op: Any, to: ModelWriter, *like: Value) -> str:
    """Write 1 with a probability, otherwise 0."""
    (mean,) = op.arguments
    smaller = to.node("Less", _drawn("RandomUniform", to, like), to.constant(mean, _drawn_in(to)))
    return to.cast(str(smaller), to.result.dtype)


def _drawn(op_type: str, to: ModelWriter, like: tuple[Value, ...], **arguments: Any) -> str:
    """Numbers of the shape of an operand, or of a shape of their own, in at least single precision."""
    kind = _drawn_in(to)
    if like:
        size = to.shape([*to.dynamic_sizes(like[0].axes), *to.static_sizes(like[0])])
        return str(to.node(f"{op_type}Like", to.node("Expand", to.constant(0, kind), size), dtype=code_of(kind), **arguments))
    return str(to.node(op_type, shape=to.result.shape, dtype=code_of(kind), **arguments))


def _drawn_in(to: ModelWriter) -> np.dtype[Any]:
    """The element type in which numbers are drawn."""
    return np.dtype(np.promote_types(to.result.dtype, np.float32))


def _rounded(numbers: str, to: ModelWriter) -> str:
    """Drawn numbers in the element type of the result."""
    return numbers if _drawn_in(to) == to.result.dtype else to.cast(numbers, to.result.dtype)
