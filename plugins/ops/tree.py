"""Operators of two operands applied to more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from ...core.operators.op import Op

if TYPE_CHECKING:
    from ...core.graph.function import Function


def tree(op: type[Op], operands: Sequence[Any], name: str) -> Function:
    """Combine two or more operands by a balanced tree of a binary *op*; a string after them is the name."""
    return _tree(lambda left, right, name: op()(left, right, name=name), operands, name)


def associative_multi_arg(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of two operands one of two or more, which combines them by a balanced tree.

    Args:
        f: a function of two operands and a *name*, which must be associative.

    Returns:
        a function of operands and a name, which may be given as a last operand that is a string.  The last Function it makes, the
        root of the tree, gets the name.

    >>> @C.associative_multi_arg
    ... def hypotenuse(left, right, name=''):
    ...     return C.sqrt(C.square(left) + C.square(right), name)
    >>> hypotenuse([2], [3], [6], 'length').eval()
    array([7.], dtype=float32)
    """

    @wraps(f)
    def of_any_number(arg1: Any, arg2: Any, *more_args: Any, name: str = "") -> Any:
        return _tree(f, (arg1, arg2, *more_args), name)

    return of_any_number


def _tree(combine: Callable[..., Any], operands: Sequence[Any], name: str) -> Any:
    if len(operands) > 2 and isinstance(operands[-1], str):
        *operands, last = operands
        name = name or last
    middle = len(operands) // 2
    return combine(_branch(combine, operands[:middle]), _branch(combine, operands[middle:]), name=name)


def _branch(combine: Callable[..., Any], operands: Sequence[Any]) -> Any:
    return operands[0] if len(operands) == 1 else _tree(combine, operands, "")
