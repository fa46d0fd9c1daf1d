"""Products of a few rows and a matrix that is not packed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cntk.backends.fused import dense
from cntk.backends.fused.followers import After
from cntk.core.common import threads
from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
few_rows = pytest.importorskip("cntk.backends.fused.few_rows")
products = pytest.importorskip("cntk.backends.fused.products")
pytestmark = pytest.mark.usefixtures("three_threads")
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def numbers(*shape: int, dtype: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def product(left: Any, right: Any, *followers: Any) -> Any:
    out = np.full((len(left), right.shape[1] + 3), 7, left.dtype)
    few_rows.bound(left, right, out[:, 1:-2], After(*followers))()
    assert (out[:, [0, -2, -1]] == 7).all()
    return out[:, 1:-2]


@both_types
@pytest.mark.parametrize("n", [1, 7, 16, 63, 64, 65, 129, 200])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 9, 32])
def test_products_are_numpys_whatever_the_threads(m: int, n: int, dtype: Any) -> None:
    left, right = numbers(m, 37, dtype=dtype), numbers(37, n + 2, dtype=dtype, seed=1)[:, :n]
    found = []
    for number in (1, 2, 3):
        threads.set_max_threads(number)
        found.append(product(left, right))
    np.testing.assert_allclose(found[0], left.astype(np.float64) @ right, atol=1e-4 if dtype == np.float32 else 1e-12)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@both_types
def test_the_left_operand_lies_as_it_likes(dtype: Any) -> None:
    turned, right = numbers(37, 6, dtype=dtype).T, numbers(37, 70, dtype=dtype)
    np.testing.assert_array_equal(product(turned, right), product(np.ascontiguousarray(turned), right))


@both_types
def test_a_row_is_the_same_as_in_a_large_product(dtype: Any) -> None:
    left, right, out = numbers(80, 100, dtype=dtype), numbers(100, 83, dtype=dtype), np.empty((80, 83), dtype)
    products.bound(Context(backend_named("numpy"), training=True), left, right, out)()
    for some in (slice(40, 45), slice(7, 8)):
        np.testing.assert_array_equal(product(left[some], right), out[some])


@both_types
@pytest.mark.parametrize("m", [1, 6])
def test_threads_share_large_ones(m: int, dtype: Any) -> None:
    left, right = numbers(m, 1021, dtype=dtype), numbers(1021, 1100, dtype=dtype)
    found = []
    for number in (1, 3):
        threads.set_max_threads(number)
        found.append(product(left, right))
    np.testing.assert_allclose(found[0], left.astype(np.float64) @ right, atol=1e-3 if dtype == np.float32 else 1e-11)
    np.testing.assert_array_equal(*found)


@both_types
@pytest.mark.parametrize("rectify", [False, True])
def test_bias_and_rectifier_follow(rectify: bool, dtype: Any) -> None:
    right, bias = numbers(30, 77, dtype=dtype), numbers(77, dtype=dtype)
    for m in (1, 5):
        left = numbers(m, 30, dtype=dtype)
        expected = left @ right + bias
        found = product(left, right, bias, None, rectify)
        np.testing.assert_allclose(found, np.maximum(expected, 0) if rectify else expected, atol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize(
    ("m", "depth", "n", "way", "fits"),
    [
        (2, 1000, 1000, "", True),
        (32, 1000, 1000, "", True),
        (1, 400, 400, "", True),
        (1, 100, 100, "", False),
        (8, 300, 300, "", False),  # small
        (8, 1000, 20, "", False),  # few columns
        (8, 2000, 1000, "", False),  # deep: partial sums are added
        (8, 1000, 1000, "turned", False),
    ],
)
def test_which_products_fit(m: int, depth: int, n: int, way: str, fits: bool) -> None:
    right = np.empty((n, depth), np.float32).T if way == "turned" else np.empty((depth, n), np.float32)
    assert dense.Products.fits(np.empty((m, depth), np.float32), right, np.empty((m, n), np.float32)) == fits
