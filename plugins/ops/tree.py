"""Operators of two operands applied to more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.op import Op

if TYPE_CHECKING:
    from ...core.function import Function


def tree(op: type[Op], operands: Sequence[Any], name: str) -> Function:
    """Combine two or more operands by a balanced tree of a binary *op*; a string after them is the name."""
    if len(operands) > 2 and isinstance(operands[-1], str):
        *operands, name = operands
    middle = len(operands) // 2
    return op()(_branch(op, operands[:middle]), _branch(op, operands[middle:]), name=name)


def _branch(op: type[Op], operands: Sequence[Any]) -> Any:
    return operands[0] if len(operands) == 1 else tree(op, operands, "")
