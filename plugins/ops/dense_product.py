"""Products of dense matrices, also of those that sum up many terms, as gradients of weights do over all rows of a minibatch.

A BLAS adds up terms one after another, or blocks of some hundred of them.  Deep products are therefore cut into pieces, and their products
added up so that errors do not grow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...core.common.dtypes import computing_type
from ...core.common.sums import DEEP, terms_of_piece
from ...core.types.context import Context


def multiply(ctx: Context, left: Any, right: Any, out: Any, loops: Any = None) -> None:
    """Write the product of two matrices, or of two stacks of them, with *loops* where they suit.

    For single matrices ``dot`` is half as long in getting under way as ``matmul``; of bfloat16, no type of NumPy's own, it has only a slow
    loop, while ``matmul`` multiplies in float32.
    """
    depth = left.shape[-1]
    if depth > DEEP and (terms := terms_of_piece(depth, out.shape[-2] * out.shape[-1])) < depth:
        _multiply_deep(ctx, left, right, out, terms, loops)
    elif loops is not None and loops.fits(left, right, out):
        loops.multiply(ctx, left, right, out)
    elif _is_for_dot(right, out):
        ctx.xp.dot(left, right, out)
    else:
        ctx.xp.matmul(left, right, out=out)


def bound_product(ctx: Context, left: Any, right: Any, out: Any) -> Callable[[], Any]:
    """The same as a function that multiplies what is in these arrays whenever it is called."""
    if left.shape[-1] <= DEEP and _is_for_dot(right, out):
        return partial(ctx.xp.dot, left, right, out)
    return partial(multiply, ctx, left, right, out)


def _is_for_dot(right: Any, out: Any) -> bool:
    return right.ndim == 2 and out.flags.c_contiguous and out.dtype.isbuiltin == 1


def _multiply_deep(ctx: Context, left: Any, right: Any, out: Any, terms: int, loops: Any) -> None:
    """The same, whose pieces' products are a stack more."""
    (*stack, m, depth), n = left.shape, right.shape[-1]
    pieces, rest = divmod(depth, terms)
    whole, dtype = pieces * terms, computing_type(out.dtype)
    products = ctx.scratch("products of pieces", (*stack, pieces + (rest > 0), m, n), dtype)
    lefts = left[..., :whole].reshape(*stack, m, pieces, terms).swapaxes(-3, -2)
    rights = right[..., :whole, :].reshape(*stack, pieces, terms, n)
    if dtype == out.dtype and not stack:
        multiply(ctx, lefts, rights, products[:pieces], loops)
    else:
        ctx.xp.matmul(lefts, rights, out=products[..., :pieces, :, :], dtype=dtype)
    if rest:
        ctx.xp.matmul(left[..., whole:], right[..., whole:, :], out=products[..., pieces, :, :], dtype=dtype)
    ctx.sum_to(products, out[..., None, :, :])
