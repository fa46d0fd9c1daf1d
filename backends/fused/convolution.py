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
from .followers import After, Part, parts, what_follows

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
        op.forward(ctx, out, filters, operand, *_loops(g, rows, operand.dtype))
        if epilogue is not None:
            epilogue.forward(ctx, out)

    @staticmethod
    def backward(
        op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any, epilogue: Epilogue | None = None
    ) -> None:
        g, rows = _geometry(op, ctx, filters, operand)
        if epilogue is not None:
            grad = _send_back(ctx, epilogue, grad, out, g)
        loops = _loops(g, rows, grad.dtype)
        of_filters = _of_filters(g, grad.itemsize, loops)
        if of_filters == loops:
            if any(dx is not None for dx in grads):
                op.backward(ctx, grad, grads, out, filters, operand, *loops)
            return
        filters_grad, operand_grad = grads
        if filters_grad is not None:
            op.backward(ctx, grad, (filters_grad, None), out, filters, operand, *of_filters)
        if operand_grad is not None:
            op.backward(ctx, grad, (None, operand_grad), out, filters, operand, *loops)


def _send_back(ctx: Context, epilogue: Epilogue, grad: Any, out: Any, g: Correlation) -> Any:
    """The gradient of the convolution, after which come the steps; writes those of their operands."""
    found = parts(epilogue.steps, _is_bias)
    bias_grad, rectify = epilogue.grads[0] if Part.BIAS in found else None, Part.RECTIFIER in found
    if (
        bias_grad is None
        or grad.size < thresholds.product_cut
        or is_half(grad.dtype)
        or not bias_grad.size == g.maps == grad.shape[-len(g.shape)]
        or not all(array.flags.c_contiguous for array in (grad, out)[: 1 + rectify])
        or not are_usable()
    ):
        return epilogue.backward(ctx, grad, out)
    from .cut_back import cut_planes

    planes = -1, g.maps, size_of(g.windows.out)
    result = out.reshape(planes) if rectify else None
    return cut_planes(ctx, grad.reshape(planes), result, bias_grad).reshape(grad.shape)


def _of_filters(g: Correlation, itemsize: int, loops: Sequence[Any]) -> Sequence[Any]:
    """The module for the gradient of filters, where *loops* are those for all else; none if the operator is to use its own.

    What each weight meets is gathered where strides skip elements, so that the runs that dots of grids go through are short, and where
    there are many weights, whose gradient takes too much memory in parts.
    """
    w = g.windows
    skips = size_of(w.kernel) > 1 and max(w.strides) > 1 and g.weights[2] >= LEAST_SEEN and g.maps >= LEAST_MAPS
    are_many = any(size_of(g.weights) > module.LARGEST_FILTERS for module in loops)
    if not loops or not (skips or are_many):
        return loops
    from . import gathered_gradient

    if gathered_gradient.fits(g, itemsize):
        return (gathered_gradient,)
    return () if are_many else loops


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


def _loops(g: Correlation, rows: int, dtype: Any) -> Sequence[Any]:
    """The module that correlates; none if the operator is to use its own."""
    return (_module(g, rows, dtype.itemsize),) if is_for_loops(g, rows, dtype) else ()


def _module(g: Correlation, rows: int, itemsize: int) -> Any:
    """The module with the fastest loops for this many images."""
    from . import correlation, pointwise, winograd

    if pointwise.fits(g, rows):
        return pointwise
    return winograd if winograd.fits(g, rows, itemsize) else correlation


def is_for_loops(g: Correlation, rows: int, dtype: Any) -> bool:
    """Whether there is enough to do for loops."""
    return not is_half(dtype) and rows * size_of(g.weights) * size_of(g.windows.out) >= thresholds.convolution_compiled and are_usable()
