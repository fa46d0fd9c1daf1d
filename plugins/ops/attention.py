"""Attention in one operator: averages of values, weighted by the softmax of products of queries and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.common.dtypes import computing_type
from ...core.common.shape import format_shape
from ...core.operators.op import ALL, Op
from ...core.types.context import Context
from ...core.types.spec import Spec
from .dense_product import multiply


class Attention(Op):
    """``times(softmax(times(query, key) * scale + bias), value)``, a matrix for each row.

    Operands are queries ``(queries, depth)``, keys, values ``(keys, columns)``, and then, as the attributes say, scale and bias.

    Attributes:
        turned: whether keys come as ``(depth, keys)`` and not as ``(keys, depth)``.
        scaling: what is done with the scale: ``'times'``, ``'divided'`` or, without an operand for it, ``'none'``.
        biased: whether a bias is the last operand, which broadcasts to ``(queries, keys)``.
    """

    op_name = "Attention"
    keep_inputs = ALL
    keep_output = True
    by_rows = False
    turned: bool
    scaling: str
    biased: bool
    heads, masked = 1, False

    def infer(self, query: Spec, key: Spec, value: Spec, *others: Spec) -> Spec:
        depth, keys = key.dims if self.turned else key.dims[::-1]
        for name, one, other in (("queries and keys", query.dims[1], depth), ("keys and values", keys, value.dims[0])):
            if one >= 0 <= other and one != other:
                raise ValueError(f"{name} {format_shape(query.dims)}, {format_shape(key.dims)}, {format_shape(value.dims)} do not match")
        return self.common(query, key, value, *others).but(shape=(query.dims[0], value.dims[1]))

    def accepts_strided(self, *inputs: Spec) -> bool:
        """Nothing is reshaped."""
        return True

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """Two products and, for each score, as many operations as a softmax has."""
        query, key = inputs[:2]
        scores = query.shape[0] * query.shape[1] * key.shape[2 if self.turned else 1]
        return int(scores * (2 * query.shape[2] + 2 * out.shape[2] + 5))

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        weights = self._place_of_weights(ctx, inputs)
        self._write_weights(ctx, inputs, weights)
        multiply(ctx, weights, inputs[2], out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        query, _, value = inputs[:3]
        dquery, dkey, dvalue = grads[:3]
        weights = self._place_of_weights(ctx, inputs)
        if dvalue is not None:
            multiply(ctx, weights.swapaxes(-1, -2), grad, dvalue)
        dscores = ctx.scratch("gradients of scores", weights.shape, weights.dtype)
        multiply(ctx, grad, value.swapaxes(-1, -2), dscores)
        send_back(ctx, weights, dscores)
        if self.masked:
            self._write_where_closed(ctx, dscores, inputs, 0)
        if self.biased and grads[-1] is not None:
            ctx.sum_to(dscores, self.lined_up(ctx, grads[-1]))
        self._scale(ctx, dscores, inputs)
        if dquery is not None:
            multiply(ctx, dscores, self.keys(inputs).swapaxes(-1, -2), dquery)
        if dkey is not None:
            multiply(ctx, query.swapaxes(-1, -2), dscores, dkey if self.turned else dkey.swapaxes(-1, -2))

    def scales(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The scale, as the only element, or none."""
        return () if self.scaling == "none" else inputs[3:4]

    def keys(self, inputs: Sequence[Any]) -> Any:
        """View the keys as ``(rows, depth, keys)``."""
        return inputs[1] if self.turned else inputs[1].swapaxes(-1, -2)

    def lined_up(self, ctx: Context, bias: Any) -> Any:
        """View the bias, or its gradient, with the axes of ``(rows, queries, keys)`` that it broadcasts along."""
        if ctx.layouts[-1] is None:
            return bias
        return bias[(slice(None), *[None] * (3 - bias.ndim))]

    def _scale(self, ctx: Context, scores: Any, inputs: Sequence[Any]) -> None:
        if self.scaling != "none":
            apply = ctx.xp.multiply if self.scaling == "times" else ctx.xp.divide
            apply(scores, inputs[3], out=scores)

    def _place_of_weights(self, ctx: Context, inputs: Sequence[Any]) -> Any:
        shape, dtype = (*inputs[0].shape[:2], self.keys(inputs).shape[2]), inputs[0].dtype
        return ctx.keep("weights", shape, dtype) if ctx.training else ctx.scratch("weights", shape, dtype)

    def _write_weights(self, ctx: Context, inputs: Sequence[Any], weights: Any) -> None:
        multiply(ctx, inputs[0], self.keys(inputs), weights)
        self._scale(ctx, weights, inputs)
        if self.biased:
            ctx.xp.add(weights, self.lined_up(ctx, inputs[-1]), out=weights)
        if self.masked:
            self._write_where_closed(ctx, weights, inputs, inputs[-2])
        write_softmax(ctx, weights)

    def _write_where_closed(self, ctx: Context, scores: Any, inputs: Sequence[Any], number: Any) -> None:
        """Write a number where the mask, which is the last operand, is 0."""
        mask = self.lined_up(ctx, inputs[-1])
        closed = ctx.scratch("closed", mask.shape, bool)
        ctx.xp.equal(mask, 0, out=closed)
        ctx.xp.copyto(scores, number, where=closed)


def write_softmax(ctx: Context, scores: Any) -> None:
    """Write the softmax along the last axis over its operand."""
    edge = ctx.scratch("edge", (*scores.shape[:-1], 1), scores.dtype)
    scores.max(axis=-1, out=edge, keepdims=True)
    ctx.xp.subtract(scores, edge, out=scores)
    ctx.xp.exp(scores, out=scores)
    total = ctx.scratch("total", edge.shape, computing_type(scores.dtype))
    ctx.sum_to(scores, total)
    ctx.xp.divide(scores, total, out=scores, casting="same_kind")


def send_back(ctx: Context, weights: Any, grad: Any) -> None:
    """Write the gradient of scores over that of their softmax."""
    product = ctx.scratch("products with weights", grad.shape, grad.dtype)
    ctx.xp.multiply(grad, weights, out=product)
    inner = ctx.scratch("total", (*grad.shape[:-1], 1), computing_type(grad.dtype))
    ctx.sum_to(product, inner)
    ctx.xp.subtract(grad, inner, out=grad, casting="same_kind")
    ctx.xp.multiply(grad, weights, out=grad)
