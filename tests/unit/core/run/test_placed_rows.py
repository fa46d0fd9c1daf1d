"""Sparse inputs at places that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.run.placed_rows import PlacedRows

BACKEND = NumpyBackend()


def matrix(entries: int, dtype: Any = np.float32) -> Any:
    return csr_matrix((np.arange(1, entries + 1, dtype=dtype), np.arange(entries) % 5, [0, 1, entries]), (2, 5))


def load(rows: PlacedRows, data: Any) -> list[int]:
    """Where the arrays lie."""
    rows.load(BACKEND, (data.data, data.indices, data.indptr))
    assert (rows.to_csr(BACKEND) != data).nnz == 0
    return [part.__array_interface__["data"][0] for part in rows.parts]


def test_arrays_stay_as_long_as_there_is_room() -> None:
    rows = PlacedRows((2, 5), np.float32, np)
    first = load(rows, matrix(3))
    places = rows.places
    for entries in (4, 1, 2, 4):
        assert load(rows, matrix(entries)) == first
    assert rows.places is places
    assert load(rows, matrix(5)) != first
    assert rows.places is not places
    longer = load(rows, matrix(7))
    assert load(rows, matrix(3)) == longer


@pytest.mark.parametrize("number", [0, 1])
def test_data_of_other_types_move(number: int) -> None:
    rows = PlacedRows((2, 5), np.float32, np)
    load(rows, matrix(4))
    places, data = rows.places, matrix(4)
    parts = [data.data, data.indices, data.indptr]
    parts[number] = parts[number].astype((np.float64, np.int64)[number])
    rows.load(BACKEND, (parts[0], parts[1], parts[2]))
    assert rows.places is not places
    assert rows.parts[number].dtype == parts[number].dtype


def test_data_are_the_rows_own() -> None:
    rows, data = PlacedRows((2, 5), np.float32, np), matrix(2)
    load(rows, data)
    data.data[:] = 7
    assert rows.data.tolist() == [1, 2]


def test_rows_without_entries() -> None:
    rows = PlacedRows((2, 5), np.float32, np)
    rows.load(BACKEND, (np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(3, np.int32)))
    assert rows.indptr.tolist() == [0, 0, 0]
    assert not rows.is_one_hot
