"""Writes sums, maxima and the like over the steps of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .....core.common.shape import size_of
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def total(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the sum over the steps."""
    return str(to.node("ReduceSum", _without_padding(to, x, 0), to.integers(1), keepdims=0))


def greatest(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the maximum over the steps."""
    return str(to.node("ReduceMax", _without_padding(to, x, -float("inf")), to.integers(1), keepdims=0))


def softmax(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the softmax over the steps."""
    return str(to.node("Softmax", _without_padding(to, x, -float("inf")), axis=1))


def product(op: Any, to: ModelWriter, left: Value, right: Value) -> str:
    """Write the products of each step of two sequences, summed up over the steps: those of matrices that have them beside each other."""
    summed = len(right.shape) - op.output_rank
    m, k, n = (size_of(shape) for shape in (left.shape[: len(left.shape) - summed], right.shape[:summed], right.shape[summed:]))
    rows = to.transpose(to.reshape(_without_padding(to, left, 0), [0, 0, m, k]), [0, 2, 1, 3])
    flat_rows = to.reshape(rows, [0, 0, -1])
    columns = to.reshape(_without_padding(to, right, 0), [0, -1, n])
    return to.shaped_like(to.node("MatMul", flat_rows, columns), to.result)


def _without_padding(to: ModelWriter, x: Value, fill: float) -> str:
    """Sequences with a number in the steps that belong to none, which changes nothing."""
    axis = x.axes[1]
    return to.masked(x, axis, fill).name if to.has_lengths(axis) else x.name
