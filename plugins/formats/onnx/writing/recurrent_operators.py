"""Writes ONNX's operators of whole recurrent layers, which have the time axis first and their weights transposed, gate above gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.types.axis import Axis
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter

_ONE_STEP = Axis("one step")
OPERATORS = {"lstm": "LSTM", "gru": "GRU", "rnnReLU": "RNN", "rnnTanh": "RNN"}
ORDERS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnnReLU": (0,), "rnnTanh": (0,)}
"""Which gates of :data:`OPERATORS` those of a stack of recurrent layers are, in the order of ONNX."""


def layer(to: ModelWriter, op_type: str, x: Value, size: int, weights: Sequence[str], directions: int = 1, **attributes: Any) -> str:
    """Write a layer.

    Args:
        to: the model.
        op_type: ``LSTM``, ``GRU`` or ``RNN``.
        x: sequences of vectors.
        size: dimension of the state.
        weights: names of the operands W, R and B, and of those behind the lengths, where there are any.
        directions: 2 for a layer that goes both ways.
        attributes: of the operator.

    Returns:
        The states at each step, ``[batch, time, directions * size]``.
    """
    axis = x.axes[1]
    lengths = to.cast(to.lengths(axis), np.int32) if axis is not _ONE_STEP and to.has_lengths(axis) else ""
    steps = to.transpose(x.name, [1, 0, 2])
    made = to.node(op_type, steps, *weights[:3], lengths, *weights[3:], hidden_size=size, **attributes)
    return to.reshape(to.transpose(made, [2, 0, 1, 3]), [0, 0, directions * size])


def in_order(to: ModelWriter, stacked: str, order: Sequence[int], axis: int = 0) -> str:
    """Parts of equal size along an axis in another order."""
    if len(order) == 1:
        return stacked
    parts = to.node("Split", stacked, outputs=len(order), axis=axis, num_outputs=len(order) if to.opset >= 18 else None)
    return str(to.node("Concat", *(parts[number] for number in order), axis=axis))


def stack(op: Any, to: ModelWriter, x: Value, weights: Value) -> str:
    """Write layers on top of each other.  ONNX Runtime has them for no float64."""
    kind, size, directions = op.recurrent_op, op.hidden_size, 2 if op.bidirectional else 1
    activation = {"rnnReLU": "Relu", "rnnTanh": "Tanh"}.get(kind)
    cast = x.dtype == np.float64
    if cast:
        x, weights = (Value(to.cast(one.name, np.float32), one.shape, np.dtype(np.float32), one.axes) for one in (x, weights))
    single = len(x.axes) == 1
    if single:  # samples are sequences of one step
        x = Value(to.unsqueeze(x.name, [1]), x.shape, x.dtype, (*x.axes, _ONE_STEP))
    flat = to.reshape(weights.name, [-1])
    parts = [_part(to, flat, first, shape) for first, shape in op.places(x.shape[0])]
    half = len(parts) // 2
    for number in range(op.num_layers):
        mine = slice(2 * directions * number, 2 * directions * (number + 1))
        matrices, biases = ([in_order(to, part, ORDERS[kind]) for part in some[mine]] for some in (parts[:half], parts[half:]))
        W, R = (_stacked(to, matrices[which::2]) for which in (0, 1))
        B = _stacked(to, [to.node("Concat", *biases[2 * i : 2 * i + 2], axis=0) for i in range(directions)])
        made = layer(
            to,
            OPERATORS[kind],
            x,
            size,
            (W, R, B),
            directions,
            direction="bidirectional" if op.bidirectional else None,
            activations=[activation] * directions if activation else None,
            linear_before_reset=1 if kind == "gru" else None,
        )
        x = Value(made, (directions * size,), x.dtype, x.axes)
    made = to.squeeze(x.name, [1]) if single else x.name
    return to.cast(made, np.float64) if cast else made


def _part(to: ModelWriter, flat: str, first: int, shape: Sequence[int]) -> str:
    last = first + int(np.prod(shape))
    part = to.node("Slice", flat, to.integers(first), to.integers(last), to.integers(0))
    return part if len(shape) == 1 else to.reshape(part, list(shape))


def _stacked(to: ModelWriter, parts: Sequence[str]) -> str:
    """Arrays one after the other, on a new first axis."""
    new = [to.unsqueeze(part, [0]) for part in parts]
    return new[0] if len(new) == 1 else str(to.node("Concat", *new, axis=0))
