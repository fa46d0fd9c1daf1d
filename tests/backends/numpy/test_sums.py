"""Sums over what was broadcast."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from cntk.backends.numpy.sums import MOST
from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context

ROUNDING = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-13}


@st.composite
def sums(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of an array, and of what was broadcast to it."""
    full = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 16, 40]), min_size=1, max_size=3)))
    target = tuple(draw(st.sampled_from([1, dim])) for dim in full)
    return full, target[draw(st.integers(0, len(full))) :]


@given(shapes=sums(), dtype=st.sampled_from(sorted(ROUNDING)), parts=st.booleans(), seed=st.integers(0, 99))
def test_sums_over_what_was_broadcast(shapes: Any, dtype: str, parts: bool, seed: int) -> None:
    full, target = shapes
    step = 2 if parts else 1  # every second column of wider arrays
    wide = np.random.default_rng(seed).random((*full[:-1], full[-1] * step)).astype(dtype)
    values = wide[..., ::step]
    out = np.full((*target[:-1], target[-1] * step) if target else (), np.nan, dtype)
    result = out[..., ::step] if target else out
    Context(backend_named("numpy"), True).sum_to(values, result)
    lined_up = (1,) * (len(full) - len(target)) + target
    axes = tuple(axis for axis, dim in enumerate(lined_up) if dim == 1)
    wanted = values.astype(np.float64).sum(axes, keepdims=True).reshape(target)
    np.testing.assert_allclose(result, wanted, rtol=ROUNDING[dtype])
    if parts and target:
        assert np.isnan(out[..., 1::step]).all()


@pytest.mark.parametrize("length", [MOST, 2**20])
def test_long_sums_are_accurate(length: int) -> None:
    context, total = Context(backend_named("numpy"), True), np.empty((3, 1), np.float32)
    context.sum_to(np.full((3, length), 0.1, np.float32), total)
    np.testing.assert_allclose(total, length * np.float32(0.1), rtol=5e-6)


@pytest.mark.parametrize("columns", [1, 2, 3, 16])
def test_sums_of_many_rows_are_as_accurate_as_those_of_numpy(columns: int) -> None:
    rows = np.random.default_rng(0).random((2**16, columns)).astype(np.float32)
    context, total = Context(backend_named("numpy"), True), np.empty(columns, np.float32)
    context.sum_to(rows, total)
    exact = rows.sum(0, dtype=np.float64)
    assert abs(total - exact).max() <= 2 * abs(rows.sum(0) - exact).max() + 1e-7 * exact.max()


def test_a_sum_that_is_repeated_sees_what_the_arrays_hold_now() -> None:
    context = Context(backend_named("numpy"), True)
    rows, total, other = np.ones((5, 3), np.float32), np.empty(3, np.float32), np.empty((5, 1), np.float32)
    for factor in 1, 2, 3:
        rows[...] = factor
        context.sum_to(rows, total)
        assert total.tolist() == [5 * factor] * 3
    context.sum_to(rows, other)
    context.sum_to(rows, total)
    assert other[:, 0].tolist() == [9] * 5
    assert total.tolist() == [15] * 3


def test_sums_of_nothing_are_zero() -> None:
    total = np.full(3, np.nan, np.float32)
    Context(backend_named("numpy"), True).sum_to(np.empty((0, 3), np.float32), total)
    assert total.tolist() == [0, 0, 0]
