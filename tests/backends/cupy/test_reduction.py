"""Reductions as CUDA texts: the numbers of the operators' own methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.testing import assert_close
from cntk.testing.kernels import _compare_gradients, _compare_values, without_kernels
from cntk.testing.ops import samples_of
from cntk.testing.samples import describe
from cntk.testing.tolerances import VALUES

pytestmark = pytest.mark.usefixtures("host_gpu")

NAMES = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_log_sum_exp", "argmax")
SAMPLES = [(name, sample) for name in NAMES for sample in samples_of(plugins.ops.get(name))[1:4]]


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[describe(plugins.ops.get(name), sample) for name, sample in SAMPLES])
def test_samples(name: str, sample: Any, on_host: list[str]) -> None:
    function = plugins.ops.get(name)
    _compare_values(function, sample, None, 5)
    _compare_gradients(function, sample, None, 5)
    assert any("struct State" in text for text in on_host)


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", ["reduce_mean", "reduce_max"])
def test_over_the_batch_and_static_axes(name: str, dtype: Any) -> None:
    data = np.random.default_rng(0).normal(size=(300, 4, 3)).astype(dtype)
    axes = [C.Axis.default_batch_axis(), 0]

    def computed() -> list[Any]:
        x = C.input_variable((4, 3), dtype=dtype, needs_gradient=True)
        y = getattr(C, name)(x, axis=axes)
        gradient, value = y.grad({x: data}, wrt=[x], outputs=[y.output])
        return [value, gradient]

    found = computed()
    with without_kernels():
        expected = computed()
    for one, other in zip(found, expected, strict=True):
        assert_close(np.asarray(one), np.asarray(other), name, VALUES[dtype])


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_mean", "reduce_max"])
@pytest.mark.parametrize("axis", [0, 1])
def test_no_kernel_is_compiled_for_a_number_of_rows(name: str, axis: int, on_host: list[str]) -> None:
    x = C.input_variable((4, 3), needs_gradient=True)
    y = getattr(C, name)(x, axis=axis)
    compiled = []
    for rows in (2, 7, 300):
        y.grad({x: np.random.default_rng(rows).normal(size=(rows, 4, 3)).astype(np.float32)}, wrt=[x])
        compiled.append(len(set(on_host)))
    assert compiled == compiled[:1] * 3
