"""How sequences lie in rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from cntk.core.types.layout import Layout

LENGTHS = st.lists(st.integers(1, 8), min_size=1, max_size=10)


def test_the_picture_in_the_docs() -> None:
    layout = Layout(3, [2, 3, 1])
    names = np.array(["a0", "a1", "b0", "b1", "b2", "c0"])
    assert_array_equal(names[layout.pack_index], ["b0", "a0", "c0", "b1", "a1", "b2"])
    assert_array_equal(layout.order, [1, 0, 2])
    assert_array_equal(layout.alive, [3, 2, 1])
    assert_array_equal(layout.offsets, [0, 3, 5, 6])


def test_first_rows_are_as_many_for_as_many_rows() -> None:
    assert_array_equal(Layout(3, [2, 3, 1]).first_rows, [3, 0, 3, 5, 6, 6, 6, 6])
    assert_array_equal(Layout(1, [6]).first_rows, [6, 0, 1, 2, 3, 4, 5, 6])
    assert_array_equal(Layout(2, [0, 1]).first_rows, [1, 0, 1])


def test_without_sequences_a_row_is_a_sample() -> None:
    layout = Layout(4)
    assert (layout.rows, layout.samples, layout.is_sequence) == (4, 4, False)
    assert layout.batch is layout


@given(LENGTHS)
def test_unpacking_undoes_packing(lengths: list[int]) -> None:
    layout = Layout(len(lengths), lengths)
    rows = np.arange(layout.rows)
    assert_array_equal(rows[layout.pack_index][layout.unpack_index], rows)
    assert [len(part) for part in np.split(rows, layout.splits)] == lengths


@given(LENGTHS)
def test_each_step_of_all_living_sequences_lies_together(lengths: list[int]) -> None:
    layout = Layout(len(lengths), lengths)
    concatenated = [(sequence, step) for sequence, length in enumerate(lengths) for step in range(length)]
    packed = [concatenated[i] for i in layout.pack_index]
    assert packed == list(zip(layout.sequence_of_row, layout.step_of_row, strict=True))
    for step, (start, stop) in enumerate(zip(layout.offsets, layout.offsets[1:], strict=False)):
        assert packed[start:stop] == [(sequence, step) for sequence in layout.order if lengths[sequence] > step]


@given(LENGTHS)
def test_longer_sequences_come_first_and_equal_ones_in_order(lengths: list[int]) -> None:
    order = Layout(len(lengths), lengths).order
    assert list(order) == sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))


@given(LENGTHS, LENGTHS)
def test_layouts_are_equal_when_the_lengths_are(one: list[int], other: list[int]) -> None:
    assert (Layout(len(one), one) == Layout(len(other), other)) == (one == other)
    assert Layout(len(one), one) == Layout(len(one), list(one))
    assert Layout(len(one), one) != Layout(len(one))
    assert Layout(len(one), one).batch == Layout(len(one))
