"""Arrays as kernels take them: in one piece."""

from __future__ import annotations

from typing import Any

from ...core.types.context import Context


def whole(ctx: Context, name: str, array: Any) -> Any:
    """The array, or a copy of one that is a part of another."""
    if array.flags.c_contiguous:
        return array
    copied = ctx.scratch(name, array.shape, array.dtype)
    ctx.xp.copyto(copied, array)
    return copied


def place(ctx: Context, name: str, array: Any) -> Any:
    """The array, or space for one that is a part of another, to be given to :func:`put` afterwards."""
    return array if array.flags.c_contiguous else ctx.scratch(name, array.shape, array.dtype)


def put(ctx: Context, array: Any, result: Any) -> None:
    """Copy a result to where it belongs, if it was computed elsewhere."""
    if result is not array:
        ctx.xp.copyto(array, result)
