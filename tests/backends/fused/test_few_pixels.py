"""Convolutions of one image with few pixels by packed filters: the bits of others, whatever the threads, also when filters have changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.fused.followers import After
from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds
from cntk.core.common.windows import correlation as geometry
from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
correlation = pytest.importorskip("cntk.backends.fused.correlation")
few_pixels = pytest.importorskip("cntk.backends.fused.few_pixels")
pytestmark = pytest.mark.usefixtures("three_threads")

CASES = [
    (5, 64, (5, 5), (3, 3), (1, 1), False),
    (16, 96, (7, 7), (3, 3), (1, 1), True),
    (9, 120, (9, 8), (3, 2), (2, 2), True),
    (3, 64, (3, 3), (3, 3), (1, 1), False),
    (4, 128, (3, 4, 4), (2, 3, 2), (1, 2, 1), True),
    (7, 70, (11,), (5,), (2,), True),
    (60, 64, (7, 7), (3, 3), (1, 1), True),
    (64, 32, (14, 15), (3, 3), (2, 2), True),
]
"""Channels, filters, their sides and those of the image, strides, padding."""


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_have_the_bits_of_others(case: Any, dtype: Any, number: int, monkeypatch: pytest.MonkeyPatch, unchanging: Context) -> None:
    monkeypatch.setattr(thresholds, "convolution_shared", 0)
    threads.set_max_threads(number)
    channels, maps, size, kernel, strides, pad = case
    ones = (1,) * (len(size) + 1)
    g = geometry(maps, (channels, *kernel), (channels, *size), (1, *strides), ones, (False, *(pad,) * len(size)), 1)
    random, calls = np.random.default_rng(5), []
    image, filters = (random.standard_normal(shape).astype(dtype) for shape in ((1, channels, *size), (maps, channels, *kernel)))
    bound = few_pixels.bound
    monkeypatch.setattr(few_pixels, "fits", lambda *_: True)
    monkeypatch.setattr(few_pixels, "bound", lambda *arguments: (calls.append(bound(*arguments)), calls[-1])[1])
    expected, out, residual = np.full((3, 1, maps, *g.windows.out), np.nan, dtype)
    residual[...] = random.standard_normal(residual.shape)
    for after in (After(), After(random.standard_normal(maps).astype(dtype), rectify=True), After(residual=residual)):
        correlation.bound_correlation(Context(backend_named("numpy"), training=False), expected, filters, image, g, after)()
        call = correlation.bound_correlation(unchanging, out, filters, image, g, after)
        assert [found is None for found in calls[-2:]] == [True, False]
        for _ in range(2):
            call()
            np.testing.assert_array_equal(out, expected)


def test_where_filters_fill_vectors_better() -> None:
    def fits(channels: int, maps: int, size: int, stride: int = 1, groups: int = 1) -> bool:
        g = geometry(maps, (channels // groups, 3, 3), (channels, size, size), (1, stride, stride), (1, 1, 1), (False, True, True), groups)
        return bool(few_pixels.fits(g, correlation.plan_of_results(g, 4, 1), 4))

    assert fits(48, 64, 3)
    assert not fits(48, 33, 3)
    assert not fits(48, 64, 3, groups=2)
    assert not fits(48, 64, 56)
    assert fits(256, 256, 28, stride=2)  # whose grid is not in the cache as a whole
    assert not fits(128, 128, 56, stride=2)  # nor what some terms of the sums meet of it


def test_filters_that_change_are_packed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[Any] = []
    fill = few_pixels._fill
    monkeypatch.setattr(few_pixels, "_fill", lambda *arguments: (packed.append(arguments), fill(*arguments))[1])
    x = C.input_variable((64, 5, 5))
    w = C.parameter((64, 64, 3, 3), init=C.glorot_uniform(seed=1))
    f, image = C.relu(C.convolution(w, x, auto_padding=(False, False, False))), np.random.default_rng(1).random((1, 64, 5, 5), np.float32)
    call = f.bind(image.shape)
    before = np.array(call(image))
    assert len(packed) == 1
    w.value = 2 * w.value
    np.testing.assert_array_equal(call(image), 2 * before)
    assert len(packed) == 2
    np.testing.assert_array_equal(f.eval({x: image}), 2 * before)
    np.testing.assert_allclose(f.eval({x: np.repeat(image, 40, 0)}), np.repeat(2 * before, 40, 0), rtol=1e-4, atol=1e-5)
