"""Copying pieces of arrays within compiled loops, and making arrays fit for these."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.context import Context
from .language import copy_bytes, helper


@helper
def address(array: Any, at: int) -> int:
    """Where an element of a flat contiguous array lies."""
    return array.ctypes.data + at * array.itemsize


@helper
def copy(target: Any, at: int, source: Any, start: int, size: int) -> None:
    """Copy *size* elements between flat arrays."""
    copy_bytes(address(target, at), address(source, start), size * target.itemsize)


@helper
def gather(target: Any, at: int, source: Any, start: int, stride: int, pieces: Any) -> None:
    """Copy pieces of *source*, whose elements lie *stride* apart, to where they belong."""
    for i in range(len(pieces)):
        place, origin, size = at + pieces[i, 0], start + pieces[i, 1], pieces[i, 2]
        if stride == 1:
            copy(target, place, source, origin, size)
        else:
            to, of = target[place : place + size], source[origin:]
            for j in range(size):
                to[j] = of[j * stride]


@helper
def copy_lines(target: Any, at: int, step: int, source: Any, start: int, stride: int, lines: Any) -> None:
    """Copy lines of *source*, whose elements lie *stride* apart, to where they belong in *target*, *step* apart."""
    for i in range(len(lines)):
        to, of, size = at + lines[i, 0], start + lines[i, 1], lines[i, 2]
        if step == 1 and stride == 1:
            copy(target, to, source, of, size)
        else:
            for j in range(size):
                target[to + j * step] = source[of + j * stride]


def writable(ctx: Context, name: str, array: Any) -> Any:
    """The array, or a copy of one that is read only, for which loops would have to be compiled once more."""
    if array.flags.writeable:
        return array
    copied = ctx.scratch(f"writable {name}", array.shape, array.dtype)
    np.copyto(copied, array)
    return copied
