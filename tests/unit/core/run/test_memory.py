"""Places in the arena: arrays that live at the same time never share memory, and little of it is wasted."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from counting import calls_of
from hypothesis import example, given
from hypothesis import strategies as st

from cntk.core.run import memory
from cntk.core.run.memory import ALIGNMENT, padded_rows, plan

ARRAYS = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 30), st.integers(0, 30)), max_size=40)
"""Arrays as (size, birth, length of life)."""


def padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def placed(arrays: list[tuple[int, int, int]]) -> tuple[list[int], int]:
    return plan([size for size, _, _ in arrays], [birth for _, birth, _ in arrays], [birth + life for _, birth, life in arrays])


def peak(arrays: list[tuple[int, int, int]]) -> int:
    """The most memory that is alive at one time, which no plan can do with less of."""
    return max((sum(padded(s) for s, b, life in arrays if b <= time <= b + life) for _, time, _ in arrays), default=0)


@given(ARRAYS)
def test_arrays_alive_together_do_not_overlap(arrays: list[tuple[int, int, int]]) -> None:
    offsets, total = placed(arrays)
    blocks = [(offset, offset + size, birth, birth + life) for offset, (size, birth, life) in zip(offsets, arrays, strict=True)]
    for offset, end, _, _ in blocks:
        assert offset % ALIGNMENT == 0
        assert 0 <= offset <= end <= total
    for (start, stop, birth, death), (other_start, other_stop, other_birth, other_death) in combinations(blocks, 2):
        together = birth <= other_death and other_birth <= death
        assert not together or min(stop, other_stop) <= max(start, other_start)


@given(ARRAYS)
def test_the_arena_is_bounded(arrays: list[tuple[int, int, int]]) -> None:
    _, total = placed(arrays)
    assert peak(arrays) <= total <= sum(padded(size) for size, _, _ in arrays)


@given(ARRAYS)
def test_placing_from_the_last_death_back_takes_as_much(arrays: list[tuple[int, int, int]]) -> None:
    assert placed([(size, -(birth + life), life) for size, birth, life in arrays])[1] == placed(arrays)[1]


def taken_by_birth(arrays: list[tuple[int, int, int]]) -> int:
    """What is taken where each array is placed in the smallest gap at its birth."""
    top, living = 0, []
    for size, birth, life in sorted(arrays, key=lambda array: (array[1], -array[0])):
        living = sorted(block for block in living if birth <= block[2])
        begins, ends = [0, *(end for _, end, _ in living)], [*(start for start, _, _ in living), top]
        gaps = [(end - begin, begin) for begin, end in zip(begins, ends, strict=True) if end - begin >= max(padded(size), 1)]
        place = min(gaps)[1] if gaps else begins[-1]
        living.append((place, place + padded(size), birth + life))
        top = max(top, place + padded(size))
    return top


@example([(1, 0, 0), (1, 2, 0), (2, 0, 2), (65, 1, 0)])  # larger, but not where they are aligned
@given(ARRAYS)
def test_no_more_is_taken_than_by_placing_arrays_in_the_order_of_their_birth(arrays: list[tuple[int, int, int]]) -> None:
    assert placed(arrays)[1] <= taken_by_birth(arrays)


def test_a_pass_that_packs_better_from_its_end() -> None:
    small, large = ALIGNMENT, 3 * ALIGNMENT
    arrays = [(small, 0, 9), (large, 1, 1), (small, 2, 6), (large, 3, 2), (large + small, 7, 1)]
    assert placed(arrays)[1] == peak(arrays)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=30), st.integers(1, 1000))
def test_arrays_of_one_size_need_no_more_than_the_peak(lives: list[int], size: int) -> None:
    arrays = [(size, birth, life) for birth, life in enumerate(lives)]
    assert placed(arrays)[1] == peak(arrays)


@pytest.mark.parametrize("count", [10, 100, 1000])
def test_a_chain_needs_two_places_however_long(count: int) -> None:
    _, total = placed([(ALIGNMENT, moment, 1) for moment in range(count)])
    assert total == 2 * ALIGNMENT


def test_places_are_joined_when_neighbours_are_given_back() -> None:
    quarter = 10 * ALIGNMENT
    offsets, total = placed([(quarter, 0, 0), (quarter, 0, 0), (2 * quarter, 1, 0)])
    assert (offsets[2], total) == (0, 2 * quarter)


def test_sizes_are_rounded_up_to_whole_cache_lines() -> None:
    offsets, total = placed([(1, 0, 1), (ALIGNMENT + 1, 0, 1), (0, 0, 1)])
    assert total == 3 * ALIGNMENT
    assert np.unique(offsets[:2]).size == 2


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of each arena that has been planned."""
    made: list[int] = []
    place = memory._placed

    def noted(*arguments: Any) -> tuple[list[int], int]:
        offsets, top = place(*arguments)
        made.append(top)
        return offsets, top

    monkeypatch.setattr(memory, "_placed", noted)
    return made


def test_arrays_are_placed_once_where_nothing_can_be_better(plans: list[int]) -> None:
    arrays = [(2 * ALIGNMENT, 0, 1), (3 * ALIGNMENT, 1, 1), (2 * ALIGNMENT, 2, 5)]
    assert placed(arrays)[1] == 5 * ALIGNMENT == peak(arrays)
    assert plans == [5 * ALIGNMENT]


def test_an_array_that_dies_where_another_is_born_lives_beside_it(plans: list[int]) -> None:
    placed([(ALIGNMENT, 0, 3), (ALIGNMENT, 3, 0)])
    assert plans == [2 * ALIGNMENT]


def test_nothing_takes_no_memory() -> None:
    assert placed([]) == ([], 0)


def test_arrays_begin_at_cache_lines() -> None:
    assert ALIGNMENT % 64 == 0


def test_arrays_begin_where_a_backend_wants_them() -> None:
    offsets, total = plan([1, 300, 1], [0, 0, 0], [1, 1, 1], 256)
    assert sorted(offsets) == [0, 512, 768]
    assert total == 1024


def calls_to_plan(count: int) -> int:
    """Calls that place arrays that live at once, and after half of them others for which their gaps are too small."""
    arrays = [(ALIGNMENT, moment, (4 if moment % 2 else 1) * count) for moment in range(count)]
    arrays += [(2 * ALIGNMENT, 2 * count + moment, count) for moment in range(count)]
    return calls_of(lambda: placed(arrays))


def test_planning_takes_calls_in_proportion_to_the_number_of_arrays() -> None:
    assert calls_to_plan(3000) <= 10 * calls_to_plan(300)


@given(st.integers(0, 10**7))
def test_room_is_an_eighth_more_at_most(rows: int) -> None:
    assert rows <= padded_rows(rows) <= rows + rows // 8
    assert padded_rows(padded_rows(rows)) == padded_rows(rows)


def test_minibatches_of_twice_as_many_rows_have_few_sizes_between() -> None:
    assert len({padded_rows(rows) for rows in range(1025, 2049)}) == 8
