"""Kernel for reductions: sums, means, extremes, logarithms of sums of exponentials, and positions of the greatest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.common.shape import size_of
from ...core.formulas.formula import operands
from ...core.types.context import Context
from . import elements, folds
from .calls import Work
from .elements import Operand, Store, axes_of
from .places import Along

RULES = {
    "Sum": folds.TOTAL,
    "Mean": folds.TOTAL,
    "Max": folds.GREATEST,
    "Min": folds.LEAST,
    "LogSum": folds.LOG_TOTAL,
    "Argmax": folds.PLACE_OF_GREATEST,
}
"""Rules by kind of reduction."""

FORMULAS: dict[str, Callable[..., Any]] = {
    "Sum": lambda x, y, dy, share: dy,
    "Mean": lambda x, y, dy, share: dy * share,
    "Max": lambda x, y, dy, share: dy * (x == y),
    "Min": lambda x, y, dy, share: dy * (x == y),
}
"""Formulas for the gradient of the operand *x*; other kinds fall back to the operator."""


class ReductionKernel:
    """Reductions of contiguous arrays over any axes."""

    recordable = True

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, x: Any) -> bool:
        """Whether to fall back to the operator: for empty arrays, for which some kinds have no value, and for strided ones."""
        return not x.size or not (out.flags.c_contiguous and x.flags.c_contiguous)

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, x: Any) -> Callable[[], None]:
        """Return a function that reduces *x* into *out*."""
        kind, axes = op.reduction_op_name, op.array_axes(ctx, x)
        along = [Along(length, stride // x.dtype.itemsize) for length, stride in zip(x.shape, x.strides, strict=True)]
        outputs = [axis for number, axis in enumerate(along) if number not in axes] or [Along(1, 0)]
        terms = [axis for number, axis in enumerate(along) if number in axes] or [Along(1, 0)]
        scale = size_of(out.shape) / size_of(x.shape) if kind == "Mean" else 1.0
        return Work(folds.bound(ctx.backend, RULES[kind], x, out, outputs, terms, scale))

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        if ReductionKernel.declines(op, ctx, out, x):
            op.forward(ctx, out, x)
        else:
            ReductionKernel.bind(op, ctx, out, x)()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        (dx,) = grads
        kind = op.reduction_op_name
        if kind not in FORMULAS or not dx.size or not (dx.flags.c_contiguous and grad.flags.c_contiguous):
            op.backward(ctx, grad, grads, out, x)
            return
        axes, shape = op.array_axes(ctx, dx), dx.shape or (1,)  # rows first: no kernel is compiled for their number
        kept = [1 if number in axes or not dx.ndim else length for number, length in enumerate(shape)]
        arrays = [None if x is None else x.reshape(shape), None if out is None else out.reshape(kept), grad.reshape(kept)]
        symbols = operands(3)
        term = FORMULAS[kind](*symbols, size_of(grad.shape) / size_of(dx.shape))
        read = [Operand(symbol, one, axes_of(one, shape, True)) for symbol, one in zip(symbols, arrays, strict=True) if one is not None]
        target = dx.reshape(shape)
        elements.bound(dx.dtype, shape, read, [Store(term, target, axes_of(target, shape, True))])()
