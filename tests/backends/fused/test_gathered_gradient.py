"""The gradient of filters from gathered elements: that of the loops that gather nothing, in any number of blocks, the same bits on any
number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.fused import convolution
from cntk.core.common import threads
from cntk.core.common.thresholds import NEVER, thresholds

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
gathered_gradient = pytest.importorskip("cntk.backends.fused.gathered_gradient")
correlation = pytest.importorskip("cntk.backends.fused.correlation")

pytestmark = pytest.mark.usefixtures("three_threads")

GEOMETRIES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "strides": ((32, 11, 9), (3, 3), {"strides": 2, "auto_padding": (False, False, False)}),
    "strides and padding": ((32, 11, 9), (3, 3), {"strides": 2, "auto_padding": (False, True, True)}),
    "other strides along each axis": ((16, 14, 15), (5, 4), {"strides": (1, 3, 1), "auto_padding": (False, True, False)}),
    "dilation": ((32, 13, 12), (3, 3), {"strides": 2, "dilation": 2, "auto_padding": (False, True, True)}),
    "one axis": ((64, 40), (5,), {"strides": 3, "auto_padding": (False, True)}),
    "three axes": ((16, 5, 6, 7), (3, 2, 3), {"strides": 2, "auto_padding": (False, True, True, True)}),
    "few results": ((80, 3, 3), (3, 3), {"strides": 2, "auto_padding": (False, True, True)}),
}


class Case:
    """The gradients of a weighted convolution."""

    def __init__(self, name: str, dtype: Any, maps: int = 64, images: int = 5) -> None:
        shape, kernel, options = GEOMETRIES[name]
        random = np.random.default_rng(0)
        self.x = C.input_variable(shape, dtype, needs_gradient=True)
        self.w = C.parameter(init=random.normal(size=(maps, shape[0], *kernel)).astype(dtype), dtype=dtype)
        z = C.convolution(self.w, self.x, **options)
        self.weighted = z * C.constant(random.normal(size=z.shape).astype(dtype), dtype=dtype)
        self.data = random.normal(size=(images, *shape)).astype(dtype)

    def gradients(self) -> list[Any]:
        found = self.weighted.grad({self.x: self.data}, wrt=[self.x, self.w])
        return [found[self.x], found[self.w]]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops for small images."""
    monkeypatch.setattr(thresholds, "convolution_compiled", 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_gathered_elements_give_the_gradient(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(name, dtype)
    monkeypatch.setattr(convolution, "LEAST_SEEN", NEVER)
    dots = case.gradients()
    monkeypatch.undo()
    monkeypatch.setattr(thresholds, "convolution_compiled", 0)
    monkeypatch.setattr(correlation, "_sum_up", None)
    gathered = case.gradients()
    monkeypatch.setattr(gathered_gradient, "GATHERED_BYTES", 1)
    monkeypatch.setattr(gathered_gradient, "FILTERS", 1e-9)
    in_blocks = case.gradients()
    threads.set_max_threads(1)
    on_one = case.gradients()
    np.testing.assert_array_equal(gathered[0], dots[0])
    for found in (gathered, in_blocks):
        np.testing.assert_allclose(found[1], dots[1], rtol=1e-4, atol=2000 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(on_one[1], in_blocks[1])


@pytest.mark.parametrize("transpose", [False, True], ids=["convolution", "transpose"])
def test_filters_of_many_weights_are_gathered_for(transpose: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    x = C.input_variable((12, 9, 8), needs_gradient=True)
    w = C.parameter(init=random.normal(size=(12, 7, 3, 3) if transpose else (7, 12, 3, 3)).astype(np.float32))
    z = (C.convolution_transpose if transpose else C.convolution)(w, x, auto_padding=(False, True, True))
    weighted = z * C.constant(random.normal(size=z.shape).astype(np.float32))
    data = {x: random.normal(size=(4, 12, 9, 8)).astype(np.float32)}
    expected = weighted.grad(data, wrt=[x, w])
    asked: list[Any] = []
    monkeypatch.setattr(correlation, "LARGEST_FILTERS", 0)
    noted = gathered_gradient.correlate_backward
    monkeypatch.setattr(gathered_gradient, "correlate_backward", lambda *given: asked.append(given) or noted(*given))
    found = weighted.grad(data, wrt=[x, w])
    assert len(asked) == 1
    np.testing.assert_array_equal(found[x], expected[x])
    np.testing.assert_allclose(found[w], expected[w], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2])
def test_large_images_and_groups_of_many_weights_are_left_to_the_operator(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    x = C.input_variable((8, 7, 7), needs_gradient=True)
    w = C.parameter(init=random.normal(size=(6, 8 // groups, 3, 3)).astype(np.float32))
    z = C.convolution(w, x, auto_padding=(False, True, True), groups=groups)
    data = {x: random.normal(size=(3, 8, 7, 7)).astype(np.float32)}
    expected = z.grad(data, wrt=[x, w])
    monkeypatch.setattr(correlation, "LARGEST_FILTERS", 0)
    monkeypatch.setattr(correlation, "_sum_up", None)
    monkeypatch.setattr(gathered_gradient, "LARGEST_IMAGE", 0)
    found = z.grad(data, wrt=[x, w])
    np.testing.assert_array_equal(found[x], expected[x])
    np.testing.assert_allclose(found[w], expected[w], rtol=1e-4, atol=1e-4)
