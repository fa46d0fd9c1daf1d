"""Embeddings that are multiplied by a matrix: words that occur several times in a minibatch are multiplied once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.operators.op import ALL, Op
from ...core.types.context import Context
from ...core.types.sparse import RowSparse, SparseRows
from ...core.types.spec import Spec
from .dense_product import multiply


class EmbeddedTimes(Op):
    """``times(times(x, table), w)`` of CSR rows; each row of the table that occurs is multiplied once where they are one-hot.

    Attributes:
        look_up, multiply: forward and backward methods of the two products.
    """

    op_name = "EmbeddedTimes"
    keep_inputs = ALL
    sparse_inputs = (0,)
    by_rows = False
    look_up: tuple[Callable[..., None], Callable[..., None]]
    multiply: tuple[Callable[..., None], Callable[..., None]]

    def infer(self, x: Spec, table: Spec, w: Spec) -> Spec:
        return self.common(x, table, w).but(shape=w.dims[1:])

    def flop(self, ctx: Context, out: Any, x: Any, table: Any, w: Any) -> int:
        """Those of the second product; the first looks rows up, mostly."""
        rows: int = ctx.state
        return 2 * rows * w.shape[0] * w.shape[1]

    def row_sparse(self, index: int, inputs: Sequence[Spec]) -> bool:
        return index == 1

    def forward(self, ctx: Context, out: Any, x: SparseRows, table: Any, w: Any) -> None:
        xp = ctx.xp
        if not x.is_one_hot:
            self.multiply_all(ctx, out, x, table, w)
            return
        present, place = xp.unique(x.indices, return_inverse=True)
        ctx.state = len(present)
        products = ctx.scratch("products", (len(present), out.shape[1]), out.dtype)
        xp.matmul(table[present], w, out=products)
        xp.take(products, place, axis=0, out=out, mode="clip")  # the default mode copies out first
        if not x.is_of_ones:
            xp.multiply(out, x.data[:, None], out=out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: SparseRows, table: Any, w: Any) -> None:
        dx, dtable, dw = grads
        if dx is not None or not x.is_one_hot:
            if x.is_one_hot:
                self.look_up[0](_looking_up(ctx), self._vectors(ctx, x, table), x, table)
            self.multiply_all_back(ctx, grad, grads, out, x, table, w)
            return
        products = ctx.xp.broadcast_to(w[0], (len(table), w.shape[1]))  # of all rows of the table; their shape alone matters
        sums = RowSparse(products.shape, w.dtype)
        self.look_up[1](_looking_up(ctx), grad, (None, sums), out, x, products)
        if dw is not None:
            multiply(ctx, table[sums.rows].T, sums.values, dw)
        if isinstance(dtable, RowSparse):
            dtable.set(sums.rows, ctx.xp.matmul(sums.values, w.T))
        elif dtable is not None:
            dtable.fill(0)
            dtable[sums.rows] = ctx.xp.matmul(sums.values, w.T)

    def multiply_all(self, ctx: Context, out: Any, x: SparseRows, table: Any, w: Any) -> None:
        """The same by one product after the other, in which words are multiplied as often as they occur."""
        vectors, ctx.state = self._vectors(ctx, x, table), len(out)
        self.look_up[0](_looking_up(ctx), vectors, x, table)
        self.multiply[0](_multiplying(ctx), out, vectors, w)

    def multiply_all_back(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: SparseRows, table: Any, w: Any) -> None:
        """The gradients of :meth:`multiply_all`."""
        dx, dtable, dw = grads
        vectors = self._vectors(ctx, x, table)
        dvectors = ctx.scratch("gradients of vectors", vectors.shape, vectors.dtype)
        self.multiply[1](_multiplying(ctx), grad, (dvectors, dw), out, vectors, w)
        self.look_up[1](_looking_up(ctx), dvectors, (dx, dtable), vectors, x, table)

    def _vectors(self, ctx: Context, x: SparseRows, table: Any) -> Any:
        shape = (x.shape[0], table.shape[1])
        return ctx.keep("vectors", shape, table.dtype) if ctx.training else ctx.scratch("vectors", shape, table.dtype)


def _looking_up(ctx: Context) -> Context:
    """The context of the first product."""
    return ctx.part("looking up", ctx.layouts[:2])


def _multiplying(ctx: Context) -> Context:
    """The context of the second product, whose left operand lies as the words do."""
    return ctx.part("multiplying", (ctx.layouts[0], ctx.layouts[2]))
