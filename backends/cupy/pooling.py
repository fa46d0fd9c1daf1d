"""Pooling: by cuDNN averages, and maxima without gradients, as cuDNN does not specify which of equal maxima receives one.

Everything else, such as windows that cuDNN's symmetric padding cannot express, is computed by generated kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import POINTER, c_int, c_void_p
from typing import Any

from ...core.common.windows import Windows
from ...core.operators.epilogue import Epilogue, Step
from ...core.types.context import Context
from ..fused.followers import Follower, followers
from . import pools
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
    """Kernel for ``pooling`` of contiguous arrays, and a rectifier after maxima."""

    recordable = True

    @staticmethod
    def takes(op: Any, steps: Sequence[Step]) -> int:
        """Return how many of the steps are fused: a rectifier after maxima."""
        return int(op.pooling_type != AVERAGE and followers(steps)[0] is Follower.RECTIFIER)

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, x: Any) -> bool:
        """Whether to fall back to the operator."""
        return not pools.can_pool(x, out, windows=_windows(op, ctx, x))

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, x: Any, epilogue: Epilogue | None = None) -> Callable[[], None] | None:
        """Return a function that pools these arrays; None to fall back to the operator."""
        w = _windows(op, ctx, x)
        if not pools.can_pool(x, out, windows=w):
            return None
        library = None if epilogue is not None else _library(op, ctx, w, x)
        if library is not None:
            return Work([_forward(library, w, op, x, out)])
        if op.pooling_type == AVERAGE:
            return Work([pools.averages(x, w, op.include_pad, out)])
        taps = pools.taps_of(ctx, x, w) if ctx.training else None
        return Work([pools.maxima(x, w, out, taps, rectify=epilogue is not None)])

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any, epilogue: Epilogue | None = None) -> None:
        call = PoolingKernel.bind(op, ctx, out, x, epilogue)
        if call is not None:
            call()
            return
        op.forward(ctx, out, x)
        if epilogue is not None:
            epilogue.forward(ctx, out)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, epilogue: Epilogue | None = None) -> None:
        for call in again(ctx, "backward", (grad, *grads, out, x), lambda: _backward(op, ctx, grad, grads, out, x, epilogue)):
            call()


def _backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, epilogue: Epilogue | None) -> list[Call]:
    (dx,) = grads
    w = _windows(op, ctx, x)
    if not pools.can_pool(x, grad, dx, *(() if epilogue is None else (out,)), windows=w):
        return [lambda: op.backward(ctx, grad if epilogue is None else epilogue.backward(ctx, grad, out), grads, out, x)]
    if op.pooling_type == AVERAGE:
        library = _library(op, ctx, w, x)
        return [pools.spread(grad, w, op.include_pad, dx)] if library is None else _gradient(library, w, op, x, grad, dx)
    taps = pools.taps_of(ctx, x, w)
    found = [] if ctx.training else [pools.maxima(x, w, None, taps)]
    return [*found, pools.send_back(grad, taps, w, dx, None if epilogue is None else out)]


def _windows(op: Any, ctx: Context, x: Any) -> Windows:
    w: Windows = op.windows(x.shape if ctx.layouts[0] is None else x.shape[1:])
    return w.moving


# ---- cuDNN ----


def _library(op: Any, ctx: Context, w: Windows, x: Any) -> Cudnn | None:
    """Return cuDNN; None to use generated kernels: for gradients of maxima, and for windows that cuDNN cannot express."""
    is_ours = op.pooling_type == AVERAGE or (not ctx.training and w.meet_elements)
    if not is_ours or len(w.dims) > MOST_AXES or not x.size or not _is_told(w):
        return None
    backend: Any = ctx.backend
    return cudnn_of(backend)


def _forward(library: Cudnn, w: Windows, op: Any, x: Any, out: Any) -> Call:
    planes, results = _planes(x, w.dims), _planes(out, w.out)
    seen = planes[(slice(None), slice(None), *w.seen)]
    functions = library.functions(SIGNATURES)
    one, zero = scalars(x.dtype.name)
    given = (_description(library, op, w), one, described(library, seen), seen.data.ptr, zero, described(library, results), out.data.ptr)
    return library.launching(functions["cudnnPoolingForward"], *given)


def _gradient(library: Cudnn, w: Windows, op: Any, x: Any, grad: Any, dx: Any) -> list[Call]:
    functions = library.functions(SIGNATURES)
    one, zero = scalars(x.dtype.name)
    seen, target = (_planes(array, w.dims)[(slice(None), slice(None), *w.seen)] for array in (x, dx))
    results, places = described(library, _planes(grad, w.out)), described(library, seen)
    gradient = results, grad.data.ptr  # passed as the result as well, which average pooling does not use
    given = (_description(library, op, w), one, *gradient, *gradient, places, seen.data.ptr, zero, places, target.data.ptr)
    call = library.launching(functions["cudnnPoolingBackward"], *given)
    return [call] if target.shape == _planes(dx, w.dims).shape else [lambda: dx.fill(0), call]


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
