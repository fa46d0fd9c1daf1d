"""Grids: each weight meets the elements that its windows cover, the same number of places ahead of every result."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cntk.backends.fused.grid import Grid
from cntk.core.common.windows import Windows, windows


@st.composite
def geometries(draw: Any) -> Windows:
    axes = []
    for _ in range(draw(st.integers(1, 3))):
        padded, dim = draw(st.booleans()), draw(st.integers(1, 9))
        kernel = draw(st.integers(1, dim))
        dilation = draw(st.integers(1, 3)) if padded or kernel == 1 else draw(st.integers(1, max(1, (dim - 1) // (kernel - 1))))
        axes.append((dim, kernel, draw(st.integers(1, 4)), dilation, padded))
    return windows(*zip(*axes, strict=True))


def seen(w: Windows) -> Any:
    """For each result and each weight the number of the element it meets, -1 for padding, from the definition."""
    numbers = np.arange(np.prod(w.dims)).reshape(w.dims)
    found = []
    for result in np.ndindex(w.out):
        for tap in np.ndindex(w.kernel):
            at = tuple(r * s + t * d - lower for r, s, t, d, lower in zip(result, w.strides, tap, w.dilation, w.lower, strict=True))
            found.append(numbers[at] if all(0 <= x < dim for x, dim in zip(at, w.dims, strict=True)) else -1)
    return np.array(found).reshape(np.prod(w.out), -1)


def laid_out(lines: Any, stride: int, images: int, grid: Grid, ahead: int = 0) -> Any:
    """Elements' numbers on the grids of some images, one behind the other; -1 where there is none."""
    size = int(np.prod(grid.extents))
    places = np.full(images * size + 2 * grid.ahead(grid.reach) + 1, -1)
    for image in range(images):
        for place, element, count in lines:
            places[ahead + image * size + place + np.arange(count)] = element + np.arange(count) * stride
    return places


def starts(w: Windows, grid: Grid, image: int) -> Any:
    """The place of each result."""
    return [image * int(np.prod(grid.extents)) + grid.ahead(result) for result in np.ndindex(w.out)]


@settings(max_examples=300, deadline=None)
@given(geometries())
def test_each_weight_meets_what_its_windows_cover(w: Windows) -> None:
    grid = Grid(w)
    planes = [laid_out(grid.image_lines(phase, 0, grid.extents[0]), w.strides[-1], 3, grid) for phase in grid.phases]
    for image in range(3):
        at = np.array(starts(w, grid, image))
        met = np.stack([planes[phase][at + grid.ahead(shift)] for phase, shift in grid.shifts], axis=1)
        assert np.array_equal(met, seen(w))


@settings(max_examples=300, deadline=None)
@given(geometries())
def test_each_element_is_met_by_the_results_that_look_at_it(w: Windows) -> None:
    grid, farthest = Grid(w), Grid(w).ahead(Grid(w).reach)
    results = laid_out(grid.result_lines(0, grid.extents[0]), 1, 3, grid, farthest)
    wanted: list[set[tuple[int, int]]] = [set() for _ in range(int(np.prod(w.dims)))]
    for (result, tap), element in np.ndenumerate(seen(w)):
        if element >= 0:
            wanted[element].add((result, tap))
    size = int(np.prod(grid.extents))
    for image in range(3):
        found: list[set[tuple[int, int]]] = [set() for _ in wanted]
        for number, phase in enumerate(grid.phases):
            taps = [(tap, farthest - grid.ahead(shift)) for tap, (of, shift) in enumerate(grid.shifts) if of == number]
            for place, element, count in grid.image_lines(phase, 0, grid.extents[0]):
                for i in range(count):
                    met = ((results[image * size + place + i + ahead], tap) for tap, ahead in taps)
                    found[element + i * w.strides[-1]] |= {(int(result), tap) for result, tap in met if result >= 0}
        assert found == wanted


@settings(max_examples=200, deadline=None)
@given(geometries(), st.data())
def test_parts_of_a_grid_make_up_the_whole(w: Windows, data: Any) -> None:
    grid = Grid(w)
    cut = data.draw(st.integers(0, grid.extents[0]))
    of_phases = [(partial(grid.image_lines, phase), w.strides[-1]) for phase in grid.phases]
    for lines, stride in [(grid.result_lines, 1), *of_phases]:
        behind = lines(cut, grid.extents[0]) + np.array((cut * grid.steps[0], 0, 0))
        whole = laid_out(lines(0, grid.extents[0]), stride, 1, grid)
        assert np.array_equal(whole, laid_out(np.concatenate([lines(0, cut), behind]), stride, 1, grid))
