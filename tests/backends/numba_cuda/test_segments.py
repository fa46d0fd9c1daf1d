"""Sums of runs of rows under Numba's simulator: in order, as float64, for whatever adds up runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated import on_the_simulator

import cntk as C
from cntk.core.common.sums import FEW

pytestmark = on_the_simulator


def namespace() -> Any:
    return C.device.device("numba-cuda").backend.xp


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 2, 2)])
def test_each_run_is_added_in_order(shape: tuple[int, ...], dtype: Any) -> None:
    rows = np.random.default_rng(1).normal(size=shape).astype(dtype)
    found = namespace().add.reduceat(rows, np.array([1, 2, 5]))
    doubles = rows.astype(np.float64)
    expected = [np.add.accumulate(doubles[begin:end])[-1] for begin, end in ((1, 2), (2, 5), (5, 7))]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.array(expected).astype(dtype))


def test_small_terms_are_not_lost() -> None:
    rows = np.full((1001, 1), 2.0**-24, np.float32)
    rows[0] = 1
    assert namespace().add.reduceat(rows, np.array([0])) == np.float32(1 + 1000 * 2.0**-24)


def test_along_any_axis_into_any_array() -> None:
    rows, at, out = np.arange(24, dtype=np.float32).reshape(2, 4, 3), np.array([0, 3]), np.empty((2, 2, 3))
    expected = np.add.reduceat(rows, at, 1)
    np.testing.assert_array_equal(namespace().add.reduceat(rows, at, 1), expected)
    assert namespace().add.reduceat(rows, at, axis=1, dtype=np.float64, out=out) is out
    np.testing.assert_array_equal(out, expected)


def test_runs_may_be_empty_and_rows_have_no_elements() -> None:
    from cntk.backends.numba_cuda.segments import add_up

    out = np.full((3, 2), 9, np.float32)
    add_up(np.ones((4, 2), np.float32), np.array([1, 1, 4, 4]), out)
    assert out.tolist() == [[0, 0], [3, 3], [0, 0]]
    add_up(np.ones((0, 2), np.float32), np.array([0, 0, 0, 0]), out)
    assert not out.any()
    add_up(np.ones((4, 0), np.float32), np.array([0, 4]), np.empty((1, 0), np.float32))


def test_whole_numbers_stay_exact() -> None:
    large = np.array([2**62, 1, 2])
    assert namespace().add.reduceat(large, np.array([0, 2])).tolist() == [2**62 + 1, 2]


def test_all_else_is_the_array_librarys() -> None:
    xp = namespace()
    assert xp.copyto is np.copyto
    assert xp.add.reduce([1, 2]) == 3
    assert xp.add(1, 2) == 3


def test_sums_of_long_sequences_are_added_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from cntk.backends.numba_cuda import segments

    done = []
    add_up = segments.add_up
    monkeypatch.setattr(segments, "add_up", lambda *arrays: done.append(add_up(*arrays)))
    x = C.sequence.input_variable(2)
    data = [np.full((length, 2), 0.5, np.float32) for length in (3, 1, FEW + 88)]
    found = C.sequence.reduce_sum(x).eval({x: data}, device=C.device.device("numba-cuda"))
    np.testing.assert_array_equal(found, [[1.5] * 2, [0.5] * 2, [FEW / 2 + 44] * 2])
    assert done
