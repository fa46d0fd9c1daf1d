"""The kernel of pooling.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import is_half
from ...core.common.shape import size_of
from ...core.common.thresholds import thresholds
from ...core.common.windows import Windows
from ...core.machine.self_check import are_usable
from ...core.operators.epilogue import Epilogue, Step
from ...core.types.context import Context
from .followers import Follower, followers

LARGEST_WINDOW = 256
"""Elements of a window that numbers of eight bits tell apart."""

MAXIMUM = 0


class PoolingKernel:
    """Loops for maxima of float32 and float64, with a rectifier that follows.  Averages and small operands are left to the operator."""

    @staticmethod
    def takes(op: Any, steps: Sequence[Step]) -> int:
        """A rectifier."""
        return int(op.pooling_type == MAXIMUM and followers(steps)[0] is Follower.RECTIFIER)

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, x: Any, epilogue: Epilogue | None = None) -> Callable[[], None] | None:
        """A function that pools these arrays; None if loops cannot, or gradients need more than the maxima."""
        planes, w = _planes(op, ctx, x)
        if ctx.training or not _is_for_loops(op, w, planes):
            return None
        from .maxima import bound_maxima

        return bound_maxima(ctx, out, planes, w, rectify=epilogue is not None)

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any, epilogue: Epilogue | None = None) -> None:
        call = PoolingKernel.bind(op, ctx, out, x, epilogue)
        planes, w = _planes(op, ctx, x)
        if call is not None:
            call()
        elif _is_for_loops(op, w, planes):
            from .pools import find_maxima

            find_maxima(ctx, out, _taps(ctx, planes, w), planes, w, rectify=epilogue is not None)
        else:
            op.forward(ctx, out, x)
            if epilogue is not None:
                epilogue.forward(ctx, out)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, epilogue: Epilogue | None = None) -> None:
        planes, w = _planes(op, ctx, x)
        if not ctx.training or not _is_for_loops(op, w, planes):
            sent = grad if epilogue is None else epilogue.backward(ctx, grad, out)
            op.backward(ctx, sent, grads, out, x)
            return
        from .pools import send_back

        send_back(ctx, grads[0].reshape(planes.shape), grad, None if epilogue is None else out, _taps(ctx, planes, w), w)


def _is_for_loops(op: Any, w: Windows, planes: Any) -> bool:
    return op.pooling_type == MAXIMUM and is_for_loops(w, len(planes), planes.dtype)


def is_for_loops(w: Windows, planes: int, dtype: Any) -> bool:
    """Whether loops are faster, and no window lies in the padding alone."""
    kernel = size_of(w.kernel)
    if is_half(dtype) or planes * size_of(w.out) * kernel < thresholds.pooling_compiled or kernel > LARGEST_WINDOW or w.kernel == w.padded:
        return False
    return w.meet_elements and are_usable()


def _planes(op: Any, ctx: Context, x: Any) -> tuple[Any, Windows]:
    """The operand as rows of what the windows slide over."""
    w = op.windows(x.shape if ctx.layouts[0] is None else x.shape[1:]).moving
    return x.reshape(-1, *w.dims), w


def _taps(ctx: Context, planes: Any, w: Windows) -> Any:
    """Space for the number of the maximum in each window, which is kept for the gradient."""
    return ctx.keep("taps", (len(planes), *w.out), np.uint8)
