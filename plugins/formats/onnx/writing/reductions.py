"""Writes reductions: over static axes, over the batch, and over all axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.types.axis import static_axis_number
from ....ops.extremum import ArgMax, ReduceMax, ReduceMin
from ....ops.norm import ReduceL1, ReduceL2, ReduceSumSquare
from ....ops.reduction import ReduceLogSum, ReduceMean, ReduceProd, ReduceSum
from ....ops.reduction_base import ALL_AXES, ALL_STATIC, Reduction
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter

_KINDS: dict[type[Reduction], tuple[str, float]] = {
    ReduceSum: ("ReduceSum", 0),
    ReduceMean: ("ReduceMean", 0),
    ReduceProd: ("ReduceProd", 1),
    ReduceLogSum: ("ReduceLogSumExp", -np.inf),
    ReduceMax: ("ReduceMax", -np.inf),
    ReduceMin: ("ReduceMin", np.inf),
    ReduceL1: ("ReduceL1", 0),
    ReduceL2: ("ReduceL2", 0),
    ReduceSumSquare: ("ReduceSumSquare", 0),
}
"""The operator, and the number that makes no difference to it."""
AXES_ARE_AN_INPUT = 18
"""Version of ONNX's operators since which all reductions take their axes as an operand; the sum did before."""


def reduction(op: Any, to: ModelWriter, x: Value) -> str:
    """Write a reduction."""
    op_type, neutral = next(kind for cls, kind in _KINDS.items() if isinstance(op, cls))
    over_batch = any(axis.is_batch_axis for axis in op.axis_vec)
    if op.axis_vec == ALL_STATIC:
        axes, keeps = list(range(x.leading, x.rank)), False
    elif op.axis_vec == ALL_AXES:
        axes, keeps = list(range(x.rank)), False
        if op_type == "ReduceMean" and x.leading > 1:
            return _mean_of_steps(to, x)
        x = masked(to, x, neutral)
    else:
        static = {x.axis(static_axis_number(axis, len(x.shape), op.reduction_op_name)) for axis in op.axis_vec if axis.is_static_axis}
        axes, keeps = sorted(static | ({0} if over_batch else set())), op.reduction_keep_dimensions
    made = reduced(to, op_type, x, axes, keeps)
    return to.squeeze(made, [0]) if over_batch and keeps else made


def reduced(to: ModelWriter, op_type: str, x: Value, axes: Sequence[int], keepdims: bool) -> str:
    """A reduction over axes, numbered as in the file."""
    name = x.name
    if not axes:  # ONNX takes none for all
        name, axes, keepdims = to.unsqueeze(name, [x.rank]), [x.rank], False
    if to.opset >= AXES_ARE_AN_INPUT or op_type == "ReduceSum":
        return str(to.node(op_type, name, to.integers(*axes), keepdims=keepdims))
    return str(to.node(op_type, name, axes=axes, keepdims=keepdims))


def total(to: ModelWriter, x: Value) -> str:
    """The sum of all elements of all steps and samples."""
    return reduced(to, "ReduceSum", masked(to, x, 0), list(range(x.rank)), False)


def masked(to: ModelWriter, x: Value, fill: float) -> Value:
    """A value with a number in all steps that belong to no sequence."""
    for axis in x.axes[1:]:
        if to.has_lengths(axis):
            x = to.masked(x, axis, fill)
    return x


def count(to: ModelWriter, x: Value) -> str:
    """How many elements there are in all steps and samples, as float32."""
    ones = to.node("Expand", to.constant(1, np.float32), to.node("Shape", x.name))
    return total(to, Value(ones, x.shape, np.dtype(np.float32), x.axes))


def _mean_of_steps(to: ModelWriter, x: Value) -> str:
    wide = to.widened(x)
    number = to.narrowed(Value(count(to, x), (), np.dtype(np.float32), ()), wide.dtype)
    return to.narrowed(wide.called(str(to.node("Div", total(to, wide), number))), x.dtype)


def place(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the place of the largest or smallest element, the first among equals."""
    op_type = "ArgMax" if isinstance(op, ArgMax) else "ArgMin"
    if op.axis_vec == ALL_STATIC:
        found = to.node(op_type, to.with_static(x, [-1]), axis=x.leading, keepdims=False)
    else:
        axis = x.axis(static_axis_number(op.axis_vec[0], len(x.shape), op.reduction_op_name))
        found = to.node(op_type, x.name, axis=axis, keepdims=op.reduction_keep_dimensions)
    return to.cast(found, x.dtype)
