"""What pooling's loops copy where.

First each line of a plane is copied once for every place in a window's line, with its padding and with only the elements that windows have
there: as many as the result's line has.  Lines that windows *s* apart meet become neighbours.  What an element of the windows meets at all
positions is then made of long runs of such lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.shape import Shape, size_of
from ...core.windows import Windows


def pieces_of(w: Windows) -> tuple[Any, Any, int]:
    """The copies from a plane to lines and from lines to runs, for each window element at all positions, and the elements of the lines."""
    slab = _Slab(w, 0, 0, w.out[0])
    return slab.lines(), slab.runs(0), slab.store


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
