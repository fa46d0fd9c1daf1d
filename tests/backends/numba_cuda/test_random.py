"""Random numbers and dropout under Numba's simulator: those of the CPU, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated import on_the_simulator

import cntk as C
from cntk.core.common.random import philox_normal, philox_uniform
from cntk.core.extension.device import backend_named

pytestmark = on_the_simulator

SHAPES = [(), (1,), (7,), (9, 11), (0, 3)]
SEEDS = [0, 2**64 - 4, 2**100 + 7]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_numbers(shape: Any, dtype: Any, seed: int) -> None:
    given, expected = np.empty(shape, dtype), np.empty(shape, dtype)
    backend_named("numba-cuda").uniform(given, seed, 5)
    philox_uniform(expected, seed, 5)
    assert given.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_numbers(shape: Any, dtype: Any) -> None:
    given, expected = np.empty(shape, dtype), np.empty(shape, dtype)
    backend_named("numba-cuda").normal(given, 3, 2)
    philox_normal(expected, 3, 2)
    assert given.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 13])
def test_dropout(dtype: Any, rows: int) -> None:
    def results(device: Any) -> list[Any]:
        x = C.input_variable(7, dtype=dtype, needs_gradient=True)
        z = C.dropout(C.sin(x), 0.3, seed=4)
        data = np.linspace(-3, 5, rows * 7, dtype=dtype).reshape(rows, 7)
        passes = [z.grad({x: data}, wrt=[x], outputs=[z.output], device=device) for _ in range(2)]
        return [array for gradient, result in passes for array in (gradient, result)]

    given, expected = (results(C.device.device(name)) for name in ("numba-cuda", "numpy"))
    assert [array.tobytes() for array in given] == [array.tobytes() for array in expected]
    assert (given[1] == 0).any()
    assert not np.array_equal(given[1], given[3])
