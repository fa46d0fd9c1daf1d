"""Products of dense matrices, also of those that sum up many terms, as gradients of weights do over all rows of a minibatch.

A BLAS adds up terms one after another, or blocks of some hundred of them.  Deep products are therefore cut into pieces, and their products
added up so that errors do not grow.
"""

from __future__ import annotations

from typing import Any

from ...core.context import Context
from ...core.dtypes import computing_type

DEEP = 2048
"""Terms up to which a product is not cut."""

PIECE, OUTPUTS_PER_TERM = 512, 8
"""Terms of a piece at least, and elements of a large result for each of its terms, so that results of pieces take little memory."""


def multiply(ctx: Context, left: Any, right: Any, out: Any, loops: Any = None) -> None:
    """Write the product of two matrices, or of two stacks of them, with *loops* where they suit.

    For single matrices ``dot`` is half as long in getting under way as ``matmul``.
    """
    if left.shape[-1] > DEEP and out.ndim == 2 and left.shape[1] > 2 * out.size // OUTPUTS_PER_TERM:
        _multiply_deep(ctx, left, right, out, loops)
    elif loops is not None and loops.suits(left, right, out):
        loops.multiply(ctx, left, right, out)
    elif right.ndim == 2 and out.flags.c_contiguous:
        ctx.xp.dot(left, right, out)
    else:
        ctx.xp.matmul(left, right, out=out)


def _multiply_deep(ctx: Context, left: Any, right: Any, out: Any, loops: Any) -> None:
    (m, depth), n = left.shape, right.shape[1]
    terms = max(PIECE, out.size // OUTPUTS_PER_TERM)
    pieces, rest = divmod(depth, terms)
    whole, dtype = pieces * terms, computing_type(out.dtype)
    products = ctx.scratch("products of pieces", (pieces + (rest > 0), m, n), dtype)
    stacks = left[:, :whole].reshape(m, pieces, terms).swapaxes(0, 1), right[:whole].reshape(pieces, terms, n)
    if dtype == out.dtype:
        multiply(ctx, *stacks, products[:pieces], loops)
    else:
        ctx.xp.matmul(*stacks, out=products[:pieces], dtype=dtype)
    if rest:
        ctx.xp.matmul(left[:, whole:], right[whole:], out=products[pieces], dtype=dtype)
    ctx.sum_to(products, out)
