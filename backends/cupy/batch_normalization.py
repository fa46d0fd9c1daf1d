"""Batch normalisation in training by cuDNN, computed in float32 or wider.

The operator maintains the running statistics, and handles evaluation with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_double, c_int, c_void_p
from typing import Any

from ...core.types.context import Context
from .calls import again
from .cudnn import Cudnn, cudnn_of, scalars
from .tensors import described

BY_ELEMENT, BY_CHANNEL = 0, 1
"""Statistics per element or per channel: cudnnBatchNormMode_t."""

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudnnBatchNormalizationForwardTraining": (
        c_void_p,
        c_int,
        *(c_void_p,) * 9,
        c_double,
        *(c_void_p,) * 2,
        c_double,
        *(c_void_p,) * 2,
    ),
    "cudnnBatchNormalizationBackward": (c_void_p, c_int, *(c_void_p,) * 14, c_double, *(c_void_p,) * 2),
}
"""Argument types of the library functions that are used."""


class BatchNormalizationKernel:
    """Kernel for ``batch_normalization`` in training."""

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, *inputs: Any) -> None:
        op.forward(ctx, out, *inputs, loops=again(ctx, "forward", (out, *inputs), lambda: _loops(op, ctx, out, inputs[0])))

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        if any(dx is not None for dx in grads):
            arrays = grad, *grads, *inputs
            loops = again(ctx, "backward", arrays, lambda: _loops(op, ctx, grad, inputs[0]))
            op.backward(ctx, grad, grads, out, *inputs, loops=loops)


class _Loops:
    """cuDNN's replacement for the operator's own passes over the data, always called with the same arrays.

    Args:
        library: cuDNN.
        op, ctx: the operator and its context.
    """

    def __init__(self, library: Cudnn, op: Any, ctx: Context) -> None:
        self._library, self._op, self._ctx = library, op, ctx
        self._functions = library.functions(SIGNATURES)
        self._bound: Callable[[], None] | None = None

    def normalise(self, x: Any, y: Any, scale: Any, bias: Any, mean: Any, variance: Any, inverse: Any, epsilon: float) -> None:
        """Compute the statistics of each feature of *x*, ``(rows, features, places)``, and write the result to *y*."""
        scale, bias = self._as_statistics("scale", scale, mean), self._as_statistics("bias", bias, mean)
        if self._bound is None:
            data, features = described(self._library, x), described(self._library, mean[None])
            self._bound = self._library.launching(
                self._functions["cudnnBatchNormalizationForwardTraining"],
                _mode(x),
                *scalars(x.dtype.name),
                data,
                x.data.ptr,
                data,
                y.data.ptr,
                features,
                scale.data.ptr,
                bias.data.ptr,
                1.0,
                None,
                None,
                epsilon,
                mean.data.ptr,
                inverse.data.ptr,
            )
        self._bound()
        xp = self._ctx.xp
        xp.divide(1, inverse, out=variance)
        xp.multiply(variance, variance, out=variance)
        xp.subtract(variance, epsilon, out=variance)
        xp.maximum(variance, 0, out=variance)

    def differentiate(self, x: Any, dy: Any, scale: Any, mean: Any, inverse: Any, slope: Any, offset: Any, dx: Any) -> None:
        """Compute the gradients of scale, bias and, if required, the operand."""
        scale = self._as_statistics("scale", scale, mean)
        target = self._ctx.scratch("gradient", x.shape, x.dtype) if dx is None else dx
        if self._bound is None:
            data, features = described(self._library, x), described(self._library, mean[None])
            self._bound = self._library.launching(
                self._functions["cudnnBatchNormalizationBackward"],
                _mode(x),
                *scalars(x.dtype.name),
                *scalars(x.dtype.name),
                data,
                x.data.ptr,
                data,
                dy.data.ptr,
                data,
                target.data.ptr,
                features,
                scale.data.ptr,
                slope.data.ptr,
                offset.data.ptr,
                self._op.epsilon,
                mean.data.ptr,
                inverse.data.ptr,
            )
        self._bound()

    def _as_statistics(self, key: str, vector: Any, like: Any) -> Any:
        """Return a vector converted to the type of the statistics."""
        if vector.dtype == like.dtype:
            return vector
        wide = self._ctx.scratch(key, like.shape, like.dtype)
        self._ctx.xp.copyto(wide, vector)
        return wide


def _loops(op: Any, ctx: Context, out: Any, operand: Any) -> _Loops | None:
    """Return the replacement for the operator's own passes; None to fall back to the operator."""
    if not ctx.training or not out.size or not out.flags.c_contiguous or not operand.flags.c_contiguous:
        return None
    backend: Any = ctx.backend
    library = cudnn_of(backend)
    return None if library is None else _Loops(library, op, ctx)


def _mode(x: Any) -> int:
    return BY_CHANNEL if x.shape[2] > 1 else BY_ELEMENT
