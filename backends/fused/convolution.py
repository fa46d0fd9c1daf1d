"""The kernel of convolution and its transpose.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.common.dtypes import is_half
from ...core.common.shape import size_of
from ...core.common.thresholds import thresholds
from ...core.common.windows import Correlation
from ...core.machine.self_check import are_usable
from ...core.operators.epilogue import Epilogue, Step
from ...core.types.context import Context
from ...core.types.spec import Spec
from .followers import After, parts, what_follows

LEAST_SEEN, LEAST_MAPS = 256, 64
"""The fewest weights of a filter, and filters, of which the gradient is computed from gathered elements where there are strides."""


class ConvolutionKernel:
    """Loops for float32 and float64, with what follows (:mod:`.followers`).  Small operands are left to the operator."""

    @staticmethod
    def takes(op: Any, steps: Sequence[Step]) -> int:
        """A sum with a number for each filter, one with a residual, and a rectifier."""
        return 0 if op.transpose else len(parts(steps, _is_bias))

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, filters: Any, operand: Any, epilogue: Epilogue | None = None) -> Callable[[], None] | None:
        """A function that convolves these arrays; None if loops cannot do all of it."""
        g, rows = _geometry(op, ctx, filters, operand)
        if op.transpose or not is_for_loops(g, rows, operand.dtype):
            return None
        follows = what_follows(epilogue, _is_bias)
        if follows.bias is not None and not follows.bias.size == g.maps == out.shape[-len(g.shape)]:
            return None
        result = _Result(follows)
        op.forward(ctx, out, filters, operand, result)
        return result.call

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, filters: Any, operand: Any, epilogue: Epilogue | None = None) -> None:
        call = ConvolutionKernel.bind(op, ctx, out, filters, operand, epilogue)
        if call is not None:
            call()
            return
        g, rows = _geometry(op, ctx, filters, operand)
        op.forward(ctx, out, filters, operand, *_loops(g, rows, operand.dtype, is_backward=op.transpose))
        if epilogue is not None:
            epilogue.forward(ctx, out)

    @staticmethod
    def backward(
        op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any, epilogue: Epilogue | None = None
    ) -> None:
        if epilogue is not None:
            grad = epilogue.backward(ctx, grad, out)
        if any(dx is not None for dx in grads):
            g, rows = _geometry(op, ctx, filters, operand)
            loops = _loops(g, rows, operand.dtype, is_backward=True)
            filters_grad, operand_grad = grads
            if loops and filters_grad is not None and not op.transpose and _gathers(g):
                op.backward(ctx, grad, (filters_grad, None), out, filters, operand)
                filters_grad = None
            if filters_grad is not None or operand_grad is not None:
                op.backward(ctx, grad, (filters_grad, operand_grad), out, filters, operand, *loops)


def _gathers(g: Correlation) -> bool:
    """Whether the gradient of filters takes less time where what each weight meets is gathered for a product, as the operator does it.

    Where strides skip elements, the runs that dots of grids go through are short.
    """
    w = g.windows
    skips = size_of(w.kernel) > 1 and max(w.strides) > 1 and g.groups == 1 and not g.over_channels
    return skips and g.weights[2] >= LEAST_SEEN and g.maps >= LEAST_MAPS


class _Result:
    """Stands in for a module of correlations when the operator calls it, and records the call."""

    def __init__(self, follows: After) -> None:
        self._follows = follows
        self.call: Callable[[], None] | None = None

    def correlate(self, ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation) -> None:
        """Record the call."""
        self.call = _module(g, len(operand), operand.itemsize).bound_correlation(ctx, out, filters, operand, g, self._follows)


def _is_bias(spec: Spec) -> bool:
    """Whether it has a number for each filter."""
    return spec.axes == () and len(spec.dims) > 0 and size_of(spec.dims[1:]) == 1


def _geometry(op: Any, ctx: Context, filters: Any, operand: Any) -> tuple[Correlation, int]:
    """The windows of the filters, and the number of images."""
    static = operand.shape if ctx.layouts[1] is None else operand.shape[1:]
    return op.geometry(filters.shape, static), operand.size // size_of(static) if operand.size else 0


def _loops(g: Correlation, rows: int, dtype: Any, is_backward: bool) -> Sequence[Any]:
    """The module that correlates; none if the operator is to use its own."""
    if not is_for_loops(g, rows, dtype):
        return ()
    module = _module(g, rows, dtype.itemsize)
    return () if is_backward and size_of(g.weights) > module.LARGEST_FILTERS else (module,)


def _module(g: Correlation, rows: int, itemsize: int) -> Any:
    """The module with the fastest loops for this many images."""
    from . import correlation, pointwise, winograd

    if pointwise.fits(g, rows):
        return pointwise
    return winograd if winograd.fits(g, rows, itemsize) else correlation


def is_for_loops(g: Correlation, rows: int, dtype: Any) -> bool:
    """Whether there is enough to do for loops."""
    return not is_half(dtype) and rows * size_of(g.weights) * size_of(g.windows.out) >= thresholds.convolution_compiled and are_usable()
