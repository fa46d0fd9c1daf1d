"""Writes sums, maxima and the like over the steps of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.common.shape import size_of
from .reductions import masked, reduced
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def total(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the sum over the steps."""
    return reduced(to, "ReduceSum", masked(to, x, 0), [1], False)


def greatest(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the maximum over the steps."""
    return reduced(to, "ReduceMax", masked(to, x, -np.inf), [1], False)


def softmax(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the softmax over the steps."""
    return str(to.node("Softmax", masked(to, x, -np.inf).name, axis=1))


def product(op: Any, to: ModelWriter, left: Value, right: Value) -> str:
    """Write the products of each step of two sequences, summed up over the steps: those of matrices that have them beside each other."""
    axes = max(left.axes, right.axes, key=len)
    left, right = to.spread(left, axes), to.spread(right, axes)
    summed = len(right.shape) - op.output_rank
    m, k, n = (size_of(shape) for shape in (left.shape[: len(left.shape) - summed], right.shape[:summed], right.shape[summed:]))
    rows = to.transpose(to.reshape(masked(to, left, 0).name, [0, 0, m, k]), [0, 2, 1, 3])
    flat_rows = to.reshape(rows, [0, 0, -1])
    columns = to.reshape(masked(to, right, 0).name, [0, -1, n])
    return to.shaped_like(to.node("MatMul", flat_rows, columns), to.result)
