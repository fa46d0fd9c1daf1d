"""Conversion of arrays to the contiguous ones that kernels require."""

from __future__ import annotations

from typing import Any

from ...core.types.context import Context


def whole(ctx: Context, name: str, array: Any) -> Any:
    """Return the array, or a contiguous copy of it if it is a part of another."""
    if array.flags.c_contiguous:
        return array
    copied = ctx.scratch(name, array.shape, array.dtype)
    ctx.xp.copyto(copied, array)
    return copied


def place(ctx: Context, name: str, array: Any) -> Any:
    """Return the array, or a contiguous buffer for it if it is a part of another; pass it to :func:`put` afterwards."""
    return array if array.flags.c_contiguous else ctx.scratch(name, array.shape, array.dtype)


def put(ctx: Context, array: Any, result: Any) -> None:
    """Copy a result to its array, if it was computed in a separate buffer."""
    if result is not array:
        ctx.xp.copyto(array, result)
