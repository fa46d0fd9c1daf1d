"""Softmax, its logarithm and cross entropy under Numba's simulator, of narrow rows and of wide ones: what the CPU computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from simulated import on_the_simulator

import cntk as C

pytestmark = on_the_simulator

CLASSES = [1, 9, 63, 64, 131]
ROWS = 3


def close(dtype: Any) -> dict[str, float]:
    return {"rtol": 200 * float(np.finfo(dtype).eps), "atol": 400 * float(np.finfo(dtype).eps)}


def assert_same_as_on_the_cpu(make: Callable[[Any], Any], dtype: Any, logits: Any, beside: dict[Any, Any] | None = None) -> None:
    x = C.input_variable(logits.shape[1], dtype=dtype, needs_gradient=True)
    z = make(x)

    def computed(name: str) -> Any:
        return (z * C.sin(z)).grad({x: logits, **(beside or {})}, wrt=[x], outputs=[z.output], device=C.device.device(name))

    for given, expected in zip(computed("numba-cuda"), computed("numpy"), strict=True):
        assert given.dtype == dtype
        np.testing.assert_allclose(given, expected, **close(dtype))


def logits_of(classes: int, dtype: Any) -> Any:
    return (np.random.default_rng(classes).normal(size=(ROWS, classes)) * 5).astype(dtype)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("of", [C.softmax, C.log_softmax])
def test_softmax(of: Any, dtype: Any, classes: int) -> None:
    assert_same_as_on_the_cpu(of, dtype, logits_of(classes, dtype))


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cross_entropy(dtype: Any, classes: int) -> None:
    y = C.input_variable(classes, dtype=dtype)
    target = abs(logits_of(classes, dtype))
    target /= target.sum(axis=1, keepdims=True)
    assert_same_as_on_the_cpu(lambda x: C.cross_entropy_with_softmax(x, y), dtype, logits_of(classes, dtype), {y: target})


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cross_entropy_with_sparse_targets(dtype: Any, classes: int) -> None:
    y = C.input_variable(classes, is_sparse=True, dtype=dtype)
    dense = np.zeros((ROWS, classes), dtype)
    dense[0, classes - 1], dense[2, 0], dense[2, classes // 2] = 1, 0.25, 0.75
    assert_same_as_on_the_cpu(lambda x: C.cross_entropy_with_softmax(x, y), dtype, logits_of(classes, dtype), {y: csr_matrix(dense)})


def softmax_of(logits: Any, name: str) -> Any:
    x = C.input_variable(logits.shape[1])
    return C.softmax(x).eval({x: logits}, device=C.device.device(name))


@pytest.mark.parametrize("classes", [5, 70])
def test_far_logits(classes: int) -> None:
    logits = np.full((2, classes), -1e30, np.float32)
    logits[0, 3], logits[1] = 1e30, np.linspace(-100, 100, classes)
    np.testing.assert_allclose(softmax_of(logits, "numba-cuda"), softmax_of(logits, "numpy"), rtol=1e-5, atol=1e-37)


@pytest.mark.parametrize("classes", [5, 70])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_makes_a_row_of_none(wrong: float, classes: int) -> None:
    logits = np.zeros((2, classes), np.float32)
    logits[0, 2] = wrong
    result = softmax_of(logits, "numba-cuda")
    assert np.isnan(result[0, 2])
    np.testing.assert_allclose(result[1], 1 / classes, rtol=1e-6)


@pytest.mark.parametrize("make", [C.softmax, lambda x: C.cross_entropy_with_softmax(x, x)])
def test_what_is_done_again_and_again_is_bound_to_its_arrays(make: Any) -> None:
    from cntk.backends.numba_cuda.compiler import Launch

    x = C.input_variable(5)
    z = make(C.sin(x))
    with mock.patch.object(Launch, "__call__", autospec=True) as launched:
        for rows in (2, 2, 2):
            z.eval({x: np.ones((rows, 5), np.float32)}, device=C.device.device("numba-cuda"))
    assert launched.call_count == 3
    assert len({id(call.args[0]) for call in launched.call_args_list}) == 1
