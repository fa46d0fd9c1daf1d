"""Copying pieces of arrays within compiled loops, and converting arrays for these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.machine.language import carray, copy_bytes, jittable
from ...core.types.context import Context
from .followers import After
from .tile import pointer, put_alternate, take_alternate


@jittable
def address(array: Any, at: int) -> int:
    """Where an element of a flat contiguous array lies."""
    return array.ctypes.data + at * array.itemsize


@jittable
def copy(target: Any, at: int, source: Any, start: int, size: int) -> None:
    """Copy *size* elements between flat arrays."""
    copy_bytes(address(target, at), address(source, start), size * target.itemsize)


@jittable
def copy_lines(target: Any, at: int, step: int, source: Any, start: int, stride: int, lines: Any) -> None:
    """Copy lines of *source*, whose elements lie *stride* apart, to where they belong in *target*, *step* apart."""
    for i in range(len(lines)):
        to, of, size = at + lines[i, 0], start + lines[i, 1], lines[i, 2]
        if step == 1 and stride == 1:
            copy(target, to, source, of, size)
        elif step == 1 and stride == 2:
            take_alternate(address(target, to), address(source, of), size, target)
        elif step == 2 and stride == 1:
            put_alternate(address(target, to), address(source, of), size, target)
        else:
            for j in range(size):
                target[to + j * step] = source[of + j * stride]


@jittable
def finish_lines(
    target: Any, at: int, step: int, source: Any, start: int, stride: int, lines: Any, bias: Any, residual: Any, rectify: bool
) -> None:
    """Copy lines with a number added to each element, then what *residual* has in its place in *target*, unless it is empty, and, if
    results are to be cut, zeros in place of what is negative."""
    least = -np.inf
    if rectify:
        least = 0.0
    low = target.dtype.type(least)
    for i in range(len(lines)):
        to, of, size = at + lines[i, 0], start + lines[i, 1], lines[i, 2]
        if step == 1 and stride == 1:
            left, right = target[to : to + size], source[of : of + size]
            if len(residual) > 0:
                more = residual[to : to + size]
                for j in range(size):
                    value = right[j] + bias + more[j]
                    left[j] = low if value < low else value
            else:
                for j in range(size):
                    value = right[j] + bias
                    left[j] = low if value < low else value
        else:
            for j in range(size):
                value = source[of + j * stride] + bias
                if len(residual) > 0:
                    value += residual[to + j * step]
                target[to + j * step] = low if value < low else value


@jittable
def finish_row(row: Any, bias: Any, residual: int, rectify: bool) -> None:
    """Apply to a row of a result what follows.

    Args:
        bias: what is added to the row; empty for nothing.
        residual: how many bytes behind each result lies what is then added to it; 0 for nothing.
        rectify: whether negative results then become zero.
    """
    if len(bias) > 0:
        for i in range(len(row)):
            row[i] += bias[i]
    if residual != 0:
        added = carray(pointer(address(row, 0) + residual, row), len(row))
        for i in range(len(row)):
            row[i] += added[i]
    if rectify:
        for i in range(len(row)):
            row[i] = row.dtype.type(0) if row[i] < 0 else row[i]


def in_turn(*calls: Callable[[], None]) -> Callable[[], None]:
    """A function that calls these, one after another."""

    def call() -> None:
        for each in calls:
            each()

    natives = [getattr(each, "natives", None) for each in calls]
    if None not in natives:
        call.natives = tuple([native for of_one in natives for native in of_one])  # type: ignore[attr-defined, union-attr]
    return call


def lie_well(out: Any, filters: Any, operand: Any, after: After) -> bool:
    """Whether loops can be bound to these arrays: read-only ones, and those whose elements lie apart, are copied at each call."""
    return all(array.flags.carray for array in (out, filters, operand, out if after.residual is None else after.residual))


def follows(ctx: Context, after: After, nothing: Any) -> tuple[Any, Any, bool]:
    """The bias and the residual, without axes, for a loop that takes an empty array for none, and whether results are rectified."""
    residual = nothing if after.residual is None else writable(ctx, "residual", after.residual).reshape(-1)
    return after.bias_or(nothing), residual, after.rectify


def writable(ctx: Context, name: str, array: Any) -> Any:
    """The array, or a copy if it is read-only, since loops would have to be compiled again for that."""
    if array.flags.writeable:
        return array
    copied = ctx.scratch(f"writable {name}", array.shape, array.dtype)
    np.copyto(copied, array)
    return copied
