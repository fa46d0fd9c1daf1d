"""Maxima of windows in compiled loops over planes: samples, or channels of them.

As for a correlation, lines are first copied for every place in a window's line, so that what an element of the windows meets at all of
them is made of long runs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.context import Context
from ...core.shape import size_of
from ...core.threads import max_threads
from ...core.windows import Windows
from .language import prange
from .loops import Loop
from .pieces import copy, gather, writable
from .window_lines import pieces_of


@Loop
def _find(work: Any, out: Any, taps: Any, x: Any, first_taps: Any, lines: Any, runs: Any, runs_of_tap: int, stride: int, size: int) -> None:
    positions, threads = len(first_taps), len(work)
    planes = len(x) // size
    for thread in prange(threads):
        store = work[thread]
        store[:] = -np.inf
        for plane in range(planes * thread // threads, planes * (thread + 1) // threads):
            results, places = out[plane * positions : (plane + 1) * positions], taps[plane * positions : (plane + 1) * positions]
            results[:] = -np.inf
            copy(places, 0, first_taps, 0, positions)
            gather(store, 0, x, plane * size, stride, lines)
            for i in range(len(runs)):
                at, start, length = runs[i]
                best, numbers, met = results[at : at + length], places[at : at + length], store[start : start + length]
                tap = np.uint8(i // runs_of_tap)
                for j in range(length):
                    is_better = met[j] > best[j] or met[j] != met[j]
                    best[j] = met[j] if is_better else best[j]
                    numbers[j] = tap if is_better else numbers[j]


@Loop
def _send_back(threads: int, dx: Any, grad: Any, taps: Any, starts: Any, offsets: Any, size: int) -> None:
    positions, planes = len(starts), len(dx) // size
    for thread in prange(threads):
        for plane in range(planes * thread // threads, planes * (thread + 1) // threads):
            target = dx[plane * size : (plane + 1) * size]
            sent, places = grad[plane * positions : (plane + 1) * positions], taps[plane * positions : (plane + 1) * positions]
            target[:] = 0
            for i in range(positions):
                target[starts[i] + offsets[places[i]]] += sent[i]


def find_maxima(ctx: Context, out: Any, taps: Any, planes: Any, w: Windows) -> None:
    """Write the maximum of each window into *out* and the number of the first window element that has it into *taps*."""
    t = _tables(w)
    work = ctx.scratch("work", (min(max_threads(), len(planes)), t.store), planes.dtype)
    planes = writable(ctx, "planes", planes).reshape(-1)
    tables = t.first_taps, t.lines, t.runs, len(t.runs) // len(t.offsets)
    _find.run(True, work, out.reshape(-1), taps.reshape(-1), planes, *tables, w.strides[-1], size_of(w.dims))


def send_back(ctx: Context, dx: Any, grad: Any, taps: Any, w: Windows) -> None:
    """Write the gradient of the planes, which goes to the maxima, into *dx*."""
    t = _tables(w)
    grad = writable(ctx, "gradient", grad).reshape(-1)
    _send_back.run(True, min(max_threads(), len(dx)), dx.reshape(-1), grad, taps.reshape(-1), t.starts, t.offsets, size_of(w.dims))


class _Tables(NamedTuple):
    """What the loops are given for windows of one geometry.

    Attributes:
        first_taps: the first element of each window that is not padding.
        starts, offsets: where each window begins in a plane, and how far from there its elements are.
        lines, runs: copies to lines, and runs of them for one element of the windows after the other.
        store: elements of the lines.
    """

    first_taps: Any
    starts: Any
    offsets: Any
    lines: Any
    runs: Any
    store: int


@lru_cache(maxsize=256)
def _tables(w: Windows) -> _Tables:
    is_inside = np.ones((1, 1), np.bool_)
    starts = offsets = np.zeros(1, np.int64)
    for dim, out, stride, lower, kernel in zip(w.dims, w.out, w.strides, w.lower, w.kernel, strict=True):
        firsts, steps = np.arange(out) * stride - lower, np.arange(kernel)
        places = np.add.outer(firsts, steps)
        inside = (places >= 0) & (places < dim)
        is_inside = (is_inside[:, None, :, None] & inside[None, :, None, :]).reshape(len(is_inside) * out, -1)
        starts, offsets = np.add.outer(starts * dim, firsts).reshape(-1), np.add.outer(offsets * dim, steps).reshape(-1)
    return _Tables(is_inside.argmax(axis=1).astype(np.uint8), starts, offsets, *pieces_of(w))
