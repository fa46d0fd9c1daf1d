"""Random numbers as CUDA texts: the host's, uniform ones and dropout to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy import dropout, philox
from cntk.core.common.dtypes import limits_of
from cntk.core.common.random import philox_normal, philox_uniform
from cntk.testing.kernels import without_kernels

SIZES = (0, 1, 7, 8, 33, 3001)
SEEDS = (0, 1, 2**64 - 4, 2**64 + 5)
all_types = pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])


def filled(fill: Any, size: int, dtype: Any, seed: int, draw: int) -> Any:
    out = HostBackend().empty((size,), dtype)
    fill(out, seed, array([draw], np.float64))()
    return out


@all_types
@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_numbers_are_the_hosts_to_the_bit(seed: int, dtype: Any, on_host: list[str]) -> None:
    for draw, size in enumerate(SIZES):
        expected = np.empty(size, dtype)
        philox_uniform(expected, seed, draw)
        np.testing.assert_array_equal(filled(philox.uniform, size, dtype, seed, draw), expected)


@all_types
def test_normal_numbers_are_the_hosts(dtype: Any, on_host: list[str]) -> None:
    for draw, size in enumerate(SIZES):
        expected = np.empty(size, dtype)
        philox_normal(expected, 3, draw)
        np.testing.assert_allclose(filled(philox.normal, size, dtype, 3, draw), expected, rtol=4 * float(limits_of(dtype).eps))


@all_types
def test_dropout_drops_what_the_operator_drops(dtype: Any, host_gpu: Any) -> None:
    data = np.random.default_rng(0).normal(size=(200, 5, 3)).astype(dtype)
    data[0, 0, :2] = np.inf, -0.0

    def trained() -> list[Any]:
        x = C.input_variable((5, 3), dtype=dtype, needs_gradient=True)
        y = C.dropout(x, 0.3, seed=7)
        return [part for _ in range(3) for part in y.grad({x: data}, wrt=[x], outputs=[y.output])]

    found = trained()
    with without_kernels():
        expected = trained()
    np.testing.assert_array_equal(np.float64(found), np.float64(expected))
    assert not np.array_equal(found[0], found[2])


def test_dropout_of_arrays_that_are_parts_of_others(on_host: list[str]) -> None:
    whole = array(np.arange(1.0, 61.0).reshape(6, 10), np.float32)
    part, out = whole[:, 3:7], HostBackend().empty((6, 4), np.float32)
    dropout.bound(part, out, array(dropout.numbers_of(np.float32, 0.5, 5, 2), np.float64))()
    noise = np.empty((6, 4), np.float32)
    philox_uniform(noise, 5, 2)
    np.testing.assert_array_equal(out, np.asarray(part) * (noise >= 0.5) * 2)
