"""Kernels for cross entropy with softmax.  Narrow rows are handled by one thread each, with the bodies of the loops for the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.common.dtypes import is_half
from ...core.types.axis import Axis
from ...core.types.context import Context
from ...core.types.sparse import SparseRows
from ..fused import distributions as loops
from . import rows
from .arrays import place, put, whole
from .compiler import Kernel, Launch, flat, once

KERNELS = {
    (False, False): (Kernel.of(loops.cross_entropy), Kernel.of(loops.cross_entropy_gradient)),
    (False, True): (Kernel.of(loops.sparse_cross_entropy), Kernel.of(loops.sparse_cross_entropy_gradient)),
    (True, False): (rows.cross_entropy, rows.cross_entropy_gradient),
    (True, True): (rows.sparse_cross_entropy, rows.sparse_cross_entropy_gradient),
}
"""Kernels of the forward and the backward pass, by whether rows are wide and whether targets are sparse."""


class CrossEntropyKernel:
    """Cross entropy of float32 and float64 logits with classes on the last axis and targets of the same shape, dense or sparse.

    Exponentials are recomputed for the gradient.
    """

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> bool:
        """Whether to fall back to the operator."""
        if not z.size or is_half(z.dtype) or y.shape != z.shape or (ctx.layouts[0] is None) != (ctx.layouts[1] is None):
            return True
        axis = op.axis.static_axis_index() if isinstance(op.axis, Axis) else op.axis
        return axis not in (-1, z.ndim - (ctx.layouts[0] is not None) - 1)

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> Callable[[], None] | None:
        """Return the launch; None if arrays are not contiguous, or differ for each minibatch, as those of sparse targets do."""
        if isinstance(y, SparseRows) or CrossEntropyKernel.declines(op, ctx, out, z, y):
            return None
        if not all(array.flags.c_contiguous for array in (out, z, y)):
            return None
        logits, targets, edge, total = _rows(ctx, z, y)
        launch: Launch = _bound(0, logits, targets, edge, total, flat(out))
        return launch

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> None:
        if CrossEntropyKernel.declines(op, ctx, out, z, y):
            op.forward(ctx, out, z, y)
            return
        result, held = place(ctx, "result", out), list(ctx.state or (None, None))
        logits, targets, edge, total = _rows(ctx, z, y)
        held[0] = once(held[0], (logits, *targets, result), lambda: _bound(0, logits, targets, edge, total, flat(result)))
        ctx.state = held
        held[0][1]()
        put(ctx, out, result)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, z: Any, y: Any) -> None:
        if CrossEntropyKernel.declines(op, ctx, out, z, y):
            op.backward(ctx, grad, grads, out, z, y)
            return
        dz, dy = grads
        if dz is not None:
            given, result, held = whole(ctx, "grad", grad), place(ctx, "result", dz), list(ctx.state or (None, None))
            logits, targets, edge, total = _rows(ctx, z, y)
            arrays = logits, *targets, given, result
            held[1] = once(held[1], arrays, lambda: _bound(1, logits, targets, edge, total, flat(given), _by_classes(result)))
            ctx.state = held
            held[1][1]()
            put(ctx, dz, result)
        if dy is not None:
            factor = grad.reshape(*grad.shape, *(1,) * (z.ndim - grad.ndim))
            ctx.xp.multiply(z, factor, out=dy)
            ctx.xp.negative(dy, out=dy)


def _rows(ctx: Context, z: Any, y: Any) -> tuple[Any, Sequence[Any], Any, Any]:
    """Return the logits, the arrays of the target, and buffers for the largest logit of each row and for its sum of exponentials."""
    count = z.size // z.shape[-1]
    targets = y.parts if isinstance(y, SparseRows) else (whole(ctx, "target", y),)
    return whole(ctx, "logits", z), targets, ctx.keep("edge", (count,), z.dtype), ctx.keep("total", (count,), z.dtype)


def _bound(back: int, logits: Any, targets: Sequence[Any], *arrays: Any) -> Any:
    matrix, is_sparse = _by_classes(logits), len(targets) > 1
    kernels = KERNELS[matrix.shape[1] >= rows.WIDE, is_sparse]
    return kernels[back].bound(len(matrix), matrix, *(targets if is_sparse else map(_by_classes, targets)), *arrays)


def _by_classes(array: Any) -> Any:
    return array.reshape(-1, array.shape[-1])
