"""The exponential of compiled loops, against numbers of twice the length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)

from cntk.backends.fused.exponential import exp
from cntk.core.machine.loops import Loop

BOUND = 2
"""Units in the last place."""


@Loop
def each(x: Any, y: Any) -> None:
    for i in range(x.size):
        y[i] = exp(x[i])


def exponentials(x: Any) -> Any:
    y = np.empty_like(x)
    each.run(False, x, y)
    return y


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_it_is_within_the_bound(dtype: Any) -> None:
    limits, random = np.finfo(dtype), np.random.default_rng(1)
    whole = random.uniform((limits.minexp + 1) * np.log(2), np.log(limits.max), 10**5)
    x = np.concatenate([whole, random.normal(size=10**5), random.uniform(-1e-3, 1e-3, 1000)]).astype(dtype)
    x = x[(x >= dtype((limits.minexp + 1) * np.log(2))) & (x < np.log(limits.max))]
    right = np.exp(x.astype(np.longdouble))
    error = np.abs(exponentials(x) - right) / np.spacing(right.astype(dtype))
    assert error.max() < BOUND


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_what_is_no_normal_number(dtype: Any) -> None:
    limits = np.finfo(dtype)
    last, least = np.log(limits.max), dtype(limits.minexp * np.log(2))
    payload = np.array([-1], f"i{dtype().itemsize}").view(dtype)[0]
    x = np.array([np.inf, -np.inf, np.nan, -np.nan, payload, np.nextafter(last, dtype(np.inf)), 1e30, -1e30, least, 0, -0.0], dtype)
    np.testing.assert_array_equal(exponentials(x), np.array([np.inf, 0, *[np.nan] * 3, np.inf, np.inf, 0, 0, 1, 1], dtype))
    assert np.isfinite(exponentials(np.array([np.nextafter(last, dtype(0))]))).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=70))
def test_a_number_has_the_same_exponential_wherever_it_stands(numbers: list[float]) -> None:
    x = np.array(numbers, np.float32)
    np.testing.assert_array_equal(exponentials(x), [exponentials(x[i : i + 1])[0] for i in range(x.size)])
