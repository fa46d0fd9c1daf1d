"""Kernel for batch normalisation in training; evaluation with the running statistics is the operator's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.types.context import Context
from . import features
from .calls import Call, again
from .features import Backward, Forward, Weight


class BatchNormalizationKernel:
    """``batch_normalization``, in training two launches in each direction, the first of which also counts the samples."""

    recordable = True

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *inputs: Any) -> bool:
        """Whether to fall back to the operator: for empty and for strided arrays, and for several counts."""
        return not out.size or inputs[5].size != 1 or not all(array.flags.c_contiguous for array in (out, *inputs))

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, *inputs: Any) -> Callable[[], None]:
        """Return a function that normalises."""
        return _Normalise(op, ctx, out, inputs)

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, *inputs: Any) -> None:
        if BatchNormalizationKernel.declines(op, ctx, out, *inputs):
            op.forward(ctx, out, *inputs)
        else:
            BatchNormalizationKernel.bind(op, ctx, out, *inputs)()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        arrays = grad, *grads, *inputs
        for call in again(ctx, "backward", arrays, lambda: _backward(op, ctx, grad, grads, inputs)):
            call()


class _Normalise:
    """The calls forward; :class:`~cntk.core.extension.kernel.Repeatable`.

    Args:
        op, ctx: the operator and its context.
        out: the result.
        inputs: the operands.
    """

    def __init__(self, op: Any, ctx: Context, out: Any, inputs: Sequence[Any]) -> None:
        self._op, self._ctx, self._out, self._inputs = op, ctx, out, inputs
        self._bind()

    def _bind(self) -> None:
        self._attributes = _attributes(self._op)
        self._calls = _forward(self._op, self._ctx, self._out, self._inputs)

    def __call__(self) -> None:
        if not self.holds():
            self._bind()
        self.work()

    def holds(self) -> bool:
        """Whether the operator's attributes are still those that the calls were made for."""
        return self._attributes == _attributes(self._op)

    def prepare(self) -> None:
        """Do nothing; the running statistics and their count are in device memory."""

    def work(self) -> None:
        """Make the calls."""
        for call in self._calls:
            call()


def _attributes(op: Any) -> tuple[float, float]:
    return op.epsilon, op.normalization_time_constant


def _forward(op: Any, ctx: Context, out: Any, inputs: Sequence[Any]) -> list[Call]:
    if not ctx.training:
        return [partial(op.forward, ctx, out, *inputs)]
    operand, scale, bias, running_mean, running_variance, count = inputs
    x, y = (op.by_feature(ctx, array, scale.size) for array in (operand, out))
    mean, _, inverse = op.statistics(ctx, x)
    averages = op.normalization_time_constant < 0
    weight = Weight(ctx.scratch("share", (1,), np.float64), None if averages else op.share(len(x), seen=1))
    arrays = Forward(x, y, scale, bias, running_mean, running_variance, count, mean, inverse)
    return features.forward(arrays, partial(_pieces, ctx), weight, op.epsilon)


def _backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], inputs: Sequence[Any]) -> list[Call]:
    operand, scale, *_ = inputs
    dx, dscale, dbias, *_ = grads
    arrays = [array for array in (grad, dx, dscale, dbias, operand, scale) if array is not None]
    if not ctx.training or not grad.size or not all(array.flags.c_contiguous for array in arrays):
        return [lambda: op.backward(ctx, grad, grads, None, *inputs)]
    x, dy = (op.by_feature(ctx, array, scale.size) for array in (operand, grad))
    dx = None if dx is None else op.by_feature(ctx, dx, scale.size)
    mean, _, inverse = op.statistics(ctx, x)
    return features.backward(Backward(x, dy, dx, scale, mean, inverse, dscale, dbias), partial(_pieces, ctx))


def _pieces(ctx: Context, count: int) -> Any:
    """Return device memory for sums of pieces."""
    return ctx.scratch("pieces", (count, 2), np.float64)
