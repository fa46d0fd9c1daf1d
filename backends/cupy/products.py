"""Products of dense matrices by cuBLASLt, with bias and ReLU epilogues, and the gradient of the bias in the backward pass.

Products of sparse inputs with a matrix have kernels (:mod:`.sparse_products`); those that neither supports fall back to the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...core.common.dtypes import computing_type
from ...core.common.sums import terms_of_piece
from ...core.operators.epilogue import Epilogue, Step
from ...core.types.context import Context
from ...core.types.sparse import RowSparse, SparseRows
from ..fused.followers import Follower, followers, has_rectifier
from . import epilogues, sparse_products
from .calls import Call, Work, again
from .cublaslt import Bias, Cublaslt, Follows, Sums, cublaslt_of
from .sparse_products import is_of_rows

DEEP = 8192
"""Terms that cuBLASLt may sum up at once; those of deeper products are added in pieces.

In float32, one after another, the error of 8,192 random terms is 2e-6 of their norm, and 4e-6 of their sum if they are positive; it is
1e-4 of the sum of equal terms, the worst there are.  Pieces are many small products, which take longer than one large one.
"""


class TimesKernel:
    """``times`` and ``times_transpose`` of dense operands, and of sparse inputs with a matrix."""

    recordable = recordable_sparse = True

    @staticmethod
    def takes(op: Any, steps: Sequence[Step]) -> int:
        """Return how many of the steps are fused: the sum with a row vector, and a ReLU after it."""
        return Products.takes(steps)

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, left: Any, right: Any) -> bool:
        """Whether to fall back to the operator: for other sparse operands, and for memory layouts that cuBLASLt does not support."""
        return not is_of_rows(op, ctx, left, right) and _forward(op, ctx, out, left, right, None) is None

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, left: Any, right: Any, epilogue: Epilogue | None = None) -> Callable[[], None] | None:
        """Return a function that multiplies these arrays; None if cuBLASLt does not support them, and for sparse ones, which move."""
        calls = _forward(op, ctx, out, left, right, epilogue)
        return None if calls is None else Work(calls)

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, left: Any, right: Any, epilogue: Epilogue | None = None) -> None:
        calls = _forward(op, ctx, out, left, right, epilogue)
        if calls is None:
            if is_of_rows(op, ctx, left, right):
                sparse_products.multiply(op, ctx, out, left, right)
            else:
                _refuse_to_record(ctx, left, right)
                op.forward(ctx, out, left, right)
            calls = [] if epilogue is None else epilogue.calls(ctx, out)
        for call in calls:
            call()

    @staticmethod
    def backward(
        op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, left: Any, right: Any, epilogue: Epilogue | None = None
    ) -> None:
        arrays = (grad, *grads, out, left, right, *(() if epilogue is None else epilogue.grads))
        for call in again(ctx, "backward", arrays, lambda: _backward(op, ctx, grad, grads, out, left, right, epilogue)):
            call()


class Products:
    """Products of matrices ``(m, k)`` and ``(k, n)``, or of stacks of them, ``(rows, m, k)`` and ``(rows, k, n)``."""

    @staticmethod
    def takes(steps: Sequence[Step]) -> int:
        """Return how many of the steps after a product are fused into it: the sum with a row vector, and a ReLU after it."""
        kinds = followers(steps)
        if kinds[0] is not Follower.SUM or steps[0].others[0].axes != () or len(steps[0].others[0].dims) != 1:
            return 0
        return 2 if kinds[1:] == [Follower.RECTIFIER] else 1

    @staticmethod
    def multiply(ctx: Context, left: Any, right: Any, out: Any) -> None:
        """Compute ``out = left @ right``."""
        calls = _product(ctx, left, right, out)
        if calls is None:
            ctx.xp.matmul(left, right, out=out)
            return
        for call in calls:
            call()

    @staticmethod
    def bound(ctx: Context, left: Any, right: Any, out: Any, epilogue: Epilogue | None = None) -> Callable[[], None] | None:
        """Return a function that computes the product and its epilogue; None if cuBLASLt does not support them."""
        calls = _with_steps(ctx, left, right, out, epilogue)
        return None if calls is None else Work(calls)


# ---- forward ----


def _forward(op: Any, ctx: Context, out: Any, left: Any, right: Any, epilogue: Epilogue | None) -> list[Call] | None:
    if isinstance(left, SparseRows) or isinstance(right, SparseRows):
        return None
    x, w, y = op.matrices(ctx, out, left, right)
    return _with_steps(ctx, x, w, y, epilogue) if _are_views((x, left), (w, right), (y, out)) else None


def _with_steps(ctx: Context, left: Any, right: Any, out: Any, epilogue: Epilogue | None) -> list[Call] | None:
    """Return the calls for a product and its epilogue: a single launch if cuBLASLt fuses them."""
    if epilogue is None:
        return _product(ctx, left, right, out)
    (bias,) = epilogue.others
    if bias.size == out.shape[-1] and bias.dtype == out.dtype and bias.flags.c_contiguous:
        fused = _product(ctx, left, right, out, Bias(bias, has_rectifier(epilogue.steps)))
        if fused is not None:
            return fused
    calls = _product(ctx, left, right, out)
    return None if calls is None else [*calls, *epilogue.calls(ctx, out)]


def _product(ctx: Context, left: Any, right: Any, out: Any, follows: Follows = None) -> list[Call] | None:
    """Return the calls for a product; None if cuBLASLt does not support it."""
    backend: Any = ctx.backend
    library = cublaslt_of(backend)
    if library is None:
        return None
    depth = left.shape[-1]
    terms = terms_of_piece(depth, out.shape[-2] * out.shape[-1], DEEP)
    if terms < depth:
        return _deep_product(ctx, library, left, right, out, terms) if follows is None else None
    call = library.bound(left, right, out, follows)
    return None if call is None else [call]


def _deep_product(ctx: Context, library: Cublaslt, left: Any, right: Any, out: Any, terms: int) -> list[Call] | None:
    """Return the calls for a split-K product, whose partial products are added up, so that errors do not grow with the depth."""
    depth = left.shape[-1]
    pieces, rest = divmod(depth, terms)
    wide = computing_type(out.dtype)
    products = ctx.scratch("products of pieces", (*out.shape[:-2], pieces + (rest > 0), *out.shape[-2:]), wide)
    calls: list[Call | None] = []
    if out.ndim == 2:  # the pieces form one batch
        lefts = left[:, : pieces * terms].reshape(left.shape[0], pieces, terms).swapaxes(0, 1)
        rights = right[: pieces * terms].reshape(pieces, terms, right.shape[1])
        if not _are_views((lefts, left), (rights, right)):
            return None
        calls.append(library.bound(lefts, rights, products[:pieces]))
    else:
        parts = [slice(at * terms, (at + 1) * terms) for at in range(pieces)]
        calls.extend(library.bound(left[..., part], right[..., part, :], products[:, at]) for at, part in enumerate(parts))
    if rest:
        last = slice(pieces * terms, depth)
        calls.append(library.bound(left[..., last], right[..., last, :], products[..., pieces, :, :]))
    total = out[..., None, :, :]
    found = [call for call in calls if call is not None]
    return None if len(found) < len(calls) else [*found, partial(ctx.sum_to, products, total)]


# ---- backward ----


def _backward(
    op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, left: Any, right: Any, epilogue: Epilogue | None
) -> list[Call]:
    """Return the calls for the gradients of the operands and the bias."""
    dleft, dright = grads
    calls: list[Call] = []
    weights = None
    if epilogue is not None:
        (bias_grad,) = epilogue.grads
        before = epilogues.before_steps(ctx, epilogue, grad)
        if bias_grad is not None:
            weights = _gradient_of_right(op, ctx, before, dright, left, right, Sums(bias_grad))
        calls.extend(epilogues.backward(ctx, epilogue, grad, out, before, with_sums=weights is None))
        grad = before
    if dright is not None:
        weights = weights or _gradient_of_right(op, ctx, grad, dright, left, right)
        if weights is None and is_of_rows(op, ctx, left, right):
            weights = [sparse_products.gradient_of_right(op, ctx, grad, dright, left, right)]
        calls.extend(weights or _by_operator(op, ctx, grad, (None, dright), out, left, right))
    if dleft is not None:
        calls.extend(_gradient_of_left(op, ctx, grad, dleft, left, right) or _by_operator(op, ctx, grad, (dleft, None), out, left, right))
    return calls


def _by_operator(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, left: Any, right: Any) -> list[Call]:
    return [partial(_refuse_to_record, ctx, left, right), partial(op.backward, ctx, grad, grads, out, left, right)]


def _refuse_to_record(ctx: Context, *operands: Any) -> None:
    """Refuse what the operator does with sparse operands while work is recorded: their data decide what it is."""
    backend: Any = ctx.backend
    if any(isinstance(operand, SparseRows) for operand in operands):
        backend.refuse_to_record("a product of sparse operands")


def _gradient_of_right(
    op: Any, ctx: Context, grad: Any, dright: Any, left: Any, right: Any, follows: Sums | None = None
) -> list[Call] | None:
    if dright is None or isinstance(dright, RowSparse) or isinstance(left, SparseRows) or isinstance(right, SparseRows):
        return None
    x, dw, dy = op.matrices(ctx, grad, left, dright)
    if not _are_views((x, left), (dw, dright), (dy, grad)):
        return None
    if follows is not None and (follows.vector.size != dy.shape[-1] or follows.vector.dtype != dw.dtype):
        return None
    return _product(ctx, x.swapaxes(-1, -2), dy, dw, follows)


def _gradient_of_left(op: Any, ctx: Context, grad: Any, dleft: Any, left: Any, right: Any) -> list[Call] | None:
    if isinstance(left, SparseRows) or isinstance(right, SparseRows):
        return None
    dx, w, dy = op.matrices(ctx, grad, dleft, right)
    if dx.ndim != w.ndim or not _are_views((dx, dleft), (w, right), (dy, grad)):
        return None
    return _product(ctx, dy, w.swapaxes(-1, -2), dx)


# ---- arrays ----


def _are_views(*pairs: tuple[Any, Any]) -> bool:
    """Whether the first array of each pair is a view of the second; a copy would not see later values."""
    return all(view.data.ptr == array.data.ptr for view, array in pairs)
