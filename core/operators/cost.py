"""The least cost of a call of a program: operations, and bytes read from and written to memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..common.shape import size_of
from ..types.context import Context
from ..types.sparse import RowSparse, SparseRows
from .abilities import CountsOperations
from .op import Op


class Cost(NamedTuple):
    """Operations and bytes of a call.

    Attributes:
        flop: floating-point operations.
        nbytes: bytes of operands and results.
        dtype: type of the results of operations; None without any.
    """

    flop: int
    nbytes: int
    dtype: Any = None


def cost_of(op: Op | None, arguments: tuple[Any, ...], backward: bool) -> Cost:
    """The cost of an operator on these arguments, or of a call that is not an operator's, once it is done.

    An operator without a method ``flop`` counts as moving data only, as do copies and sums of gradients that are no operator's.  A backward
    step takes the operations of the forward step for each of its gradients.
    """
    if op is None or not issubclass(type(op), CountsOperations) or not isinstance(arguments[0], Context):
        return Cost(0, _nbytes(arguments))
    context, result, *operands = arguments
    if not backward:
        flop = op.flop(context, result, *operands)
        return Cost(flop, _nbytes(result) + _nbytes(operands, flop), result.dtype)
    grads, out, *kept = operands
    shaped = [dx if x is None else x for x, dx in zip(kept, grads, strict=True)]
    written = [dx for dx in grads if dx is not None]
    flop = op.flop(context, result, *shaped) * len(written)
    return Cost(flop, _nbytes(written) + _nbytes((result, out, kept), flop), written[0].dtype)


def numbers_in(value: Any) -> int:
    """How many numbers an operand has; of a sparse one those that are stored."""
    return len(value.data) if isinstance(value, SparseRows) else size_of(value.shape)


def _nbytes(value: Any, numbers: float = math.inf) -> int:
    """Bytes of arrays, of each as many numbers as said at most: a product with a sparse operand reads some rows of the other."""
    if isinstance(value, (list, tuple)):
        return sum(_nbytes(item, numbers) for item in value)
    if isinstance(value, SparseRows):
        return _nbytes(value.parts)
    if isinstance(value, RowSparse):
        return _nbytes((value.rows, value.values))
    return int(min(value.nbytes, numbers * value.itemsize)) if hasattr(value, "nbytes") else 0
