"""Writes element-wise operators that ONNX has as one, where their formulas are several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .formulas import write_formula
from .values import Value

if TYPE_CHECKING:
    from .model import ModelWriter


def ceil(op: Any, to: ModelWriter, x: Value) -> str:
    """Write rounding up."""
    return str(to.node("Ceil", x.name))


def clip(op: Any, to: ModelWriter, x: Value, low: Value, high: Value) -> str:
    """Write bounds: as one operator where they are numbers."""
    if low.rank or high.rank:
        return write_formula(op, to, x, low, high)
    return str(to.node("Clip", x.name, low.name, high.name))
