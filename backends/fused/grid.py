"""Grids: how images and results of a correlation lie so that every weight meets runs of them.

Along each axis a grid has a place for every element that a window may meet, padding included.  Elements that windows *s* apart meet with
one weight lie next to each other, in one of up to *s* phases; so a weight sees an image as it is, a constant number of places further on.
The result lies in a grid of the same extents, as does its gradient.  Between two lines there is as much room as one line's padding takes:
what follows one line goes before the next.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ...core.common.cached_property import cached_property
from ...core.common.shape import Shape, size_of
from ...core.common.windows import Windows


class Grid:
    """The grid of some windows, one axis after the other.

    Args:
        windows: how filters slide.

    Attributes:
        extents: places along each axis.
        phases: numbers of the phases along each axis, one behind the other in the grid's planes.
        shifts: for each weight of a filter the number of its phase, and how many places along each axis it is ahead.
        reach: most places along each axis that a weight is ahead.
    """

    def __init__(self, windows: Windows) -> None:
        w = self.windows = windows
        axes = list(zip(w.dims, w.out, w.kernel, w.dilation, w.strides, w.lower, strict=True))
        taps = [np.arange(kernel) * dilation for _, _, kernel, dilation, _, _ in axes]
        used = [sorted({int(tap) % stride for tap in of_axis}) for of_axis, stride in zip(taps, w.strides, strict=True)]
        self.phases = list(product(*used))
        self.reach: Shape = tuple(int(of_axis[-1]) // stride for of_axis, stride in zip(taps, w.strides, strict=True))
        self._spans = []
        extents = []
        for (dim, out, _, _, stride, lower), phases, reach in zip(axes, used, self.reach, strict=True):
            height = out + reach
            spans = {}
            for phase in phases:
                first = min(max(-((phase - lower) // stride), 0), height)
                spans[phase] = first, max(min((dim - 1 + lower - phase) // stride + 1, height), first)
            self._spans.append(spans)
            least = min(first for first, _ in spans.values())
            extents.append(max(*(last for _, last in spans.values()), height - least, out))
        self.extents: Shape = tuple(extents)
        number = {phase: i for i, phase in enumerate(self.phases)}
        self.shifts = [
            (
                number[tuple(int(t) % s for t, s in zip(tap, w.strides, strict=True))],
                tuple(int(t) // s for t, s in zip(tap, w.strides, strict=True)),
            )
            for tap in product(*taps)
        ]

    @cached_property
    def steps(self) -> Shape:
        """Places from one to the next along each axis."""
        return tuple(size_of(self.extents[axis + 1 :]) for axis in range(len(self.extents)))

    def ahead(self, shift: Shape) -> int:
        """How many places ahead something is."""
        return sum(by * step for by, step in zip(shift, self.steps, strict=True))

    def image_lines(self, phase: Shape, first: int, last: int) -> Any:
        """Lines of an image that lie in a phase's plane, in the part between two places along the first axis.

        Returns:
            rows of the line's place, counted from the part's first, the element of the image, and the number of elements, which lie a
            stride apart in the image.
        """
        w = self.windows
        spans = [of_axis[of_phase] for of_axis, of_phase in zip(self._spans, phase, strict=True)]
        return self._lines(spans, w.dims, w.strides, [at - lower for at, lower in zip(phase, w.lower, strict=True)], first, last)

    def result_lines(self, first: int, last: int) -> Any:
        """The same for lines of a result."""
        out = self.windows.out
        return self._lines([(0, size) for size in out], out, (1,) * len(out), [0] * len(out), first, last)

    def _lines(self, spans: list[tuple[int, int]], dims: Shape, strides: Shape, origins: list[int], first: int, last: int) -> Any:
        place, element = np.zeros(1, np.intp), np.zeros(1, np.intp)
        spans = [(max(spans[0][0], first), min(spans[0][1], last)), *spans[1:]]
        sizes = [max(stop - start, 0) for start, stop in spans]
        for axis, ((start, _), size) in enumerate(zip(spans, sizes, strict=True)):
            at = start + np.arange(size if axis < len(dims) - 1 else min(size, 1))
            place = np.add.outer(place, (at - (first if axis == 0 else 0)) * self.steps[axis]).reshape(-1)
            element = np.add.outer(element * dims[axis], at * strides[axis] + origins[axis]).reshape(-1)
        lines = np.stack([place, element, np.full_like(place, sizes[-1])], axis=1)
        return _joined(lines) if strides[-1] == 1 else lines


def _joined(lines: Any) -> Any:
    """The lines, with those that follow one another as one."""
    begins = np.ones(len(lines), np.bool_)
    begins[1:] = np.any(lines[1:, :2] != lines[:-1, :2] + lines[:-1, 2:], axis=1)
    joined = lines[begins]
    joined[:, 2] = np.add.reduceat(lines[:, 2], np.flatnonzero(begins)) if len(lines) else 0
    return joined
