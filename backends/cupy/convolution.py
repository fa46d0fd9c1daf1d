"""Convolution and transposed convolution by cuDNN, with bias and ReLU epilogues.

What cuDNN does not support falls back to the operator: filters with more than three spatial axes, and graphs without an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.common.shape import size_of
from ...core.common.windows import Correlation, Windows
from ...core.operators.epilogue import Epilogue, Step
from ...core.types.context import Context
from ...core.types.spec import Spec
from ..fused.followers import Follower, followers, has_rectifier
from . import epilogues
from .calls import Call, Work, again
from .cudnn import ALIGNMENT, Convolution, Cudnn, Direction, Each, Graph, Pointwise, Tensor, between, computing_type, cudnn_of, tensor_of

MOST_AXES = 3
"""Maximum number of spatial axes that cuDNN supports."""


class ConvolutionKernel:
    """``convolution`` and ``convolution_transpose``."""

    recordable = True

    @staticmethod
    def takes(op: Any, steps: Sequence[Step]) -> int:
        """Return how many of the steps are fused: a ReLU, or the sum with a bias per filter and a ReLU after it."""
        if op.transpose:
            return 0
        kinds = followers(steps)
        if kinds[0] is not Follower.SUM or not _is_bias(steps[0].others[0]):
            return int(kinds[0] is Follower.RECTIFIER)
        return 2 if kinds[1:] == [Follower.RECTIFIER] else 1

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, filters: Any, operand: Any) -> bool:
        """Whether to fall back to the operator."""
        return _forward(op, ctx, out, filters, operand, None) is None

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, filters: Any, operand: Any, epilogue: Epilogue | None = None) -> Callable[[], None] | None:
        """Return a function that convolves these arrays; None if cuDNN does not support them."""
        calls = _forward(op, ctx, out, filters, operand, epilogue)
        return None if calls is None else Work(calls)

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, filters: Any, operand: Any, epilogue: Epilogue | None = None) -> None:
        calls = _forward(op, ctx, out, filters, operand, epilogue)
        if calls is None:
            op.forward(ctx, out, filters, operand)
            calls = [] if epilogue is None else epilogue.calls(ctx, out)
        for call in calls:
            call()

    @staticmethod
    def backward(
        op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any, epilogue: Epilogue | None = None
    ) -> None:
        arrays = (grad, *grads, out, filters, operand, *(() if epilogue is None else epilogue.grads))
        for call in again(ctx, "backward", arrays, lambda: _backward(op, ctx, grad, grads, out, filters, operand, epilogue)):
            call()


def _forward(op: Any, ctx: Context, out: Any, filters: Any, operand: Any, epilogue: Epilogue | None) -> list[Call] | None:
    backend: Any = ctx.backend
    library = cudnn_of(backend)
    if library is None or not _lie_well(out, filters, operand):
        return None
    with_steps = Correlations(library, epilogue)
    op.forward(ctx, out, filters, operand, with_steps)
    if with_steps.calls is not None or epilogue is None:
        return with_steps.calls
    alone = Correlations(library)
    op.forward(ctx, out, filters, operand, alone)
    return None if alone.calls is None else [*alone.calls, *epilogue.calls(ctx, out)]


def _backward(
    op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any, epilogue: Epilogue | None
) -> list[Call]:
    """Return the calls for the gradients, those of filters and operand by cuDNN if that supports them."""
    backend: Any = ctx.backend
    calls: list[Call] = []
    if epilogue is not None:
        before = epilogues.before_steps(ctx, epilogue, grad)
        calls.extend(epilogues.backward(ctx, epilogue, grad, out, before))
        grad = before
    library = cudnn_of(backend) if _lie_well(grad, filters, operand, *(target for target in grads if target is not None)) else None
    for number, target in enumerate(grads):
        if target is None:
            continue
        wanted = [target if place == number else None for place in range(2)]
        noted = Correlations(library)
        op.backward(ctx, grad, wanted, out, filters, operand, noted)
        if noted.calls is None:
            calls.append(lambda wanted=wanted: op.backward(ctx, grad, wanted, out, filters, operand))  # type: ignore[misc]
        else:
            calls.extend(noted.calls)
    return calls


class Correlations:
    """Collects cuDNN calls for the correlations of an operator; passed to it in place of a module that computes them.

    Args:
        library: cuDNN; None if it is missing.
        epilogue: the epilogue to fuse, if any.

    Attributes:
        calls: the calls; None if cuDNN does not support a correlation.
    """

    def __init__(self, library: Cudnn | None, epilogue: Epilogue | None = None) -> None:
        self._library, self._epilogue = library, epilogue
        self.calls: list[Call] | None = []

    def correlate(self, ctx: Context, out: Any, filters: Any, operand: Any, g: Correlation) -> None:
        """Record the call for a correlation."""
        self._note(Direction.RESULT, operand, filters, out, g)

    def correlate_backward(
        self, ctx: Context, grad: Any, filters_grad: Any, operand_grad: Any, filters: Any, operand: Any, g: Correlation
    ) -> None:
        """Record the calls for the gradients of a correlation."""
        if filters_grad is not None:
            self._note(Direction.FILTERS, operand, filters_grad, grad, g)
        if operand_grad is not None:
            if any(lower < 0 for lower in g.windows.lower) and self.calls is not None:
                self.calls.append(lambda: operand_grad.fill(0))  # no window covers the first elements
            self._note(Direction.OPERAND, operand_grad, filters, grad, g)

    def _note(self, direction: Direction, operand: Any, filters: Any, result: Any, g: Correlation) -> None:
        call = None if self._library is None else _bound(self._library, direction, operand, filters, result, g, self._epilogue)
        if call is None or self.calls is None:
            self.calls = None
        else:
            self.calls.append(call)


def _bound(
    library: Cudnn, direction: Direction, operand: Any, filters: Any, result: Any, g: Correlation, epilogue: Epilogue | None
) -> Call | None:
    w = g.windows
    if len(w.dims) > MOST_AXES or 0 in (operand.size, filters.size, result.size) or not _is_told(w):
        return None
    seen = operand[(slice(None), slice(None), *w.seen)]
    weights = filters.reshape(g.maps, g.channels // g.groups, *w.kernel)
    arrays = [seen, weights, result]
    tensors = [_flat_axes(tensor_of(array)) for array in arrays]
    lacking = max(2 - len(w.dims), 0)
    operation = Convolution(
        direction,
        0,
        1,
        2,
        tuple(max(lower, 0) for lower in w.lower) + (0,) * lacking,
        w.upper + (0,) * lacking,
        w.strides + (1,) * lacking,
        w.dilation + (1,) * lacking,
    )
    operations: list[Convolution | Each] = [operation]
    dtype = computing_type(tensors[0].dtype)
    if epilogue is not None and not _add_steps(epilogue, operations, tensors, arrays, dtype):
        return None
    return library.bound(Graph(tuple(tensors), tuple(operations), dtype), arrays)


def _add_steps(epilogue: Epilogue, operations: list[Convolution | Each], tensors: list[Tensor], arrays: list[Any], dtype: str) -> bool:
    """Append the epilogue to the operations of the graph; return False if it cannot be fused."""
    result = tensors[2]
    if epilogue.others:
        (bias,) = epilogue.others
        maps = result.dims[1]
        if bias.size != maps or bias.dtype != arrays[2].dtype or not bias.flags.c_contiguous:
            return False
        operations.append(Each(Pointwise.ADD, 2, len(tensors), 2))
        tensors.append(
            Tensor((1, maps, *(1,) * (len(result.dims) - 2)), (maps, *(1,) * (len(result.dims) - 1)), result.dtype, _alignment(bias))
        )
        arrays.append(bias)
    if has_rectifier(epilogue.steps):
        operations.append(Each(Pointwise.RELU_FWD, 2, None, 2))
    _pass_on(operations, tensors, dtype)
    return True


def _pass_on(operations: list[Convolution | Each], tensors: list[Tensor], dtype: str) -> None:
    """Connect each operation to the next by a virtual tensor; the last one writes the result."""
    for number in range(len(operations) - 1):
        passed = len(tensors)
        tensors.append(between(tensors[2], dtype))
        operations[number] = operations[number]._replace(y=passed)
        operations[number + 1] = operations[number + 1]._replace(x=passed)


def _lie_well(*arrays: Any) -> bool:
    """Whether arrays can be reshaped without a copy, which would not see later values."""
    return all(array.flags.c_contiguous for array in arrays)


def _is_told(w: Windows) -> bool:
    """Whether cuDNN derives the same number of windows from sizes and padding."""
    axes = zip(w.seen, w.lower, w.upper, w.kernel, w.dilation, w.strides, w.out, strict=True)
    return all(
        (seen.stop - seen.start + max(lower, 0) + upper - (kernel - 1) * dilation - 1) // stride + 1 == out
        for seen, lower, upper, kernel, dilation, stride, out in axes
    )


def _flat_axes(tensor: Tensor) -> Tensor:
    """Return the tensor padded with axes of length 1 to at least two spatial axes."""
    lacking = max(4 - len(tensor.dims), 0)
    return tensor._replace(dims=tensor.dims + (1,) * lacking, strides=tensor.strides + (1,) * lacking)


def _alignment(array: Any) -> int:
    address: int = array.data.ptr
    return min(address & -address, ALIGNMENT)


def _is_bias(spec: Spec) -> bool:
    """Whether a spec is that of a bias, with one number per filter."""
    return spec.axes == () and len(spec.dims) > 0 and size_of(spec.dims[1:]) == 1
