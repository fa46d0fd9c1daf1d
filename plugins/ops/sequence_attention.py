"""Attention of the steps of one sequence to those of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.common.shape import format_shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import ALL, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.spec import Spec, merge_dtypes
from .attention import send_back, write_softmax
from .dense_product import multiply
from .sequence_rows import require_same_lengths, sequence_axes, sequences


class SequenceAttention(SequenceOp):
    """Averages of a sequence's values, weighted for each step of another by the softmax of its products with the keys."""

    op_name = "Sequence::Attention"
    whole_sequences = True
    keep_inputs = ALL
    keep_output = True
    by_rows = False
    traits = Traits(expands_operands=False)
    scale: float | None

    # ---- types ----

    def infer(self, *inputs: Spec) -> Spec:
        axes = [sequence_axes(spec, f"the {name}") for spec, name in zip(inputs, ("query", "key", "value"), strict=True)]
        for spec, name in zip(inputs, ("query", "key", "value"), strict=True):
            if spec.rank != 1:
                raise ValueError(f"each step of the {name} must be a vector, not of the shape {format_shape(spec.shape)}")
        query, key, value = inputs
        if query.dims != key.dims and min(*query.dims, *key.dims) >= 0:
            raise ValueError(f"query {format_shape(query.shape)} and key {format_shape(key.shape)} must have the same shape")
        if None not in axes[1:] and axes[1] != axes[2]:
            raise ValueError("key and value must be on the same sequence axis; sequence.broadcast_as brings one onto that of the other")
        return Spec(value.dims, merge_dtypes(inputs), axes[0])

    # ---- values ----

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """Two products and, for each score, as many operations as a softmax has."""
        queries, keys = (sequences(ctx.layouts[i])[1] for i in range(2))
        return int((queries * keys).sum()) * (2 * inputs[0].shape[1] + 2 * out.shape[1] + 5)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        of_query, of_key = self.layouts(ctx)
        layouts = of_query, of_key, of_key
        query, key, value = (self.end_to_end(ctx, f"side by side {i}", *of) for i, of in enumerate(zip(inputs, layouts, strict=True)))
        result = ctx.scratch("results side by side", out.shape, out.dtype)
        for queries, keys in _spans(of_query, of_key):
            multiply(ctx, self._weights(ctx, query[queries], key[keys]), value[keys], result[queries])
        self.pack(ctx, result, of_query, out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        of_query, of_key = self.layouts(ctx)
        layouts = of_query, of_key, of_key
        query, key, value = (self.end_to_end(ctx, f"side by side {i}", *of) for i, of in enumerate(zip(inputs, layouts, strict=True)))
        given = self.end_to_end(ctx, "gradients of results", grad, of_query)
        results = [ctx.scratch(f"gradients side by side {i}", x.shape, x.dtype) for i, x in enumerate(inputs)]
        dquery, dkey, dvalue = results
        for queries, keys in _spans(of_query, of_key):
            weights = self._weights(ctx, query[queries], key[keys])
            dscores = ctx.scratch("gradients of scores", weights.shape, weights.dtype)
            multiply(ctx, weights.T, given[queries], dvalue[keys])
            multiply(ctx, given[queries], value[keys].T, dscores)
            send_back(ctx, weights, dscores)
            ctx.xp.multiply(dscores, self.factor(query), out=dscores)
            multiply(ctx, dscores, key[keys], dquery[queries])
            multiply(ctx, dscores.T, query[queries], dkey[keys])
        for result, layout, dx in zip(results, layouts, grads, strict=True):
            if dx is not None:
                self.pack(ctx, result, layout, dx)

    def layouts(self, ctx: Context) -> tuple[Layout, Layout]:
        """The layouts of queries, and of keys and values.

        Raises:
            ValueError: there are not as many sequences of keys as of queries, or values have other lengths.
        """
        of_query, of_key = (sequences(ctx.layouts[i])[0] for i in range(2))
        if of_query.samples != of_key.samples:
            raise ValueError(f"there must be as many sequences of keys as of queries, but the query has {of_query} and the key {of_key}")
        require_same_lengths(of_key, ctx.layouts[2], "key and value")
        return of_query, of_key

    @staticmethod
    def end_to_end(ctx: Context, name: str, x: Any, layout: Layout) -> Any:
        """The steps of all sequences, one sequence after another, in scratch space of this name."""
        target = ctx.scratch(name, x.shape, x.dtype)
        ctx.xp.take(x, ctx.index(layout, "unpack_index"), axis=0, out=target, mode="clip")
        return target

    @staticmethod
    def pack(ctx: Context, x: Any, layout: Layout, out: Any) -> None:
        """Write the steps of sequences that follow one another to the rows of a layout."""
        ctx.xp.take(x, ctx.index(layout, "pack_index"), axis=0, out=out, mode="clip")

    def factor(self, query: Any) -> float:
        """The number that products of queries and keys are multiplied by."""
        return float(query.shape[1] ** -0.5) if self.scale is None else self.scale

    def _weights(self, ctx: Context, query: Any, key: Any) -> Any:
        weights = ctx.scratch("weights", (len(query), len(key)), query.dtype)
        multiply(ctx, query, key.T, weights)
        ctx.xp.multiply(weights, self.factor(query), out=weights)
        write_softmax(ctx, weights)
        return weights


def _spans(of_query: Layout, of_key: Layout) -> Iterator[tuple[slice, slice]]:
    """For each sequence where its queries lie, and its keys."""
    for queries, keys in zip(*(pairwise(layout.starts.tolist()) for layout in (of_query, of_key)), strict=True):
        yield slice(*queries), slice(*keys)


def _attention(query: Any, key: Any, value: Any, scale: float | None = None) -> Any:
    scores = query @ key.T * (query.shape[1] ** -0.5 if scale is None else scale)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True) @ value


_STEPS = tuple(Operand((size,), kind="sequence") for size in (3, 3, 2))


@operator(
    sample(*_STEPS, expected=_attention),
    sample(*_STEPS, scale=2.0, expected=lambda query, key, value: _attention(query, key, value, 2.0)),
)
def attention(query: TensorLike, key: TensorLike, value: TensorLike, scale: float | None = None, name: str = "") -> Function:
    r"""Let each step of a sequence attend to all steps of another: :math:`\mathrm{softmax}(s \, Q K^T) \, V` for each sample.

    The matrix of weights is never stored where compiled loops compute it.

    Args:
        query: sequence of vectors ``(depth,)``.
        key: sequence of vectors ``(depth,)``, of any lengths; that of the query itself for self-attention.
        value: sequence of vectors ``(width,)`` on the key's sequence axis.
        scale: factor *s* of the products; None for :math:`1 / \sqrt{depth}`.
        name: name of the function.

    Returns:
        averages of the sample's values, of shape ``(width,)``, on the query's dynamic axes.

    Raises:
        ValueError: an operand is not a sequence of vectors, query and key have different shapes, or key and value are on different axes.

    Source: A. Vaswani et al., "Attention is all you need", NIPS 2017, section 3.2.1.

    >>> words = C.sequence.input_variable(2, sequence_axis=C.Axis('words'))
    >>> question = C.sequence.input_variable(2, sequence_axis=C.Axis('question'))
    >>> found = C.sequence.attention(question, words, words)
    >>> data = {words: [np.float32([[1, 0], [0, 1]]), np.float32([[2, 3]])], question: [np.float32([[9, 9]]), np.float32([[1, 0], [0, 1]])]}
    >>> found.eval(data)
    [array([[0.5, 0.5]], dtype=float32), array([[2., 3.],
           [2., 3.]], dtype=float32)]
    """
    return SequenceAttention(scale=scale)(query, key, value, name=name)
