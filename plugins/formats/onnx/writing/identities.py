"""Writes operators that change no number once a network is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def same(op: Any, to: ModelWriter, x: Value) -> Value:
    """Write nothing: the result is the operand."""
    return x


def cast(op: Any, to: ModelWriter, x: Value) -> Value:
    """Write a change of the element type."""
    if x.indices:
        return Value(x.name, x.shape, np.dtype(op.new_data_type), x.axes, indices=True)
    return to.result.called(to.cast(x.name, op.new_data_type))
