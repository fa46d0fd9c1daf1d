"""The kernel of attention over sequences.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import is_half
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.types.context import Context
from ...core.types.layout import Layout


class SequenceAttentionKernel:
    """Loops for float32 and float64 over sequences that have been laid end to end."""

    @staticmethod
    def _is_small(op: Any, ctx: Context, *inputs: Any) -> bool:
        """Whether the operator computes a call itself."""
        if is_half(inputs[0].dtype) or 0 in (inputs[0].shape[1], inputs[2].shape[1]):
            return True
        of_query, of_key = op.layouts(ctx)
        return int((of_query.lengths * of_key.lengths).sum()) < thresholds.attention_compiled or not are_usable()

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, *inputs: Any) -> None:
        if cls._is_small(op, ctx, *inputs):
            op.forward(ctx, out, *inputs)
            return
        from . import attention_calls as calls

        of_query, of_key = op.layouts(ctx)
        result = ctx.scratch("results side by side", out.shape, out.dtype)
        arrays = _arrays(op, ctx, inputs, of_query, of_key, result)
        calls.bound(ctx, arrays, _entries(of_query, of_key), _scale(op, inputs[0]), False)()
        op.pack(ctx, result, of_query, out)

    @classmethod
    def backward(cls, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        if cls._is_small(op, ctx, *inputs):
            op.backward(ctx, grad, grads, out, *inputs)
            return
        from . import attention_calls as calls

        of_query, of_key = op.layouts(ctx)
        arrays = _arrays(op, ctx, inputs, of_query, of_key, op.end_to_end(ctx, "results", out, of_query))
        results = [ctx.scratch(f"gradients side by side {i}", x.shape, x.dtype) for i, x in enumerate(inputs)]
        dquery, dkey, dvalue = (result[None] for result in results)
        given = op.end_to_end(ctx, "gradients of results", grad, of_query)[None]
        arrays = arrays._replace(query_grad=dquery, key_grad=dkey, value_grad=dvalue, result_grad=given)
        calls.bound_gradients(ctx, arrays, _entries(of_query, of_key), _scale(op, inputs[0]), False)()
        for result, layout, dx in zip(results, (of_query, of_key, of_key), grads, strict=True):
            if dx is not None:
                op.pack(ctx, result, layout, dx)


def _arrays(op: Any, ctx: Context, inputs: Sequence[Any], of_query: Layout, of_key: Layout, result: Any) -> Any:
    """Operands laid end to end, the result, and what backward needs of each of its rows."""
    from .attention_calls import Arrays

    layouts = of_query, of_key, of_key
    query, key, value = (
        op.end_to_end(ctx, f"side by side {i}", x, layout)[None] for i, (x, layout) in enumerate(zip(inputs, layouts, strict=True))
    )
    place = ctx.keep if ctx.training else ctx.scratch
    edge, total = (place(name, (1, len(result), 1), result.dtype) for name in ("edge", "total"))
    return Arrays(query, key, value, None, edge, total, None, result[None])


def _entries(of_query: Layout, of_key: Layout) -> Any:
    """Where the queries and the keys of each sequence lie."""
    from .attention_calls import Entries

    columns = of_query.starts[:-1], of_query.lengths, of_key.starts[:-1], of_key.lengths
    return Entries(np.stack(columns, axis=1).astype(np.int64))  # type: ignore[arg-type]  # layouts of sequences have lengths


def _scale(op: Any, query: Any) -> Any:
    return np.array([op.factor(query)], query.dtype)
