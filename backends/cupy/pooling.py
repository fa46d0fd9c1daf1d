"""Pooling by cuDNN: average pooling, and max pooling without gradients, as cuDNN does not specify which of equal maxima receives it.

Everything else falls back to the operator, including windows that cuDNN's symmetric padding cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import POINTER, c_int, c_void_p
from typing import Any

from ...core.common.windows import Windows
from ...core.types.context import Context
from .calls import Call, Work, again
from .cudnn import Cudnn, cudnn_of, scalars
from .tensors import described, ints, whole

AVERAGE = 1
"""The operator's ``pooling_type`` of average pooling."""

MAXIMA, AVERAGES_OF_ALL, AVERAGES_INSIDE = 0, 1, 2
PROPAGATE_NAN = 1
MOST_AXES = 3

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudnnCreatePoolingDescriptor": (POINTER(c_void_p),),
    "cudnnDestroyPoolingDescriptor": (c_void_p,),
    "cudnnSetPoolingNdDescriptor": (c_void_p, c_int, c_int, c_int, c_void_p, c_void_p, c_void_p),
    "cudnnPoolingForward": (c_void_p,) * 8,
    "cudnnPoolingBackward": (c_void_p,) * 12,
}
"""Argument types of the library functions that are used."""


class PoolingKernel:
    """Kernel for ``pooling``."""

    recordable = True

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, x: Any) -> bool:
        """Whether to fall back to the operator."""
        return _prepared(op, ctx, x) is None or not out.flags.c_contiguous

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, x: Any) -> Callable[[], None] | None:
        """Return a function that pools these arrays; None if cuDNN does not support them."""
        found = _prepared(op, ctx, x)
        return None if found is None else Work([_forward(*found, op, x, out)])

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        call = PoolingKernel.bind(op, ctx, out, x) if out.flags.c_contiguous else None
        if call is None:
            op.forward(ctx, out, x)
        else:
            call()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        for call in again(ctx, "backward", (grad, *grads, x), lambda: _backward(op, ctx, grad, grads, out, x)):
            call()


def _forward(library: Cudnn, w: Windows, op: Any, x: Any, out: Any) -> Call:
    planes, results = _planes(x, w.dims), _planes(out, w.out)
    seen = planes[(slice(None), slice(None), *w.seen)]
    functions = library.functions(SIGNATURES)
    one, zero = scalars(x.dtype.name)
    given = (_description(library, op, w), one, described(library, seen), seen.data.ptr, zero, described(library, results), out.data.ptr)
    return library.launching(functions["cudnnPoolingForward"], *given)


def _backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> list[Call]:
    (dx,) = grads
    found = _prepared(op, ctx, x) if op.pooling_type == AVERAGE and grad.flags.c_contiguous and dx.flags.c_contiguous else None
    if found is None:
        return [lambda: op.backward(ctx, grad, grads, out, x)]
    library, w = found
    functions = library.functions(SIGNATURES)
    one, zero = scalars(x.dtype.name)
    seen, target = (_planes(array, w.dims)[(slice(None), slice(None), *w.seen)] for array in (x, dx))
    results, places = described(library, _planes(grad, w.out)), described(library, seen)
    gradient = results, grad.data.ptr  # passed as the result as well, which average pooling does not use
    given = (_description(library, op, w), one, *gradient, *gradient, places, seen.data.ptr, zero, places, target.data.ptr)
    call = library.launching(functions["cudnnPoolingBackward"], *given)
    return [call] if target.shape == _planes(dx, w.dims).shape else [lambda: dx.fill(0), call]


def _prepared(op: Any, ctx: Context, x: Any) -> tuple[Cudnn, Windows] | None:
    """Return cuDNN and the windows; None to fall back to the operator."""
    w = op.windows(x.shape if ctx.layouts[0] is None else x.shape[1:]).moving
    is_ours = op.pooling_type == AVERAGE or (not ctx.training and w.meet_elements)
    if not is_ours or len(w.dims) > MOST_AXES or not x.size or not x.flags.c_contiguous or not _is_told(w):
        return None
    backend: Any = ctx.backend
    library = cudnn_of(backend)
    return None if library is None else (library, w)


def _is_told(w: Windows) -> bool:
    """Whether symmetric padding gives the same number of windows, none of which covers only padding."""
    axes = zip(w.seen, w.lower, w.kernel, w.strides, w.out, strict=True)
    return all(
        max(lower, 0) < kernel and (seen.stop - seen.start + 2 * max(lower, 0) - kernel) // stride + 1 == out
        for seen, lower, kernel, stride, out in axes
    )


def _description(library: Cudnn, op: Any, w: Windows) -> c_void_p:
    functions = library.functions(SIGNATURES)
    made = library.made(functions["cudnnCreatePoolingDescriptor"], functions["cudnnDestroyPoolingDescriptor"])
    mode = MAXIMA if op.pooling_type != AVERAGE else AVERAGES_OF_ALL if op.include_pad else AVERAGES_INSIDE
    axes = whole(w.kernel, 2), whole(tuple(max(lower, 0) for lower in w.lower), 2, 0), whole(w.strides, 2)
    functions["cudnnSetPoolingNdDescriptor"](made, mode, PROPAGATE_NAN, max(len(w.dims), 2), *map(ints, axes))
    return made


def _planes(array: Any, dims: tuple[int, ...]) -> Any:
    """Return an array as planes over which windows slide, ``(planes, 1, *dims)``."""
    return array.reshape(-1, 1, *dims)
