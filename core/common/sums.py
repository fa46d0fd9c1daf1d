"""Sums of long arrays, and of long runs of rows, whose errors do not grow with their lengths.

Compiled loops add in the same order, so results do not depend on the number of threads or on what computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import computing_type
from .shape import size_of

LANES = 64
"""Sums that are computed side by side: lane k adds elements k, k + LANES, k + 2 * LANES and so on."""

ROWS = 64
"""Elements that are added up in the array's own type, before the sums of lanes are in float64."""

BLOCK = ROWS * LANES
"""Elements that have lanes of their own."""

FEW = 512
"""Rows that may be added up one after another."""

PIECE = 256
"""Rows of a piece of a longer run."""

DEEP = 1024
"""Terms that a product of matrices may sum up one after another."""

TERMS, OUTPUTS_PER_TERM = 512, 8
"""Terms of a piece of a deeper product at least, and elements of a large result for each of its terms, so that results of pieces take
little memory."""


def deterministic_sum(xp: Any, array: Any) -> float:
    """The sum of an array's elements, in an order that depends on the array's size alone.

    >>> from cntk.core.common.sums import deterministic_sum
    >>> deterministic_sum(np, np.array([[1.0, 2.0], [3.0, 6.0]]))
    12.0
    """
    flat = array.reshape(-1)
    whole = flat[: flat.size - flat.size % BLOCK]
    return sum_from_lanes(xp, xp.sum(whole.reshape(-1, ROWS, LANES), axis=1), flat)


def sum_from_lanes(xp: Any, lanes: Any, flat: Any) -> float:
    """As :func:`deterministic_sum`, of an array of one axis, where the *lanes* of its whole blocks have been summed."""
    rest = flat[flat.size - flat.size % BLOCK :]
    return float(xp.sum(lanes, dtype=xp.float64)) + float(xp.sum(rest, dtype=xp.float64))


def mean(xp: Any, array: Any) -> float:
    """The mean of an array's elements, from their :func:`deterministic_sum`."""
    return deterministic_sum(xp, array) / size_of(array.shape)


def terms_of_piece(depth: int, outputs: int, deep: int = DEEP) -> int:
    """How many terms a product of matrices sums up at a time, so that errors do not grow: all of them, or as many as a piece has.

    Args:
        depth: all terms.
        outputs: elements of the result.
        deep: terms that may be summed up one after another.

    >>> from cntk.core.common.sums import terms_of_piece
    >>> terms_of_piece(1000, 100), terms_of_piece(100_000, 100), terms_of_piece(200_000, 400_000)
    (1000, 512, 50000)
    """
    terms = max(TERMS, outputs // OUTPUTS_PER_TERM)
    return terms if depth > deep and depth > 2 * terms else depth


def in_pieces(xp: Any, starts: Any) -> tuple[Any, Any] | None:
    """Cut runs of rows, run i from ``starts[i]`` to ``starts[i + 1]``, into pieces, which are added up one by one.

    Returns:
        where the pieces start and the last one ends, and which of them is the first of each run; None if all runs are short.

    >>> from cntk.core.common.sums import in_pieces
    >>> rows, pieces = in_pieces(np, np.array([0, 300, 900]))
    >>> rows.tolist(), pieces.tolist()
    ([0, 256, 300, 556, 812, 900], [0, 2, 5])
    """
    if len(starts) < 2 or int(starts[-1]) - int(starts[0]) <= FEW:  # as in most minibatches, which need no look at each run
        return None
    lengths = starts[1:] - starts[:-1]
    if int(lengths[lengths.argmax()]) <= FEW:  # a few numbers have their largest sooner found than reduced
        return None
    counts = -(-lengths // PIECE)
    pieces = xp.concatenate((xp.zeros_like(counts[:1]), xp.cumsum(counts))).astype(starts.dtype)
    within = xp.arange(int(pieces[-1])) - xp.repeat(pieces[:-1], counts)
    rows = xp.concatenate((xp.repeat(starts[:-1], counts) + within * PIECE, starts[-1:])).astype(starts.dtype)
    return rows, pieces


def write_in_pieces(
    xp: Any, starts: Any, out: Any, dtype: Any, write: Callable[[Any, Any], None], bring: Callable[[Any], Any] | None = None
) -> None:
    """Have the sums of runs written to rows of *out*; long runs are cut into pieces, and their sums added up.

    Args:
        starts: where runs start, and the last one ends.
        dtype: the type of sums of pieces.
        write: called with where runs start and where their sums go.
        bring: see :func:`add_up_runs`.
    """
    pieces = in_pieces(xp if bring is None else np, starts)
    if pieces is None:
        write(starts, out)
        return
    sums = xp.empty((len(pieces[0]) - 1, *out.shape[1:]), dtype)
    write(pieces[0], sums)
    add_up_runs(xp, sums, pieces[1], out, bring)


def add_up_runs(xp: Any, rows: Any, starts: Any, out: Any, bring: Callable[[Any], Any] | None = None) -> None:
    """Write the sum of each run of *rows*, ``rows[starts[i]:starts[i + 1]]``, to a row of *out*; 0 where there are none.

    Args:
        bring: where the starts are on the host, what brings such arrays to the rows, as ``Context.brought``.

    >>> from cntk.core.common.sums import add_up_runs
    >>> out = np.empty((2, 1))
    >>> add_up_runs(np, np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 3]), out)
    >>> out.tolist()
    [[1.0], [6.0]]
    """
    kind, host = computing_type(rows.dtype), xp if bring is None else np

    def write(starts: Any, out: Any) -> None:
        begins, lengths = starts[:-1], starts[1:] - starts[:-1]
        filled = lengths > 0
        if bool(filled.all()):
            if len(begins):
                write_filled(begins, lengths, out)
            return
        out[...] = 0
        if bool(filled.any()):
            (places,) = filled.nonzero()
            sums = xp.empty((len(places), *out.shape[1:]), kind)
            write_filled(begins[places], lengths[places], sums)
            out[brought(places)] = sums

    def write_filled(begins: Any, lengths: Any, out: Any) -> None:
        (longer,) = (lengths > 1).nonzero()
        if 2 * len(longer) >= len(lengths):
            out[...] = xp.add.reduceat(rows, brought(begins), axis=0, dtype=kind)
            return
        if out.dtype == rows.dtype:  # copies take a tenth of the time that sums of single rows do
            xp.take(rows, brought(begins), axis=0, out=out, mode="clip")
        else:
            out[...] = rows[brought(begins)]
        if len(longer):
            counts = lengths[longer]
            firsts = host.cumsum(counts) - counts
            chosen = host.arange(int(counts.sum())) + host.repeat(begins[longer] - firsts, counts)
            out[brought(longer)] = xp.add.reduceat(rows[brought(chosen)], brought(firsts), axis=0, dtype=kind)

    def brought(index: Any) -> Any:
        return index if bring is None else bring(index)

    write_in_pieces(xp, starts, out, xp.float64, write, bring)
