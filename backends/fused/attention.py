"""The kernel of attention.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        return scores < max(thresholds.attention_compiled, 1) or 0 in out.shape or is_half(out.dtype) or not are_usable()

    @classmethod
    def bind(cls, op: Any, ctx: Context, out: Any, *inputs: Any) -> Callable[[], None] | None:
        """A function that computes with these arrays; None where the scale is read anew each time, or the operator does the work."""
        return None

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, *inputs: Any) -> None:
        if cls.declines(op, ctx, out, *inputs):
            op.forward(ctx, out, *inputs)
            return
        from . import attention_calls as calls

        calls.bound(ctx, calls.Arrays(*_operands(op, ctx, inputs), *_statistics(ctx, out), out), _entries(op, inputs), op.factor(inputs))()

    @classmethod
    def backward(cls, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        if cls.declines(op, ctx, grad, *inputs):
            op.backward(ctx, grad, grads, out, *inputs)
            return
        from . import attention_calls as calls

        operands = _operands(op, ctx, inputs)
        dquery, dkey, dvalue = (
            ctx.scratch(f"gradient {i}", inputs[i].shape, grad.dtype) if grads[i] is None else grads[i] for i in range(3)
        )
        bias_grad = grads[-1] if op.biased else None
        shape = (*out.shape[:2], operands[1].shape[1])
        score_grad = None if bias_grad is None else ctx.scratch("gradients of scores", shape, grad.dtype)
        gradients = dquery, dkey.swapaxes(1, 2) if op.turned else dkey, dvalue, score_grad, _contiguous(ctx, "gradient", grad)
        arrays = calls.Arrays(*operands, *_statistics(ctx, out), out, *gradients)
        calls.write_gradients(ctx, arrays, _entries(op, inputs), op.factor(inputs))
        if bias_grad is not None:
            ctx.sum_to(score_grad, op.lined_up(ctx, bias_grad))


def _entries(op: Any, inputs: Sequence[Any]) -> Any:
    from .attention_calls import alike

    return alike(*inputs[0].shape[:2], op.keys(inputs).shape[2])


def _operands(op: Any, ctx: Context, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Queries, keys, values and bias, of three axes each."""
    query, _, value = inputs[:3]
    bias = None
    if op.biased:
        bias = op.lined_up(ctx, inputs[-1])
        bias = _contiguous(ctx, "bias", bias.reshape((1,) * (3 - bias.ndim) + bias.shape))
    return query, op.keys(inputs).swapaxes(1, 2), value, bias


def _statistics(ctx: Context, out: Any) -> tuple[Any, Any]:
    """The greatest score of each row, and the sum of the exponentials of the distances from it."""
    shape = (*out.shape[:2], 1)
    if ctx.training:
        return ctx.keep("edge", shape, out.dtype), ctx.keep("total", shape, out.dtype)
    return ctx.scratch("edge", shape, out.dtype), ctx.scratch("total", shape, out.dtype)


def _contiguous(ctx: Context, name: str, array: Any) -> Any:
    """The array, or a copy if the elements of its rows do not lie side by side."""
    if array.shape[-1] == 1 or array.strides[-1] == array.itemsize:
        return array
    copied = ctx.scratch(name, array.shape, array.dtype)
    np.copyto(copied, array)
    return copied
