"""Which sums a tape computes along with the product before them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
op = pytest.importorskip("cntk.backends.fused.opcodes")
lines = pytest.importorskip("cntk.backends.fused.lines")
terms = pytest.importorskip("cntk.backends.fused.terms")

ROWS, WIDTH = 3, 4


@pytest.fixture
def w() -> Any:
    return lines.Writer(lambda array: False)


def arrays(count: int) -> list[Any]:
    return [np.zeros((ROWS, WIDTH), np.float32) for _ in range(count)]


def product_of(w: Any, z: Any, x: Any) -> Any:
    return w.product(z, x, np.eye(WIDTH, dtype=np.float32))


def kinds(written: list[Any], passing: list[Any]) -> list[int]:
    return [line.kind for line in terms.with_terms(written, [array.ctypes.data for array in passing])]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_sum_becomes_a_term_of_the_product_before_it(w: Any, is_first: bool) -> None:
    x, product, other, total = arrays(4)
    operands = (product, other) if is_first else (other, product)
    merged = terms.with_terms([product_of(w, product, x), w.line(op.ADD, total, *operands)], [product.ctypes.data])
    assert [line.kind for line in merged] == [op.PRODUCT]
    assert (merged[0].z.address, merged[0].term.address) == (total.ctypes.data, other.ctypes.data)


def test_what_a_product_is_added_to_is_its_term_and_result(w: Any) -> None:
    x, product, total = arrays(3)
    merged = terms.with_terms([product_of(w, product, x), w.copy(total, product, op.ADD_TO)], [product.ctypes.data])
    assert [line.kind for line in merged] == [op.PRODUCT]
    assert merged[0].z.address == merged[0].term.address == total.ctypes.data


def test_only_the_first_of_two_sums_is_a_term(w: Any) -> None:
    x, product, other, more, total, last = arrays(6)
    written = [product_of(w, product, x), w.line(op.ADD, total, product, other), w.line(op.ADD, last, total, more)]
    assert kinds(written, [product, total]) == [op.PRODUCT, op.ADD]


def test_a_product_that_others_read_stays_one(w: Any) -> None:
    x, product, other, total, last = arrays(5)
    multiplied, added = product_of(w, product, x), w.line(op.ADD, total, product, other)
    assert kinds([multiplied, added], []) == [op.PRODUCT, op.ADD]
    assert kinds([multiplied, added, w.copy(last, product)], [product]) == [op.PRODUCT, op.ADD, op.COPY]
    assert kinds([multiplied, w.line(op.ADD, total, product, product)], [product]) == [op.PRODUCT, op.ADD]


def test_a_product_does_not_overwrite_its_own_rows(w: Any) -> None:
    x, product, other = arrays(3)
    written = [product_of(w, product, x), w.line(op.ADD, x, product, other)]
    assert kinds(written, [product]) == [op.PRODUCT, op.ADD]
