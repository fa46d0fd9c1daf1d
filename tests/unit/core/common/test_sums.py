"""Sums whose order of addition is known."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntk.core.common import sums


@pytest.mark.parametrize("size", [0, 1, 7, sums.BLOCK - 1, sums.BLOCK, 3 * sums.BLOCK + 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_are_added_row_by_row(size: int, dtype: Any) -> None:
    array = np.random.default_rng(size).normal(size=size).astype(dtype)
    whole = size - size % sums.BLOCK
    expected = 0.0
    lanes = []
    for block in array[:whole].reshape(-1, sums.ROWS, sums.LANES):
        lane = block[0]
        for row in block[1:]:
            lane = lane + row
        lanes.append(lane)
    expected = float(np.sum(np.array(lanes, dtype), dtype=float)) + float(np.sum(array[whole:], dtype=float))
    assert sums.deterministic_sum(np, array) == expected
    assert np.isclose(expected, np.sum(array, dtype=float), rtol=1e-5, atol=1e-3)


@given(st.integers(1, 3 * sums.BLOCK), st.integers(1, 3))
def test_shapes_make_no_difference(size: int, columns: int) -> None:
    array = np.arange(size * columns, dtype=np.float64)
    assert sums.deterministic_sum(np, array) == array.size * (array.size - 1) / 2
    assert sums.deterministic_sum(np, array.reshape(size, columns)) == sums.deterministic_sum(np, array)
    assert sums.mean(np, array.reshape(columns, size)) == sums.deterministic_sum(np, array) / array.size


@pytest.mark.parametrize("lengths", [[2, 3], [2, 0, 3], [0, 0], [700, 1], [], [1, 1, 1], [1, 0, 1, 2, 1, 3, 1, 0], [1, 1, 700, 1, 1]])
def test_starts_on_the_host_are_brought_to_the_rows(lengths: list[int]) -> None:
    brought: list[Any] = []

    def bring(index: Any) -> Any:
        brought.append(index)
        return index

    rows = np.arange(2.0 * sum(lengths)).reshape(-1, 2)
    starts = np.cumsum([0, *lengths])
    expected, found = np.full((2, len(lengths), 2), np.nan)
    sums.add_up_runs(np, rows, starts, expected)
    sums.add_up_runs(np, rows, starts, found, bring)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, [rows[a:b].sum(axis=0) for a, b in itertools.pairwise(starts)] or found)
    assert bool(brought) == bool(sum(lengths))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@given(st.lists(st.sampled_from([0, 1, 1, 1, 1, 2, 5]), max_size=40), st.integers(1, 3))
def test_runs_of_one_row_make_no_difference_to_others(dtype: Any, lengths: list[int], columns: int) -> None:
    rows = np.random.default_rng(0).normal(size=(sum(lengths), columns)).astype(dtype)
    starts, out = np.cumsum([0, *lengths]), np.full((len(lengths), columns), np.nan, dtype)
    sums.add_up_runs(np, rows, starts, out)
    for (begin, end), found in zip(itertools.pairwise(starts), out, strict=True):
        alone = np.zeros((1, columns), dtype)
        sums.add_up_runs(np, rows[begin:end], np.array([0, end - begin]), alone)
        assert found.tobytes() == alone.tobytes()
