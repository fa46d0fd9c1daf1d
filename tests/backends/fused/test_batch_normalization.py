"""Loops for batch normalisation: the same as the operator's own methods, and the same bits whatever the number of threads."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.fused import batch_normalization as kernel
from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds
from cntk.testing import assert_close

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
pytestmark = pytest.mark.usefixtures("three_threads")

SHAPES = [(5, 3, 4, 7), (33, 4, 40, 40), (1, 2, 16)]


def alone(y: Any, other: Any) -> Any:
    return y


def rectified(y: Any, other: Any) -> Any:
    return C.relu(y)


def rectified_sum(y: Any, other: Any) -> Any:
    return C.relu(other + y)


FOLLOWERS = [alone, rectified, rectified_sum]
"""What is made of the normalised values, and maybe another value."""


def computed(shape: tuple[int, ...], dtype: Any, follower: Any = alone) -> list[Any]:
    """Result, gradients of operand, other value, scale and bias, and running statistics after a training pass."""
    random = np.random.default_rng(1)
    samples, others, weights = (random.normal(mean, 2, shape).astype(dtype) for mean in (3, 0, 0))
    features = shape[1:2]
    x, other = (C.input_variable(shape[1:], dtype, needs_gradient=True) for _ in range(2))
    w = C.input_variable(shape[1:], dtype)
    scale, bias = (C.parameter(init=random.normal(size=features).astype(dtype), dtype=dtype) for _ in range(2))
    mean, variance, count = (C.constant(0, of, dtype=dtype) for of in (features, features, ()))
    y = follower(C.batch_normalization(x, scale, bias, mean, variance, True, running_count=count), other)
    weighted = C.element_times(y, w)
    data = {of: array for of, array in ((x, samples), (other, others), (w, weights)) if of in weighted.arguments}
    wanted = [of for of in (x, other, scale, bias) if of in data or of in weighted.parameters]
    gradients, result = weighted.grad(data, wrt=wanted, outputs=[weighted])
    return [result, *(gradients[of] for of in wanted), mean.value, variance.value]


def test_the_result_may_lie_in_the_operands_memory() -> None:
    from cntk.backends.fused import features

    random = np.random.default_rng(1)
    x = random.normal(size=(33, 4, 1600)).astype(np.float32)
    scale, bias = random.normal(size=(2, 4)).astype(np.float32)
    apart, in_place, least = np.empty_like(x), x.copy(), np.float32(0)
    for y, of in ((apart, x), (in_place, in_place)):
        features.normalise(x.size, of, y, y, False, least, scale, bias, *np.empty((3, 4), np.float32), 1e-5, np.empty((2, 8, 4)))
    np.testing.assert_array_equal(apart, in_place)


@pytest.mark.parametrize("follower", FOLLOWERS, ids=lambda follower: str(follower.__name__))
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_loops_compute_what_the_operator_computes(
    shape: tuple[int, ...], dtype: Any, follower: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []
    module = kernel._module()
    monkeypatch.setattr(kernel, "_module", lambda: used.append(module) or module)
    monkeypatch.setattr(thresholds, "batch_normalization_compiled", 1)
    fused = computed(shape, dtype, follower)
    assert used
    used.clear()
    monkeypatch.setattr(thresholds, "batch_normalization_compiled", 2**62)
    for ours, own in zip(fused, computed(shape, dtype, follower), strict=True):
        size = np.abs(own).max()
        assert_close(ours / size, own / size)
    assert not used


@pytest.mark.parametrize("follower", FOLLOWERS, ids=lambda follower: str(follower.__name__))
def test_threads_change_no_bit(follower: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = SHAPES[1]
    monkeypatch.setattr(thresholds, "batch_normalization_compiled", 1)
    monkeypatch.setattr(thresholds, "batch_normalization_shared", 1)
    shared = computed(shape, np.float32, follower)
    threads.set_max_threads(1)
    for one, other in zip(computed(shape, np.float32, follower), shared, strict=True):
        np.testing.assert_array_equal(one, other)


def test_variance_survives_a_distant_mean_and_one_distant_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "batch_normalization_compiled", 1)
    x = C.input_variable((2, 8, 8))
    y = C.layers.BatchNormalization(map_rank=1, normalization_time_constant=0)(x)
    values = np.random.default_rng(1).normal(1000, 1, (200, 2, 8, 8)).astype(np.float32)
    values[0, 1] = -5000
    y.grad({x: values}, wrt=list(y.parameters))
    variance = values.astype(np.float64).var(axis=(0, 2, 3), ddof=1)
    np.testing.assert_allclose(next(of.value for of in y.constants if of.name == "aggregate_variance"), variance, rtol=1e-5)


def test_small_minibatches_load_no_loops() -> None:
    program = """
import sys, warnings, numpy as np, cntk as C
x = C.input_variable((2, 16, 16))
y = C.layers.BatchNormalization(map_rank=1)(x)
y.grad({x: np.ones((8, 2, 16, 16), np.float32)}, wrt=list(y.parameters))
print('llvmlite' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "False"
