"""Loops for batch normalisation: the same as the operator's own methods, and the same bits whatever the number of threads."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.fused import batch_normalization as kernel
from cntk.core import threads
from cntk.testing import assert_close

pytest.importorskip("numba", reason="kernels are compiled by Numba")
pytestmark = pytest.mark.usefixtures("three_threads")

SHAPES = [(5, 3, 4, 7), (33, 4, 40, 40), (1, 2, 16)]


def computed(shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """Result, gradients of operand, scale and bias, and running statistics after a training pass."""
    random = np.random.default_rng(1)
    samples, weights = (random.normal(mean, 2, shape).astype(dtype) for mean in (3, 0))
    features = shape[1:2]
    x, w = C.input_variable(shape[1:], dtype, needs_gradient=True), C.input_variable(shape[1:], dtype)
    scale, bias = (C.parameter(init=random.normal(size=features).astype(dtype), dtype=dtype) for _ in range(2))
    mean, variance, count = (C.constant(0, of, dtype=dtype) for of in (features, features, ()))
    y = C.batch_normalization(x, scale, bias, mean, variance, True, running_count=count)
    weighted = C.element_times(y, w)
    gradients, result = weighted.grad({x: samples, w: weights}, wrt=[x, scale, bias], outputs=[weighted])
    return [result, *(gradients[of] for of in (x, scale, bias)), mean.value, variance.value]


def test_the_result_may_lie_in_the_operands_memory() -> None:
    from cntk.backends.fused import features

    random = np.random.default_rng(1)
    x = random.normal(size=(33, 4, 1600)).astype(np.float32)
    scale, bias = random.normal(size=(2, 4)).astype(np.float32)
    apart, in_place = np.empty_like(x), x.copy()
    for y, of in ((apart, x), (in_place, in_place)):
        features.normalise(x.size, of, y, scale, bias, *np.empty((3, 4), np.float32), 1e-5)
    np.testing.assert_array_equal(apart, in_place)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_loops_compute_what_the_operator_computes(shape: tuple[int, ...], dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    module = kernel._module()
    monkeypatch.setattr(kernel, "_module", lambda: used.append(module) or module)
    monkeypatch.setattr(kernel, "FUSED_FROM", 1)
    fused = computed(shape, dtype)
    assert len(used) == 2
    monkeypatch.setattr(kernel, "FUSED_FROM", 2**62)
    for ours, own in zip(fused, computed(shape, dtype), strict=True):
        size = np.abs(own).max()
        assert_close(ours / size, own / size)
    assert len(used) == 2


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = SHAPES[1]
    monkeypatch.setattr(kernel, "FUSED_FROM", 1)
    shared = computed(shape, np.float32)
    threads.set_max_threads(1)
    for one, other in zip(computed(shape, np.float32), shared, strict=True):
        np.testing.assert_array_equal(one, other)


def test_small_minibatches_load_no_loops() -> None:
    program = """
import sys, warnings, numpy as np, cntk as C
x = C.input_variable((2, 16, 16))
y = C.layers.BatchNormalization(map_rank=1)(x)
y.grad({x: np.ones((8, 2, 16, 16), np.float32)}, wrt=list(y.parameters))
print('llvmlite' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "False"
