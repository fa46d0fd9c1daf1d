"""Planes: an operand of convolution or pooling as the windows see it, padded and in the type to compute in, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.common.windows import Windows
from ...core.types.context import Context


def cut(size: int, nbytes: int, block_bytes: int) -> Iterator[slice]:
    """Cut *size* things of *nbytes* each into blocks that do not exceed *block_bytes*, unless a single thing does."""
    step = max(1, block_bytes // max(nbytes, 1))
    return (slice(start, min(start + step, size)) for start in range(0, size, step))


def are_planes(array: Any, w: Windows, dtype: Any) -> bool:
    """Whether windows can be laid over the array itself."""
    return not w.is_padded and array.dtype == dtype and array.flags.c_contiguous


def padded_planes(ctx: Context, x: Any, w: Windows, dtype: Any, fill: float = 0) -> Any:
    """The operand with padding of value *fill*, an array of shape (..., *w.padded): itself where it needs neither padding nor widening."""
    if are_planes(x, w, dtype):
        return x
    planes = ctx.scratch("planes", (*x.shape[: -len(w.dims)], *w.padded), dtype)
    if w.is_padded:
        planes.fill(fill)
    ctx.xp.copyto(planes[(..., *w.inside)], x[(..., *w.seen)])
    return planes


def gradient_planes(ctx: Context, dx: Any, w: Windows, dtype: Any) -> Any:
    """Zeros to sum up the gradient of planes in: the operand's gradient itself where the operand needs neither padding nor widening."""
    planes = dx if are_planes(dx, w, dtype) else ctx.scratch("gradient planes", (*dx.shape[: -len(w.dims)], *w.padded), dtype)
    planes.fill(0)
    return planes


def take_gradient(ctx: Context, dx: Any, planes: Any, w: Windows) -> None:
    """Bring the gradient of planes into the operand's gradient, if it is not there already."""
    if are_planes(dx, w, planes.dtype):
        return
    if any(lower < 0 for lower in w.lower):
        dx.fill(0)
    ctx.xp.copyto(dx[(..., *w.seen)], planes[(..., *w.inside)])
