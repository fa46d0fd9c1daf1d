"""Operators of two operands applied to more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.op import Op


def tree(op: type[Op], operands: Sequence[Any], name: str) -> Any:
    """Combine two or more operands by a balanced tree of a binary *op*; a string at the end is the name."""
    if len(operands) > 2 and isinstance(operands[-1], str):
        *operands, name = operands
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    return op()(tree(op, operands[:middle], ""), tree(op, operands[middle:], ""), name=name)
