"""Rows of sequences: taking some of them, walking them step by step, and the axes that the results are on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type, is_half
from ...core.common.shape import size_of
from ...core.common.sums import FEW, add_up_runs
from ...core.types.axis import Axes, Axis, format_axes
from ...core.types.context import Context
from ...core.types.layout import Index, Layout
from ...core.types.sparse import SparseRows
from ...core.types.spec import Spec
from . import csr

# ---- types ---------------------------------------------------------------------------------------


def sequence_axes(x: Spec, what: str = "the operand") -> Axes | None:
    """The dynamic axes of an operand that must be a sequence; None while they are unknown.

    Raises:
        ValueError: it has no sequence axis.
    """
    if x.axes is not None and len(x.axes) != 2:
        raise ValueError(
            f"{what} is on the dynamic axes {format_axes(x.axes)}, but must be a sequence, on [#, *]; make it one with "
            "sequence.broadcast_as, which repeats it along another sequence, or with to_sequence, which takes a static axis for steps"
        )
    return x.axes


def without_steps(axes: Axes | None) -> Axes | None:
    """The batch axis of a sequence's dynamic axes."""
    return None if axes is None else axes[:1]


def derived_axes(axes: Axes | None, factor: int, addend: int) -> Axes | None:
    """Dynamic axes of sequences of ``factor * steps + addend`` steps, where *axes* are those of sequences of so many *steps*.

    The axis is named after what it is derived from, so that all values whose steps are picked alike are on one axis; a single step
    leaves no sequence axis.
    """
    if axes is None or (factor, addend) == (1, 0):
        return axes
    batch, steps = axes
    if (factor, addend) == (0, 1):
        return (batch,)
    if factor == 0:
        return (batch, Axis(f"{steps.name}_fixedSliceOf_{addend}"))
    more = f"_plus_{addend}" if addend > 0 else f"_minus_{-addend}" if addend else ""
    return (batch, Axis(f"{steps.name}_times_{factor}{more}"))


def shaped(x: Spec) -> Spec:
    """The type of an operand whose shape does not matter, with a shape even if none is known."""
    return x if x.shape is not None else x.but(shape=())


# ---- layouts -------------------------------------------------------------------------------------


def sequences(layout: Layout | None) -> tuple[Layout, Index]:
    """The layout of a value that is known to have a sequence axis, with the lengths of the sequences."""
    assert layout is not None and layout.lengths is not None
    return layout, layout.lengths


def require_same_lengths(one: Layout | None, other: Layout | None, why: str) -> None:
    """Require that two values have as many sequences, of the same lengths.

    Raises:
        ValueError: they have not; it starts with *why*.
    """
    if one is not other and one != other:
        raise ValueError(f"{why} must have sequences of the same lengths, but one has {one} and the other has {other}")


def require_steps(lengths: Index, why: str) -> None:
    """Require that no sequence of a result is empty.

    Raises:
        RuntimeError: one is.
    """
    if lengths.min(initial=1) < 1:
        raise RuntimeError(f"{why} leaves sequence {int(np.argmin(lengths))} of the minibatch without a step; leave such sequences out")


# ---- values --------------------------------------------------------------------------------------


def take_rows(ctx: Context, out: Any, x: Any, layout: Layout, name: str) -> None:
    """Let row r of the result be that row of *x* which the index array *name* of a layout has at r; both are dense or both sparse."""
    if isinstance(x, SparseRows):
        out.set(*x.take(ctx.xp, ctx.brought(matrix_rows(x, getattr(layout, name)))))
    else:
        ctx.xp.take(x, ctx.index(layout, name), axis=0, out=out, mode="clip")


def put_rows(ctx: Context, out: Any, x: Any, layout: Layout, name: str) -> None:
    """Add row r of *x* to that row of the result which the index array *name* of a layout has at r; the others are zero.

    Both are dense or both sparse.
    """
    rows: Index = getattr(layout, name)
    if isinstance(x, SparseRows):
        places = matrix_rows(x, rows)
        order = np.argsort(places, kind="stable")
        data, indices, starts = x.take(ctx.xp, ctx.brought(order))
        ends = np.searchsorted(places[order], np.arange(1 + size_of(out.shape[:-1])))
        out.set(data, indices, starts[ctx.brought(ends)])
    elif np.bincount(rows, minlength=1).max() <= 1:
        out.fill(0)
        out[ctx.index(layout, name)] = x
    else:
        width = size_of(x.shape[1:])
        csr.sum_rows(ctx.xp, ctx.index(layout, name), x.reshape(-1, width), out.reshape(-1, width))


def matrix_rows(x: SparseRows, rows: Index) -> Index:
    """Numbers of the matrix rows that make up these rows of a sparse value."""
    within = size_of(x.shape[1:-1])
    return rows if within == 1 else (rows[:, np.newaxis] * within + np.arange(within)).reshape(-1)


def steps(layout: Layout) -> Iterator[tuple[slice, int]]:
    """For each step its rows, and how many sequences have it: the first so many in packed order."""
    for first, last in pairwise(layout.offsets.tolist()):
        yield slice(first, last), last - first


def add_steps(ctx: Context, x: Any, layout: Layout, out: Any) -> None:
    """Add up the steps of each sequence, into one row for each, in the user's order."""
    if len(layout.alive) > FEW:
        add_up_runs(ctx.xp, x[ctx.index(layout, "unpack_index")], layout.starts, out, ctx.brought)
    elif x.dtype == out.dtype and is_half(x.dtype):
        total = ctx.scratch("sums of steps", out.shape, computing_type(x.dtype))
        fold(ctx, ctx.xp.add, x, layout, total)
        ctx.xp.copyto(out, total, casting="same_kind")
    else:
        fold(ctx, ctx.xp.add, x, layout, out)


def fold(ctx: Context, combine: Any, x: Any, layout: Layout, out: Any) -> None:
    """Combine the steps of each sequence, with ``add`` or ``maximum``, into one row for each, in the user's order."""
    packed = ctx.scratch("combined steps", out.shape, out.dtype)
    for rows, count in steps(layout):
        if rows.start == 0:
            ctx.xp.copyto(packed, x[rows])
        else:
            alive = packed[:count]
            combine(alive, x[rows], out=alive)
    ctx.xp.take(packed, ctx.index(layout, "rank"), axis=0, out=out, mode="clip")
