"""Functions in plain arithmetic, and the tiles of products: how close they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
elementary = pytest.importorskip("cntk.backends.fused.elementary")
op = pytest.importorskip("cntk.backends.fused.opcodes")
tape = pytest.importorskip("cntk.backends.fused.tape")

BOUND = 2.0
"""Units in the last place of 1, times the value, by which results may differ from the true ones."""

ALONE = np.zeros(4, np.intp), (0, 0, 0, 0, 0)
"""Arguments of a tape whose products nobody shares."""

both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


def computed(kind: int, x: Any) -> Any:
    """What an operation makes of numbers."""
    found = np.empty_like(x)
    table = np.array([[kind, len(x), 0, 0, found.ctypes.data, 0, 0, x.ctypes.data, *[0] * 8]], np.intp)
    tape.run(0, 1, table, np.array([0, 1]), 0, 1, True, *ALONE, x)
    return found


@both_types
@pytest.mark.parametrize(
    ("kind", "true"),
    [(op.TANH, np.tanh), (op.SIGMOID, lambda x: 1 / (1 + np.exp(-x)))],
    ids=["tanh", "sigmoid"],
)
def test_functions_are_right_to_the_last_places(kind: int, true: Callable[..., Any], dtype: Any) -> None:
    scales = 10.0 ** np.linspace(-30, 2, 3001)
    x = np.concatenate([np.linspace(-86, 100, 30001), np.linspace(-1, 1, 30001), scales]).astype(dtype)
    expected = true(x.astype(np.longdouble))
    error = np.abs(computed(kind, x) - expected) / np.abs(expected, where=expected != 0, out=np.ones_like(expected))
    assert error.max() < BOUND * np.finfo(dtype).eps


@both_types
def test_functions_take_what_is_no_number_and_what_is_too_large(dtype: Any) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0], dtype)
    np.testing.assert_array_equal(computed(op.TANH, x), np.array([np.nan, 1, -1, 1, -1, 0], dtype))
    np.testing.assert_allclose(computed(op.SIGMOID, x), np.array([np.nan, 1, 0, 1, 0, 0.5], dtype), atol=1e-37)


@both_types
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_products_of_any_size(transposed: bool, dtype: Any, bytes_with_an_end: Callable[[int], Any]) -> None:
    random = np.random.default_rng(2)
    many = [(m, 5, n) for m in range(1, 20) for n in (20, 40, 80)]
    for m, k, n in [*many, (3, 1, 1), (9, 70, 32), (2, 33, 100), (17, 8, 31)]:
        a, b, c = (random.standard_normal(shape).astype(dtype) for shape in ((m, k), (n, k) if transposed else (k, n), (m + 1, n + 3)))
        b, untouched = b.T if transposed else b, c.copy()
        packed, like = bytes_with_an_end(tape.packed_bytes(b)), np.empty(0, dtype)
        tape.pack(0, tape.blocks_of(b, packed.ctypes.data), like)
        line = [op.PRODUCT, n, 0, k, c.ctypes.data, c.strides[0], 0, a.ctypes.data, a.strides[0], 0, packed.ctypes.data, *[0] * 5]
        tape.run(0, 1, np.array([line], np.intp), np.array([0, m]), 0, 1, True, *ALONE, like)
        exact, magnitudes = (x.astype(np.longdouble) @ y.astype(np.longdouble) for x, y in ((a, b), (abs(a), abs(b))))
        assert (np.abs(c[:m, :n] - exact) <= k * np.finfo(dtype).eps / 2 * magnitudes).all()  # as many roundings as terms
        np.testing.assert_array_equal(c[m], untouched[m])
        np.testing.assert_array_equal(c[:, n:], untouched[:, n:])


@both_types
def test_a_term_is_added_to_a_product_at_the_end(dtype: Any) -> None:
    random = np.random.default_rng(3)
    for m, k, n in [(m, 6, n) for m in range(1, 20) for n in (1, 31, 64, 150)]:
        a, b, term = (random.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n + 1)))
        plain, c = np.zeros((m, n), dtype), np.zeros((m, n + 2), dtype)
        packed, like = np.empty(tape.packed_bytes(b), np.uint8), np.empty(0, dtype)
        tape.pack(0, tape.blocks_of(b, packed.ctypes.data), like)
        for z, added in ((plain, [0, 0, 0]), (c, [term.ctypes.data, term.strides[0], 0])):
            line = [op.PRODUCT, n, 0, k, z.ctypes.data, z.strides[0], 0, a.ctypes.data, a.strides[0], 0, packed.ctypes.data, 0, 0, *added]
            tape.run(0, 1, np.array([line], np.intp), np.array([0, m]), 0, 1, True, *ALONE, like)
        np.testing.assert_array_equal(c[:, :n], plain + term[:, :n])
        np.testing.assert_array_equal(c[:, n:], 0)


@both_types
def test_a_row_is_the_same_beside_others(dtype: Any) -> None:
    random = np.random.default_rng(4)
    a, b = random.standard_normal((19, 40)).astype(dtype), random.standard_normal((40, 150)).astype(dtype)
    packed, like = np.empty(tape.packed_bytes(b), np.uint8), np.empty(0, dtype)
    tape.pack(0, tape.blocks_of(b, packed.ctypes.data), like)
    found = []
    for m in range(1, 20):
        c = np.zeros((m, 150), dtype)
        line = [op.PRODUCT, 150, 0, 40, c.ctypes.data, c.strides[0], 0, a.ctypes.data, a.strides[0], 0, packed.ctypes.data, *[0] * 5]
        tape.run(0, 1, np.array([line], np.intp), np.array([0, m]), 0, 1, True, *ALONE, like)
        found.append(c)
    for c in found:
        np.testing.assert_array_equal(c, found[-1][: len(c)])
