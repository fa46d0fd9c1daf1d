"""What NumPy has and CuPy has not, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.cupy.backend import CupyBackend
from cntk.core.common.dtypes import limits_of

RANDOM = np.random.default_rng(1)


def there(standin: CupyBackend, *arrays: Any) -> tuple[Any, ...]:
    return tuple(standin.asarray(array, array.dtype) for array in arrays)


def test_take_has_a_mode(standin: CupyBackend) -> None:
    x, places, out = there(standin, RANDOM.random((5, 3)), np.array([4, 0, 4]), np.empty((3, 3)))
    standin.xp.take(x, places, axis=0, out=out, mode="clip")
    np.testing.assert_array_equal(standin.to_numpy(out), standin.to_numpy(x)[[4, 0, 4]])


@pytest.mark.parametrize("axis", [0, 1, (0, 1), None])
@pytest.mark.parametrize("name", ["add", "maximum", "minimum"])
def test_reductions(name: str, axis: Any, standin: CupyBackend) -> None:
    host = RANDOM.standard_normal((4, 6))
    (x,) = there(standin, host)
    found = standin.to_numpy(getattr(standin.xp, name).reduce(x, axis, keepdims=True))
    np.testing.assert_allclose(found, getattr(np, name).reduce(host, axis, keepdims=True))


@pytest.mark.parametrize("row", [[0.0, 1.0, -2.0], [1e4, 1e4, 0.0], [-np.inf, -np.inf, -np.inf], [-np.inf, 3.0, 2.0]])
def test_logarithms_of_sums_of_powers(row: list[float], standin: CupyBackend) -> None:
    (x,) = there(standin, np.array([row, row]))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(standin.to_numpy(standin.xp.logaddexp.reduce(x, axis=1)), np.logaddexp.reduce([row, row], axis=1))


@pytest.mark.parametrize("count", [1, 2, 7, 300])
@pytest.mark.parametrize("static", [(), (3,)])
def test_sums_at_places_that_repeat(static: tuple[int, ...], count: int, standin: CupyBackend) -> None:
    target, places, values = RANDOM.random((10, *static)), RANDOM.integers(0, 10, count), RANDOM.random((count, *static))
    found, *others = there(standin, target, places, values)
    standin.xp.add.at(found, *others)
    np.add.at(target, places, values)
    np.testing.assert_allclose(standin.to_numpy(found), target)
    standin.xp.subtract.at(found, *others)
    np.subtract.at(target, places, values)
    np.testing.assert_allclose(standin.to_numpy(found), target, atol=1e-12)


def test_sums_at_places_of_two_axes(standin: CupyBackend) -> None:
    target, values = np.zeros((3, 4)), RANDOM.random(50)
    rows, columns = RANDOM.integers(0, 3, 50), RANDOM.integers(0, 4, 50)
    found, there_rows, there_columns, there_values = there(standin, target, rows, columns, values)
    standin.xp.add.at(found, (there_rows, there_columns), there_values)
    np.add.at(target, (rows, columns), values)
    np.testing.assert_allclose(standin.to_numpy(found), target)


def test_sums_of_runs_lose_nothing_to_what_lies_before_them(standin: CupyBackend) -> None:
    """As differences of running sums would: of 1e9 and what follows, or of inf."""
    rows = np.array([1e9, 1e9, 1e-3, 2e-3, np.inf, 1, 5e-3, 7], np.float32)[:, None]
    starts = np.array([0, 2, 4, 6])
    x, begins = there(standin, rows, starts)
    np.testing.assert_array_equal(standin.to_numpy(standin.xp.add.reduceat(x, begins)), np.add.reduceat(rows, starts))


@pytest.mark.parametrize("lengths", [[1], [5], [1, 1, 1], [3, 1, 40, 2]])
@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])
def test_sums_of_runs(dtype: Any, lengths: list[int], standin: CupyBackend) -> None:
    rows, starts = RANDOM.random((sum(lengths), 2)).astype(dtype), np.cumsum([0, *lengths[:-1]])
    x, begins = there(standin, rows, starts)
    found = standin.to_numpy(standin.xp.add.reduceat(x, begins, axis=0))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.add.reduceat(rows, starts, axis=0, dtype=np.float64), rtol=2 * float(limits_of(dtype).eps))


def test_sums_of_runs_along_another_axis(standin: CupyBackend) -> None:
    rows, starts = RANDOM.random((2, 6)), np.array([0, 2, 5])
    x, begins = there(standin, rows, starts)
    np.testing.assert_allclose(standin.to_numpy(standin.xp.add.reduceat(x, begins, axis=1)), np.add.reduceat(rows, starts, axis=1))


def test_sorting_by_several_keys(standin: CupyBackend) -> None:
    keys = RANDOM.integers(0, 3, 20), RANDOM.integers(0, 3, 20)
    np.testing.assert_array_equal(standin.to_numpy(standin.xp.lexsort(there(standin, *keys))), np.lexsort(keys))
