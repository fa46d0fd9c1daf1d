"""CSR matrices below each other, checked all at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cntk.core.types.csr import CsrMatrix, stacked

WIDTH = 7


def matrix(rows: int, seed: int, index: Any = np.int32) -> CsrMatrix:
    """A random matrix, some of whose rows are empty."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 4, rows)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    return CsrMatrix(random.standard_normal(counts.sum()), random.integers(0, WIDTH, counts.sum()).astype(index), starts, WIDTH)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_below_each_other(index: Any) -> None:
    parts = [matrix(rows, seed, index) for seed, rows in enumerate([3, 1, 8, 2])]
    found = stacked(parts, WIDTH)
    assert found is not None
    np.testing.assert_array_equal(found.toarray(), np.concatenate([part.toarray() for part in parts]))


def broken(**arrays: Any) -> CsrMatrix:
    """A matrix of two rows and three elements, with another array in place of one of its own."""
    whole = {"data": np.ones(3), "indices": np.array([0, 6, 2], np.int32), "indptr": np.array([0, 1, 3], np.int32), **arrays}
    return CsrMatrix(whole["data"], whole["indices"], whole["indptr"], arrays.get("width", WIDTH))


@pytest.mark.parametrize(
    "part",
    [
        broken(data=np.ones(4)),
        broken(data=np.ones((3, 1))),
        broken(data=[1.0, 1.0, 1.0]),
        broken(indices=np.array([0, 7, 2], np.int32)),
        broken(indices=np.array([0, -1, 2], np.int32)),
        broken(indices=np.array([0, 6, 2], np.float32)),
        broken(indptr=np.array([1, 1, 3], np.int32)),
        broken(indptr=np.array([0, 4, 3], np.int32)),
        broken(indptr=np.array([0, -1, 3], np.int32)),
        broken(indptr=np.array([0, 1, 2], np.int32)),
        broken(indptr=np.array([0, 1, 4], np.int32)),
        broken(indptr=np.array([0], np.int32), data=np.ones(0), indices=np.zeros(0, np.int32)),
        broken(width=8),
        np.ones((2, WIDTH)),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_has_a_fault_is_left_to_others(part: Any, place: int) -> None:
    parts: list[Any] = [matrix(2, 1), matrix(2, 2)]
    parts.insert(place, part)
    if isinstance(parts[0], CsrMatrix):  # as callers have seen
        assert stacked(parts, WIDTH) is None
