"""Writes attention of sequences: two products of matrices, and a softmax between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .reductions import masked
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def attention(op: Any, to: ModelWriter, query: Value, key: Value, value: Value) -> str:
    """Write averages of a sequence's values for each step of another; steps in the padding get no weight."""
    products = to.node("MatMul", query.name, to.transpose(key.name, [0, 2, 1]))
    scores = to.node("Mul", products, _factor(op, to, query))
    axis = key.axes[1]
    if to.has_lengths(axis):
        scores = to.node("Where", to.unsqueeze(to.mask(axis), [1]), scores, to.constant(-np.inf, query.dtype))
    return str(to.node("MatMul", to.node("Softmax", scores, axis=2), masked(to, value, 0).name))


def _factor(op: Any, to: ModelWriter, query: Value) -> str:
    """The number that products are multiplied by."""
    (size,) = query.shape
    if op.scale is not None or size > 0:
        return str(to.constant(size**-0.5 if op.scale is None else op.scale, query.dtype))
    return str(to.node("Pow", to.cast(to.size(query.name, 2), query.dtype), to.constant(-0.5, query.dtype)))
