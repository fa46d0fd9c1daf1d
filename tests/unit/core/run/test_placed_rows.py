"""Sparse inputs at places that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.run.placed_rows import PlacedRows, Room

BACKEND = NumpyBackend()


def matrix(entries: int, dtype: Any = np.float32) -> Any:
    return csr_matrix((np.arange(1, entries + 1, dtype=dtype), np.arange(entries) % 5, [0, 1, entries]), (2, 5))


def placed(room: Room | None = None) -> PlacedRows:
    return PlacedRows((2, 5), np.float32, np, Room(BACKEND) if room is None else room)


def load(rows: PlacedRows, data: Any) -> list[int]:
    """Where the arrays lie."""
    rows.load((data.data, data.indices, data.indptr))
    assert (rows.to_csr(BACKEND) != data).nnz == 0
    return [part.__array_interface__["data"][0] for part in rows.parts]


def test_arrays_stay_as_long_as_there_is_room() -> None:
    rows = placed()
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
    rows = placed()
    load(rows, matrix(4))
    places, data = rows.places, matrix(4)
    parts = [data.data, data.indices, data.indptr]
    parts[number] = parts[number].astype((np.float64, np.int64)[number])
    rows.load((parts[0], parts[1], parts[2]))
    assert rows.places is not places
    assert rows.parts[number].dtype == parts[number].dtype


def test_data_are_the_rows_own() -> None:
    rows, data = placed(), matrix(2)
    load(rows, data)
    data.data[:] = 7
    assert rows.data.tolist() == [1, 2]


def test_rows_without_entries() -> None:
    rows = placed()
    rows.load((np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(3, np.int32)))
    assert rows.indptr.tolist() == [0, 0, 0]
    assert not rows.is_one_hot


def test_columns_come_from_when_they_are_asked_for() -> None:
    rows, data = placed(), matrix(4)
    load(rows, data)
    before = rows.places
    for entries in (4, 3, 4):
        data = matrix(entries)
        load(rows, data)
        columns, turned = rows.columns, data.tocsc()
        present = np.flatnonzero(np.diff(turned.indptr))
        assert columns.present == columns.length[0] == len(present)
        assert columns.numbers[: columns.present].tolist() == present.tolist()
        assert columns.starts[: columns.present + 1].tolist() == turned.indptr[[*present, -1]].tolist()
        assert columns.rows[:entries].tolist() == turned.indices.tolist()
        assert columns.data[:entries].tolist() == turned.data.tolist()
        assert (rows.to_csr(BACKEND) != data).nnz == 0
    places = rows.places
    assert places is not before
    load(rows, matrix(2))
    assert rows.places is places


def test_inputs_of_all_sizes_share_memory_that_only_grows() -> None:
    room = Room(BACKEND)
    small, large = placed(room), PlacedRows((3, 5), np.float32, np, room)
    load(small, matrix(7))
    large.load((np.ones(1, np.float32), np.zeros(1, np.int32), np.array([0, 0, 1, 1], np.int32)))
    assert large.indptr.tolist() == [0, 0, 1, 1]
    places = room.places
    load(small, matrix(8))
    assert small.places is large.places is places


def test_columns_of_rows_without_entries() -> None:
    rows = placed()
    rows.load((np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(3, np.int32)))
    assert rows.columns.present == rows.columns.length[0] == rows.columns.starts[0] == 0
