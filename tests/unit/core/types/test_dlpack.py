"""Tensors of bfloat16, which NumPy does not take from other libraries."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.graph.foreign import as_data
from cntk.core.types.dlpack import bfloat16_of

NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3) / 2


def tensor(numbers: Any = NUMBERS) -> Any:
    return pytest.importorskip("torch", reason="needs PyTorch").tensor(numbers).bfloat16()


@pytest.mark.parametrize(
    "part", [lambda t: t, lambda t: t.T, lambda t: t[1:, ::2], lambda t: t[0, 0], lambda t: t[:0], lambda t: t.expand(2, 2, 3)]
)
def test_tensors_are_copied_however_they_lie(part: Any) -> None:
    given = part(tensor())
    found = as_data("x", given)
    assert found.dtype == C.bfloat16
    np.testing.assert_array_equal(found.astype(np.float32), given.float().numpy())
    given.fill_(7)
    assert not found.size or (found != 7).any()


def test_they_are_data_values_and_operands() -> None:
    x = C.input_variable(3, C.bfloat16)
    expected = 2 * NUMBERS
    np.testing.assert_array_equal((2 * x).eval({x: tensor()}), expected)
    np.testing.assert_array_equal((x * tensor(NUMBERS[0])).eval({x: np.ones((1, 3), C.bfloat16)}), NUMBERS[:1])
    parameter = C.parameter((2, 3), dtype=C.bfloat16)
    parameter.value = tensor()
    np.testing.assert_array_equal(parameter.value, NUMBERS)
    assert C.parameter(init=tensor(), dtype=C.bfloat16).value.dtype == C.Value(tensor()).dtype == C.bfloat16


def test_other_tensors_are_left_to_numpy() -> None:
    assert bfloat16_of(tensor().half()) is None
    assert bfloat16_of(NUMBERS) is None


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    given = tensor()
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ValueError, match=r"pip install 'opencntk\[bfloat16\]'"):
        as_data("x", given)
