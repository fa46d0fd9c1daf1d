"""Random numbers as ONNX Runtime draws them: of the distributions that are meant, to their ends, in each element type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exported import Exported

import cntk as C

COUNT = 1_000_000
TYPES = pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
"""Element types of results; numbers are drawn in at least single precision, and 1 in 4,096 rounds to a bound of float16."""


def drawn(function: Any) -> Any:
    """What ONNX Runtime draws."""
    (numbers,) = Exported(function).run({})
    assert numbers.shape == (COUNT,)
    assert numbers.dtype == function.dtype
    return numbers.astype(np.float64)


@TYPES
def test_gumbel_numbers_are_finite(dtype: Any) -> None:
    numbers = drawn(C.random.gumbel(COUNT, dtype, loc=2, scale=3))
    assert np.isfinite(numbers).all()
    assert abs(numbers.mean() - (2 + 3 * np.euler_gamma)) < 0.03
    assert abs(numbers.std() - 3 * np.pi / 6**0.5) < 0.03
    assert numbers.max() > 2 + 3 * 10  # that of a million is 13.8 scales above the location, give or take some


@TYPES
def test_gumbel_numbers_without_a_scale_are_their_location(dtype: Any) -> None:
    assert (drawn(C.random.gumbel(COUNT, dtype, loc=2, scale=0)) == 2).all()


@TYPES
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 5), (1000, 1001)])
def test_uniform_numbers_do_not_reach_the_upper_bound(dtype: Any, low: float, high: float) -> None:
    numbers = drawn(C.random.uniform(COUNT, dtype, low=low, high=high))
    assert numbers.min() >= low
    assert numbers.max() < high
    width = high - low
    assert abs(numbers.mean() - (low + high) / 2) < 0.01 * width + np.finfo(dtype).eps * high
    assert numbers.max() > high - 0.01 * width - 2 * np.finfo(dtype).eps * high


@TYPES
@pytest.mark.parametrize("mean", [0, 0.0004, 0.3, 0.9996, 1])
def test_bernoulli_numbers_are_as_often_1_as_is_meant(dtype: Any, mean: float) -> None:
    numbers = drawn(C.random.bernoulli(COUNT, dtype, mean=mean))
    assert set(np.unique(numbers)) <= {0, 1}
    assert abs(numbers.mean() - mean) <= 6 * (mean * (1 - mean) / COUNT) ** 0.5


@TYPES
def test_normal_numbers(dtype: Any) -> None:
    numbers = drawn(C.random.normal(COUNT, dtype, mean=2, scale=3))
    assert abs(numbers.mean() - 2) < 0.03
    assert abs(numbers.std() - 3) < 0.03
