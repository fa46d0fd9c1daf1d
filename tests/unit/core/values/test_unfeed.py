"""Rows of results as data for users, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.types.layout import Layout
from cntk.core.types.sparse import SparseRows
from cntk.core.values.unfeed import pack, unfeed, unfeed_sparse, value_of

BATCH = C.Axis.default_batch_axis()
SEQUENCE = (BATCH, C.Axis.default_dynamic_axis())


def rows_of(layout: Layout, *shape: int) -> Any:
    return np.random.default_rng(1).normal(size=(layout.rows, *shape)).astype(np.float32)


@settings(deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_packing_undoes_it(lengths: list[int]) -> None:
    layout = Layout(len(lengths), lengths)
    rows = rows_of(layout, 2)
    parts = unfeed(rows, SEQUENCE, layout)
    assert [part.shape for part in parts] == [(length, 2) for length in lengths]
    assert_array_equal(pack(parts, rows.shape, layout), rows)
    assert_array_equal(pack(value_of(rows, SEQUENCE, layout, C.device.cpu()), rows.shape, layout), rows)


def test_sequences_come_in_the_users_order() -> None:
    layout = Layout(3, [1, 3, 2])
    rows = np.stack([layout.sequence_of_row, layout.step_of_row], axis=1)
    for sequence, part in enumerate(unfeed(rows, SEQUENCE, layout)):
        assert part.tolist() == [[sequence, step] for step in range(len(part))]


def test_parts_are_the_users_own() -> None:
    layout = Layout(2, [2, 2])
    parts = unfeed(rows_of(layout, 1), SEQUENCE, layout)
    assert all(part.base is None for part in parts)


@pytest.mark.parametrize("axes", [(), (BATCH,)])
def test_without_a_sequence_axis_there_is_nothing_to_do(axes: Any) -> None:
    rows = np.ones((3, 2), np.float32)
    assert unfeed(rows, axes, Layout(3) if axes else None) is rows
    assert_array_equal(pack(rows.tolist(), (3, 2), Layout(3) if axes else None), rows)


@pytest.mark.parametrize("static", [(4,), (2, 4)], ids=["one axis", "two axes"])
def test_sparse_rows_are_what_dense_ones_are(static: tuple[int, ...]) -> None:
    layout = Layout(3, [1, 3, 2])
    rows = np.where(rows_of(layout, *static) > 0, rows_of(layout, *static), 0)
    parts = unfeed_sparse(csr_matrix(rows.reshape(-1, 4)), SparseRows(rows.shape, np.float32), SEQUENCE, layout)
    assert [hasattr(part, "toarray") for part in parts] == [len(static) == 1] * 3
    for part, dense in zip(parts, unfeed(rows, SEQUENCE, layout), strict=True):
        assert_array_equal(part.toarray() if hasattr(part, "toarray") else part, dense)


def test_axes_of_length_one_do_not_matter() -> None:
    assert pack(np.ones((3, 1, 2)), (3, 2), Layout(3)).shape == (3, 2)
    assert pack([[[1.0, 2.0]]], (2,), None).shape == (2,)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([np.ones((2, 2))], r"expected a list of sequences of lengths \[2, 1\], got lengths \[2\]"),
        ([np.ones((1, 2)), np.ones((2, 2))], r"expected a list of sequences of lengths \[2, 1\], got lengths \[1, 2\]"),
        ([np.ones((2, 3)), np.ones((1, 3))], r"expected numbers in the shape \(3, 2\), got float64 data of shape \(3, 3\)"),
        ([np.full((2, 2), "a"), np.full((1, 2), "b")], r"expected numbers in the shape \(3, 2\), got <U1 data"),
    ],
    ids=["too few", "other lengths", "other shape", "no numbers"],
)
def test_data_that_does_not_go_with_the_rows(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pack(data, (3, 2), Layout(2, [2, 1]))
