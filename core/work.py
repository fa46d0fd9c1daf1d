"""What a call of a program has to do at the least: operations, and bytes that come from memory and go there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from .context import Context
from .op import Op
from .shape import size_of
from .sparse import RowSparse, SparseRows


class Work(NamedTuple):
    """What there is to do.

    Attributes:
        flop: floating-point operations.
        nbytes: bytes of operands and results.
        dtype: type of the first of them, a result.
    """

    flop: int
    nbytes: int
    dtype: str


def work_of(call: Callable[..., None], arguments: tuple[Any, ...], backward: bool) -> Work:
    """The work of a call, once it is done.

    An operator without a method ``flop`` counts as moving data only, as do copies and sums of gradients that are no operator's.  A backward
    step takes the operations of the forward step for each of its gradients.
    """
    op = call.args[0] if isinstance(call, partial) else getattr(call, "__self__", None)
    context, *values = arguments
    if not isinstance(op, Op) or not isinstance(context, Context):
        return _moving(arguments)
    if not hasattr(op, "flop"):
        return _moving(values)
    if not backward:
        result, *operands = values
        flop = op.flop(context, result, *operands)
        return _with_bytes(flop, [result], operands)
    grad, grads, result, *kept = values
    operands = [dx if x is None else x for x, dx in zip(kept, grads, strict=True)]
    flop = op.flop(context, grad, *operands) * sum(dx is not None for dx in grads)
    return _with_bytes(flop, grads, [grad, result, *kept])


def numbers_in(value: Any) -> int:
    """How many numbers an operand has to offer; those of a sparse one that are stored."""
    return len(value.data) if isinstance(value, SparseRows) else size_of(value.shape)


def _moving(values: Any) -> Work:
    arrays = list(_arrays(values))
    return Work(0, sum(array.nbytes for array in arrays), arrays[0].dtype.name if arrays else "")


def _with_bytes(flop: int, written: Any, read: Any) -> Work:
    """Of an operand no more is read than there are operations: a product with a sparse operand takes some rows of the other."""
    results = list(_arrays(written))
    nbytes = sum(array.nbytes for array in results)
    nbytes += sum(min(array.nbytes, flop * array.itemsize) for array in _arrays(read))
    return Work(flop, nbytes, results[0].dtype.name)


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays among values and lists of them."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, SparseRows):
        yield from value.parts
    elif isinstance(value, RowSparse):
        yield from (array for array in (value.values, value.rows) if array is not None)
    elif hasattr(value, "nbytes"):
        yield value
