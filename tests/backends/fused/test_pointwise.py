"""Convolutions with filters of one weight a channel are products of matrices: as the operator computes them, whatever the threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common.threads import set_max_threads
from cntk.core.common.thresholds import NEVER, all_set_to, overridden

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)

from cntk.backends.fused import pointwise

CASES = [
    (1, 32, (9, 7), 40, 1),
    (3, 48, (6, 6), 32, 1),
    (3, 100, (3, 5), 130, 1),
    (9, 64, (2, 3), 96, 1),
    (3, 36, (8, 9), 50, 2),
    (2, 200, (7, 7), 150, 2),
    (2, 33, (10, 11), 64, 3),
    (1, 64, (7, 7), 200, 1),
    (2, 40, (13, 12), 150, 2),
]
"""Images, channels, their sides, filters, stride."""


@pytest.fixture(params=CASES, ids=str)
def network(request: pytest.FixtureRequest) -> tuple[Any, Any, Any]:
    """Variables, the convolution, and data."""
    rows, channels, sides, maps, stride = request.param
    random = np.random.default_rng(0)
    x = C.input_variable((channels, *sides), needs_gradient=True)
    w = C.parameter(init=random.normal(size=(maps, channels, 1, 1)).astype(np.float32))
    z = C.convolution(w, x, strides=stride, auto_padding=(False, True, True))
    return x, z, random.normal(size=(rows, channels, *sides)).astype(np.float32)


def computed(x: Any, z: Any, data: Any) -> list[Any]:
    """Results and both gradients of a weighted sum of them."""
    (w,) = z.parameters
    weights = C.constant(np.random.default_rng(1).normal(size=z.shape).astype(np.float32))
    gradients, result = (z * weights).grad({x: data}, wrt=[x, w], outputs=[z])
    return [result, gradients[x], gradients[w]]


def test_results_and_gradients_are_the_operators(network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    for name in ("bound_correlation", "correlate_backward"):
        whole = getattr(pointwise, name)
        monkeypatch.setattr(pointwise, name, lambda *given, whole=whole, name=name: (used.append(name), whole(*given))[1])
    with overridden(convolution_compiled=0):
        found = computed(*network)
    assert {"bound_correlation", "correlate_backward"} <= set(used)
    with overridden(convolution_compiled=NEVER):
        wanted = computed(*network)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4 * np.abs(theirs).max())


def test_repeated_steps_and_other_sizes_give_the_same_bits(network: Any) -> None:
    x, z, data = network
    with overridden(convolution_compiled=0):
        first, few, again = computed(x, z, data), computed(x, z, data[:1]), computed(x, z, data)
    np.testing.assert_array_equal(first[0][:1], few[0])
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_change_no_bit(network: Any) -> None:
    found = []
    for threads in (1, 2, 3):
        set_max_threads(threads)
        with all_set_to(0):
            found.append(computed(*network))
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_bias_and_a_rectifier_follow() -> None:
    x = C.input_variable((40, 6, 5))
    layer = C.layers.Convolution2D(1, 48, activation=C.relu, init=C.normal(1, seed=3), init_bias=C.normal(1, seed=4))(x)
    data = np.random.default_rng(2).normal(size=(3, 40, 6, 5)).astype(np.float32)
    with overridden(convolution_compiled=0):
        found = layer.eval({x: data})
    with overridden(convolution_compiled=NEVER):
        np.testing.assert_allclose(found, layer.eval({x: data}), rtol=1e-4, atol=1e-3)


def test_images_that_change_in_place_are_read_again() -> None:
    x = C.input_variable((64, 9, 9))
    z = C.convolution(C.parameter((32, 64, 1, 1), init=C.normal(1, seed=1)), x, strides=2, auto_padding=(False, True, True))
    bound = z.bind({x: (2, 64, 9, 9)})
    random = np.random.default_rng(3)
    for _ in range(2):
        data = random.normal(size=(2, 64, 9, 9)).astype(np.float32)
        np.testing.assert_array_equal(bound(data), z.eval({x: data}))
