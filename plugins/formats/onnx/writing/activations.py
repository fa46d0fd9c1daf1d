"""Writes activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .formulas import write_formula
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def relu(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the rectifier."""
    return str(to.node("Relu", x.name))


def leaky_relu(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the leaky rectifier."""
    if x.dtype == np.float64:  # the attributes are float32
        return write_formula(op, to, x)
    return str(to.node("LeakyRelu", x.name, alpha=float(op.alpha)))


def prelu(op: Any, to: ModelWriter, alpha: Value, x: Value) -> str:
    """Write the rectifier with slopes of its own, as one operator where these broadcast to the operand."""
    if alpha.axes or x.shape != to.result.shape or x.axes != to.result.axes:
        return write_formula(op, to, alpha, x)
    return str(to.node("PRelu", x.name, alpha.name))


def elu(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the exponential linear unit."""
    if x.dtype == np.float64:  # the attributes are float32
        return write_formula(op, to, x)
    return str(to.node("Elu", x.name, alpha=float(op.alpha)))


def selu(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the scaled exponential linear unit."""
    if x.dtype == np.float64:  # the attributes are float32
        return write_formula(op, to, x)
    return str(to.node("Selu", x.name, alpha=float(op.alpha), gamma=float(op.gamma)))


def softplus(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the smooth rectifier."""
    wide = to.widened(x)
    if op.steepness == 1:
        return to.narrowed(wide.called(str(to.node("Softplus", wide.name))), x.dtype)
    steepness = to.constant(op.steepness, wide.dtype)
    made = to.node("Div", to.node("Softplus", to.node("Mul", wide.name, steepness)), steepness)
    return to.narrowed(wide.called(str(made)), x.dtype)


def softsign(op: Any, to: ModelWriter, x: Value) -> str:
    """Write ``x / (1 + |x|)``."""
    steep = x.name if op.steepness == 1 else to.node("Mul", x.name, to.constant(op.steepness, x.dtype))
    return str(to.node("Softsign", steep))


def hard_sigmoid(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the piecewise linear sigmoid."""
    if x.dtype == np.float64:  # the attributes are float32
        return write_formula(op, to, x)
    return str(to.node("HardSigmoid", x.name, alpha=float(op.alpha), beta=float(op.beta)))


def softmax(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the softmax along an axis, or over all static axes."""
    return _over_classes("Softmax", op.axis, to, x)


def log_softmax(op: Any, to: ModelWriter, x: Value) -> str:
    """Write the logarithm of the softmax."""
    return _over_classes("LogSoftmax", op.axis, to, x)


def hardmax(op: Any, to: ModelWriter, x: Value) -> str:
    """Write 1 at the largest element and 0 elsewhere, over all static axes."""
    return _over_classes("Hardmax", None, to, x)


def _over_classes(op_type: str, axis: Any, to: ModelWriter, x: Value) -> str:
    if axis is not None:
        return str(to.node(op_type, x.name, axis=x.axis(axis.static_axis_index())))
    flat = x.name if len(x.shape) == 1 else to.with_static(x, [-1])
    made = to.single(op_type, x.dtype, flat, axis=x.leading) if op_type == "Hardmax" else str(to.node(op_type, flat, axis=x.leading))
    return made if len(x.shape) == 1 else to.shaped_like(made, x)
