"""Products that an OpenBLAS would share between threads although they are small."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.numpy import small_products, times
from cntk.core.common.thresholds import NEVER, thresholds
from cntk.core.machine import blas


@pytest.fixture(autouse=True)
def sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor for which the BLAS has no code for small products."""
    monkeypatch.setattr(small_products, "shares_small_products", lambda: True)
    monkeypatch.setattr(times, "shares_small_products", lambda: True)


def matrices(m: int, depth: int, n: int, dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    numbers = np.random.default_rng(0)
    return numbers.standard_normal((m, depth)).astype(dtype), numbers.standard_normal((depth, n)).astype(dtype), np.empty((m, n), dtype)


@pytest.mark.parametrize(
    ("sizes", "size"),
    [
        ((20, 50, 600), 208),  # two of 256 columns, the most that multiples of 16 allow, would not be enough
        ((600, 50, 20), 208),
        ((64, 64, 64), 0),  # just as many as are not shared
        ((64, 64, 65), 48),
        ((100, 150, 600), 0),  # large
        ((1, 784, 1000), 0),  # a row is no product of matrices to the BLAS
        ((2, 100_000, 3), 1),
        ((2, 200_000, 2), 0),  # too deep to be cut
    ],
)
def test_size_of_pieces(sizes: tuple[int, int, int], size: int) -> None:
    assert small_products.size_of_pieces(*matrices(*sizes)) == size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("turned", [(), (0,), (1,), (2,), (0, 1), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("sizes", [(20, 50, 600), (600, 50, 20), (70, 70, 70), (333, 17, 50)], ids=str)
def test_pieces_are_the_product(sizes: tuple[int, int, int], turned: tuple[int, ...], dtype: Any) -> None:
    operands = [array.T.copy().T if place in turned else array for place, array in enumerate(matrices(*sizes, dtype))]
    left, right, out = operands
    size = small_products.size_of_pieces(left, right, out)
    assert size
    calls = small_products.pieces(left, right, out, size)
    assert len(calls) == -(-max(sizes[0], sizes[2]) // size)
    small_products.call_all(calls)
    np.testing.assert_allclose(out, left.astype(np.float64) @ right, rtol=1e-3, atol=1e-4)


def test_halves_are_not_cut() -> None:
    assert small_products.size_of_pieces(*matrices(20, 50, 600, np.float16)) == 0


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What gets the multiplications of each product from now on."""
    seen: list[int] = []

    def noting(product: Callable[..., Any]) -> Any:
        def noted(left: Any, right: Any, out: Any) -> Any:
            seen.append(out.size * left.shape[-1])
            return product(left, right, out=out)

        return noted

    monkeypatch.setattr(thresholds, "product_packed", NEVER)  # what is packed once is not the BLAS's
    monkeypatch.setattr(thresholds, "product_narrow", NEVER)
    monkeypatch.setattr(np, "dot", noting(np.dot))
    monkeypatch.setattr(np, "matmul", noting(np.matmul))
    return seen


@pytest.mark.parametrize(("sizes", "is_cut"), [((20, 50, 600), True), ((20, 50, 100), False), ((100, 600, 20), False)])
def test_products_of_functions(products: list[int], sizes: tuple[int, int, int], is_cut: bool) -> None:
    samples, terms, columns = sizes
    x = C.input_variable(terms)
    function = C.times(x, C.parameter((terms, columns), init=C.glorot_uniform()))
    data, weights, _ = matrices(*sizes)
    function.parameters[0].value = weights
    np.testing.assert_allclose(function.eval(data), data @ weights, rtol=1e-3, atol=1e-4)
    gradient = function.grad(data, [*function.parameters])  # multiplies for the result too
    np.testing.assert_allclose(gradient, data.T @ np.ones((samples, columns), np.float32), rtol=1e-3, atol=1e-4)
    assert products
    assert (max(products) <= small_products.FEWEST_SHARED) == (is_cut or samples * terms * columns <= small_products.FEWEST_SHARED)
    assert sum(products) == 3 * samples * terms * columns


def test_threads_change_no_bit_of_small_products() -> None:
    left, right, out = matrices(20, 50, 600)
    calls = small_products.pieces(left, right, out, small_products.size_of_pieces(left, right, out))
    before = C.device.get_threads()
    results = []
    try:
        for number in (1, 2):
            C.device.set_threads(number)
            small_products.call_all(calls)
            results.append(out.copy())
    finally:
        C.device.set_threads(before)
    np.testing.assert_array_equal(*results)


def test_products_at_once_have_the_bits_of_products_in_turn() -> None:
    """None changes how many threads others have."""
    sizes = [(20, 50, 600), (300, 200, 150), (64, 784, 10), (400, 300, 200)] * 8
    functions = [C.layers.Dense(n)(C.input_variable(depth)) for _, depth, n in sizes]
    data = [matrices(*size)[0] for size in sizes]
    library = blas.find()
    before = None if library is None else library.get_threads()
    wanted = [function.eval(rows) for function, rows in zip(functions, data, strict=True)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda function, rows: function.eval(rows), functions, data))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert library is None or library.get_threads() == before
