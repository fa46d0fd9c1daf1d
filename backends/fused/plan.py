"""What a correlation's loops copy where.

Images are copied into the columns of a matrix in two steps.  First each line is copied once for every place in a window's line, with its
padding and with only the elements that windows have there: as many as the result's line has.  Lines that windows *s* apart meet become
neighbours.  What a weight meets at all positions is then made of long runs of such lines.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.shape import Shape, size_of
from ...core.windows import Correlation, Windows

BLOCK_BYTES = 1 << 18
"""Size that a matrix of columns should not exceed, so that it stays in a processor's own cache."""

FEW, ENOUGH = 64, 512
"""Columns of a matrix below which products are slow, and from which on more make them no faster."""


TURNS = 8
"""Blocks that threads share, where there is enough to do: their number must not depend on that of the threads."""


class Plan(NamedTuple):
    """How a correlation goes through images of one geometry.

    A block is a row of five numbers: its first image, the one behind its last, its first slab, the one behind its last, and which part of
    the filters' gradient it computes.

    Attributes:
        by_slabs, by_images, by_parts: blocks to share between threads: small ones, blocks of all slabs, and few large ones.
        slabs: for each part of an image that is done at a time, its first position in the result and how many there are, and where its
            pieces begin and end in *lines* and *runs*.
        lines: copies from a channel of an image to lines: where to, where from, how many elements.
        runs: copies from the lines of a channel to columns.
        sizes: groups, channels, filters, weights of a filter for a channel, elements of a channel of an image, of its result and of its
            lines, distance between elements that are copied to lines, images, whether images as they are hold the columns.
        work: elements that a thread works in.
    """

    by_slabs: Any
    by_images: Any
    by_parts: Any
    slabs: Any
    lines: Any
    runs: Any
    sizes: tuple[int, ...]
    work: int


@lru_cache(maxsize=256)
def plan(g: Correlation, itemsize: int, rows: int) -> Plan:
    """The plan for so many images of one geometry."""
    w = g.windows
    pixels, taps = size_of(w.out), size_of(w.kernel)
    columns = max(BLOCK_BYTES // (g.channels * taps * itemsize), FEW)
    least = max(-(-pixels // columns), min(-(-TURNS // rows), pixels // FEW), 1)
    axis = next((axis for axis, size in enumerate(w.out) if size > 1), 0)
    height = -(-w.out[axis] // least)
    firsts = range(0, w.out[axis], height)
    images = max(1, min(columns // pixels, ENOUGH // pixels, rows // TURNS)) if len(firsts) == 1 else 1
    slabs = [_Slab(w, axis, first, min(height, w.out[axis] - first)) for first in firsts]
    lines, runs = [slab.lines() for slab in slabs], [slab.runs(images * slab.positions) for slab in slabs]
    positions = [first * (pixels // w.out[axis]) for first in firsts]
    most, store = slabs[0].positions, slabs[0].store
    plain = images == 1 and taps == 1 and not w.is_padded and max(w.strides) == 1
    return Plan(
        np.array([(row, min(row + images, rows), i, i + 1, 0) for row in range(0, rows, images) for i in range(len(slabs))]),
        np.array([(row, min(row + images, rows), 0, len(slabs), 0) for row in range(0, rows, images)]),
        np.array([(rows * part // TURNS, rows * (part + 1) // TURNS, 0, len(slabs), part) for part in range(TURNS)]),
        np.stack([positions, [slab.positions for slab in slabs], *_ranges(lines), *_ranges(runs)], axis=1),
        np.concatenate(lines),
        np.concatenate(runs),
        (g.groups, g.channels, g.maps, taps, size_of(w.dims), pixels, store, w.strides[-1], images, int(plain)),
        images * (g.channels * store + (g.channels * taps + g.maps) * most),
    )


def pieces_of(w: Windows) -> tuple[Any, Any, int]:
    """The copies from a plane to lines and from lines to runs, for each window element at all positions, and the elements of the lines."""
    slab = _Slab(w, 0, 0, w.out[0])
    return slab.lines(), slab.runs(0), slab.store


def _ranges(tables: list[Any]) -> tuple[Any, Any]:
    """Where each table begins and ends when they lie one behind the other."""
    ends = np.cumsum([len(table) for table in tables])
    return np.concatenate([[0], ends[:-1]]), ends


class _Slab:
    """Some lines of a result, of shape *out*, and *count* lines, *store* elements in all, for the places in a window's line."""

    def __init__(self, w: Windows, axis: int, first: int, height: int) -> None:
        self.w = w
        self.out: Shape = (*w.out[:axis], height, *w.out[axis + 1 :])
        self.positions = size_of(self.out)
        self._starts = [first if i == axis else 0 for i in range(len(w.out))]
        self._phases, self._heights = [], []
        for out, kernel, dilation, stride in zip(self.out, w.kernel, w.dilation, w.strides, strict=True):
            span = (kernel - 1) * dilation + 1
            self._phases.append(min(stride, span))
            self._heights.append(out + (span - 1) // stride)
        self.count = size_of(self._phases[:-1]) * size_of(self._heights[:-1])
        self.store = w.kernel[-1] * self.count * self.out[-1]

    def lines(self) -> Any:
        """The copies from a channel of an image to lines."""
        w, width = self.w, self.out[-1]
        origin, is_inside = np.zeros(1, np.int64), np.ones(1, np.bool_)
        for i in range(len(w.out) - 1):
            places = np.arange(self._phases[i])[:, None] + (self._starts[i] + np.arange(self._heights[i])) * w.strides[i] - w.lower[i]
            places = places.reshape(-1)
            origin = np.add.outer(origin * w.dims[i], places).reshape(-1)
            is_inside = np.logical_and.outer(is_inside, (places >= 0) & (places < w.dims[i])).reshape(-1)
        inside = np.flatnonzero(is_inside)
        copies = [np.zeros((0, 3), np.int64)]
        stride = w.strides[-1]
        for tap in range(w.kernel[-1]):
            offset = tap * w.dilation[-1] + self._starts[-1] * stride - w.lower[-1]
            begin = max(-(offset // stride), 0)
            size = min((w.dims[-1] - 1 - offset) // stride + 1, width) - begin
            if size > 0:
                to = (tap * self.count + inside) * width + begin
                of = origin[inside] * w.dims[-1] + offset + begin * stride
                copies.append(np.stack([to, of, np.full_like(to, size)], axis=1))
        return np.concatenate(copies)

    def runs(self, pitch: int) -> Any:
        """The copies from the lines of a channel to the rows, *pitch* elements apart, of a matrix of columns."""
        w, rank = self.w, len(self.out)
        first = np.zeros((1, 1), np.int64)
        for i in range(rank - 1):
            tap = np.arange(w.kernel[i]) * w.dilation[i]
            steps = np.arange(self.out[i] if i < rank - 2 else 1)  # a run goes along the last two axes
            place = np.add.outer(tap % w.strides[i] * self._heights[i] + tap // w.strides[i], steps)
            first = first[:, None, :, None] * (self._phases[i] * self._heights[i]) + place[None, :, None, :]
            first = first.reshape(-1, first.shape[2] * first.shape[3])
        of = (np.arange(w.kernel[-1])[:, None] * self.count + first[:, None]) * self.out[-1]
        of = of.reshape(size_of(w.kernel), -1)
        size = self.positions // of.shape[1]
        to = np.add.outer(np.arange(len(of)) * pitch, np.arange(of.shape[1]) * size)
        return np.stack([to, of, np.full_like(to, size)], axis=-1).reshape(-1, 3)
