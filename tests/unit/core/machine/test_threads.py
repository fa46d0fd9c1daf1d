"""The number of threads that share a call's work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import cntk as C
from cntk.core.common import threads
from cntk.core.machine import blas


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = C.device.get_threads()
    yield
    C.device.set_threads(before)


def test_loops_and_products_get_so_many() -> None:
    C.device.set_threads(1)
    assert C.device.get_threads() == threads.max_threads() == 1
    library = blas.find()
    if library is not None:
        assert library.get_threads() == 1


def test_results_stay_the_same() -> None:
    x = C.input_variable(300)
    function = C.layers.Dense(200, activation=C.tanh)(x)
    data = np.random.default_rng(0).random((400, 300), np.float32)
    wanted = function.eval(data)
    C.device.set_threads(1)
    np.testing.assert_allclose(function.eval(data), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("number", [0, -1])
def test_no_threads(number: int) -> None:
    with pytest.raises(ValueError, match=f"set_threads: expected at least one thread, got {number}"):
        C.device.set_threads(number)


def test_parts_of_threads() -> None:
    with pytest.raises(TypeError, match="integer"):
        C.device.set_threads(1.5)  # type: ignore[arg-type]
