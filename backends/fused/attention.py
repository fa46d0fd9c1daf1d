"""The kernel of attention.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.common.dtypes import is_half
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.types.context import Context


class AttentionKernel:
    """Loops for float32 and float64, which never store the matrix of scores, and compute scores again for the gradients."""

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *inputs: Any) -> bool:
        """Whether the operator computes a call itself."""
        scores = out.shape[0] * out.shape[1] * op.keys(inputs).shape[2]
        lie_well = _lies_well(out) and not (op.biased and not _lies_well(inputs[-1]))
        return scores < max(thresholds.attention_compiled, 1) or 0 in out.shape or not lie_well or is_half(out.dtype) or not are_usable()

    @classmethod
    def bind(cls, op: Any, ctx: Context, out: Any, *inputs: Any) -> Callable[[], None] | None:
        """A function that computes with these arrays; None where the operator does."""
        if cls.declines(op, ctx, out, *inputs):
            return None
        return _calls().bound(ctx, *_arguments(op, ctx, out, inputs))

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, *inputs: Any) -> None:
        if cls.declines(op, ctx, out, *inputs):
            op.forward(ctx, out, *inputs)
        else:
            _calls().bound(ctx, *_arguments(op, ctx, out, inputs))()

    @classmethod
    def backward(cls, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        if cls.declines(op, ctx, out, *inputs):
            op.backward(ctx, grad, grads, out, *inputs)
            return
        given = grad, *grads, out, *inputs
        if ctx.state is None or any(now is not before for now, before in zip(given, ctx.state[0], strict=True)):
            ctx.state = given, cls._bound_gradients(op, ctx, grad, grads, out, inputs)
        ctx.state[1]()

    @staticmethod
    def _bound_gradients(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, inputs: Sequence[Any]) -> Callable[[], None]:
        calls = _calls()
        arrays, *others = _arguments(op, ctx, out, inputs)
        dquery, dkey, dvalue = (
            ctx.scratch(f"gradient {i}", inputs[i].shape, out.dtype) if grads[i] is None else grads[i] for i in range(3)
        )
        given = grad if _lies_well(grad) else ctx.scratch("gradient", grad.shape, grad.dtype)
        bias_grad = op.lined_up(ctx, grads[-1]) if op.biased and grads[-1] is not None else None
        shape = (*out.shape[:2], arrays.key.shape[1])
        score_grad = None if bias_grad is None else ctx.scratch("gradients of scores", shape, out.dtype)
        arrays = arrays._replace(
            query_grad=dquery,
            key_grad=dkey.swapaxes(1, 2) if op.turned else dkey,
            value_grad=dvalue,
            score_grad=score_grad,
            result_grad=given,
        )
        write = calls.bound_gradients(ctx, arrays, *others)

        def call() -> None:
            if given is not grad:
                np.copyto(given, grad)
            write()
            if bias_grad is not None:
                ctx.sum_to(score_grad, bias_grad)

        return call


@lru_cache(maxsize=1)
def _calls() -> Any:
    from . import attention_calls

    return attention_calls


def _arguments(op: Any, ctx: Context, out: Any, inputs: Sequence[Any]) -> tuple[Any, Any, Any, bool]:
    """Arrays, entries, an array of a number, and whether scores are divided by it."""
    query, key, value = inputs[0], op.keys(inputs).swapaxes(1, 2), inputs[2]
    queries, keys = query.shape[1], key.shape[1]
    bias = None
    if op.biased:
        bias = op.lined_up(ctx, inputs[-1])
        bias = bias[(None,) * (3 - bias.ndim)]
    place = ctx.keep if ctx.training else ctx.scratch
    edge, total = (place(name, (len(out), queries, 1), out.dtype) for name in ("edge", "total"))
    keeps = ctx.training and keys <= _calls().keys_of_block(query.shape[2], out.shape[2], out.dtype)
    weights = ctx.keep("weights", (len(out), queries, keys), out.dtype) if keeps else None
    scale = np.ones(1, out.dtype) if op.scaling == "none" else inputs[3].reshape(1)
    arrays = _calls().Arrays(query, key, value, bias, edge, total, weights, out)
    return arrays, _calls().alike(len(out), queries, keys), scale, op.scaling == "divided"


def _lies_well(array: Any) -> bool:
    """Whether elements of rows lie side by side."""
    return array.ndim == 0 or array.shape[-1] == 1 or array.strides[-1] == array.itemsize
