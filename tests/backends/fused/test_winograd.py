"""Minimal filtering: the numbers of the operators' own correlation, exactly where sums are exact, and as good ones where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.backends.fused.followers import After
from cntk.core.common import threads
from cntk.core.common.thresholds import NEVER, thresholds
from cntk.core.common.windows import Correlation
from cntk.core.common.windows import correlation as geometry
from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context
from cntk.plugins.ops import correlation as by_definition

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
winograd = pytest.importorskip("cntk.backends.fused.winograd")
tiling = pytest.importorskip("cntk.backends.fused.tiling")
patches = pytest.importorskip("cntk.backends.fused.patches")

pytestmark = pytest.mark.usefixtures("three_threads")

TYPES = [np.float32, np.float64]


def context() -> Context:
    return Context(backend_named("numpy"), training=True)


def correlation(channels: int, maps: int, dims: tuple[int, int], is_padded: bool) -> Correlation:
    return geometry(maps, (channels, 3, 3), (channels, *dims), (1, 1, 1), (1, 1, 1), (False, is_padded, is_padded), 1)


class Case:
    """Images, filters, and a gradient of results."""

    def __init__(self, rows: int, g: Correlation, dtype: Any, is_whole: bool = True) -> None:
        random = np.random.default_rng(3)

        def numbers(*shape: int) -> Any:
            return (random.integers(-3, 4, size=shape) if is_whole else random.normal(size=shape)).astype(dtype)

        self.g = g
        self.images = numbers(rows, g.channels, *g.windows.dims)
        self.filters = numbers(g.maps, g.channels, 3, 3)
        self.grad = numbers(rows, g.maps, *g.windows.out)

    def computed(self, by: Any, dtype: Any = None) -> list[Any]:
        """Results, and the gradients of filters and images."""
        images, filters, grad = (array.astype(dtype or array.dtype) for array in (self.images, self.filters, self.grad))
        found = [np.full_like(array, np.nan) for array in (grad, filters, images)]
        by.correlate(context(), found[0], filters, images, self.g)
        by.correlate_backward(context(), grad, *found[1:], filters, images, self.g)
        return found

    def agrees(self) -> None:
        for found, expected in zip(self.computed(winograd), self.computed(by_definition), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_the_matrices_are_those_of_minimal_filtering() -> None:
    a, b, g = (np.array(matrix) for matrix in (patches.A, patches.B, patches.G))
    random = np.random.default_rng(0)
    for _ in range(10):
        patch, weights = random.normal(size=(4, 4)), random.normal(size=(3, 3))
        results = a.T @ ((g @ weights @ g.T) * (b.T @ patch @ b)) @ a
        seen = np.lib.stride_tricks.sliding_window_view(patch, (3, 3))
        np.testing.assert_allclose(results, np.einsum("xyij,ij->xy", seen, weights), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 20),
    st.integers(16, 40),
    st.integers(16, 40),
    st.integers(3, 19),
    st.integers(3, 19),
    st.booleans(),
    st.sampled_from(TYPES),
)
def test_whole_numbers_are_exact(rows: int, channels: int, maps: int, height: int, width: int, is_padded: bool, dtype: Any) -> None:
    Case(rows, correlation(channels, maps, (height, width), is_padded), dtype).agrees()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize(
    ("rows", "channels", "maps", "dims"),
    [(1, 16, 16, (40, 37)), (3, 33, 17, (65, 50)), (2, 64, 16, (21, 130)), (50, 16, 24, (6, 6)), (9, 70, 130, (7, 9)), (1, 16, 16, (6, 6))],
    ids=str,
)
def test_strips_of_images_and_many_small_ones(
    rows: int, channels: int, maps: int, dims: tuple[int, int], is_padded: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(rows, correlation(channels, maps, dims, is_padded), dtype)
    case.agrees()
    for name in ("GRID_BYTES", "SUMS_BYTES", "LEAST_AT_ONCE"):
        monkeypatch.setattr(tiling, name, 8)
    tiling.tiling.cache_clear()
    case.agrees()
    tiling.tiling.cache_clear()


def test_errors_are_those_of_the_definition() -> None:
    case = Case(8, correlation(48, 32, (16, 16), True), np.float32, is_whole=False)
    from cntk.backends.fused import correlation as loops

    results = zip(case.computed(winograd), case.computed(loops), case.computed(by_definition, np.float64), strict=True)
    for (found, by_loops, exact), most in zip(results, (1.5, 4, 1.5), strict=True):
        assert np.abs(found - exact).max() < most * np.abs(by_loops - exact).max()


@pytest.mark.parametrize("dtype", TYPES)
def test_bits_do_not_depend_on_the_number_of_threads(dtype: Any) -> None:
    found = []
    for number in (1, 2, 3):
        threads.set_max_threads(number)
        found.append([array.tobytes() for array in Case(11, correlation(32, 48, (20, 20), True), dtype, is_whole=False).computed(winograd)])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_bias_and_rectifier(has_bias: bool, rectify: bool) -> None:
    case = Case(6, correlation(24, 20, (12, 11), True), np.float32)
    bias = np.arange(-9, 11, dtype=np.float32) if has_bias else None
    found, ctx = np.empty_like(case.grad), context()
    call = winograd.bound_correlation(ctx, found, case.filters, case.images, case.g, After(bias, rectify=rectify))
    plain = case.computed(by_definition)[0] + (0 if bias is None else bias[:, None, None])
    for _ in range(2):
        found[...] = np.nan
        call()
        np.testing.assert_array_equal(found, np.maximum(plain, 0) if rectify else plain)


def test_not_a_number_reaches_the_results_that_see_it() -> None:
    case = Case(4, correlation(16, 16, (12, 12), True), np.float32)
    case.images[2, 5, 6, 6] = np.nan
    out, ctx = np.empty_like(case.grad), context()
    winograd.correlate(ctx, out, case.filters, case.images, case.g, After(rectify=True))
    assert np.isnan(out[2, :, 5:8, 5:8]).all()
    assert not np.isnan(out[2, :, :4]).any()
    assert not np.isnan(out[[0, 1, 3]]).any()


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the convolutions that are asked about from now on are filtered in this way."""
    answers: list[bool] = []
    fits = winograd.fits

    def noted(*arguments: Any) -> bool:
        answers.append(fits(*arguments))
        return answers[-1]

    monkeypatch.setattr(winograd, "fits", noted)
    monkeypatch.setattr(thresholds, "convolution_compiled", 1)
    return answers


@pytest.mark.parametrize(
    ("filters", "channels", "options", "is_used"),
    [
        ((32, 16, 3, 3), 16, {}, True),
        ((32, 16, 3, 3), 16, {"strides": 2}, False),
        ((32, 16, 3, 3), 16, {"dilation": (1, 2, 2)}, False),
        ((32, 16, 3, 3), 32, {"groups": 2}, False),
        ((32, 16, 5, 5), 16, {}, False),
        ((32, 3, 3, 3), 3, {}, False),
        ((17, 17, 3, 3), 17, {}, tiling.VECTOR_BYTES < 64),
    ],
)
def test_what_it_is_used_for(filters: tuple[int, ...], channels: int, options: dict[str, Any], is_used: bool, used: list[bool]) -> None:
    x = C.input_variable((channels, 16, 16))
    z = C.convolution(C.parameter(filters, init=C.normal(1)), x, auto_padding=[False, True, True], **options)
    z.eval({x: np.ones((4, channels, 16, 16), np.float32)})
    assert used == [is_used]


@pytest.mark.parametrize("transposed", [False, True])
def test_operators_agree_with_their_own_methods(transposed: bool, used: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    x = C.input_variable((16, 13, 14), needs_gradient=True)
    filters = C.parameter(init=random.integers(-2, 3, size=(16, 32, 3, 3) if transposed else (32, 16, 3, 3)).astype(np.float32))
    operator = C.convolution_transpose if transposed else C.convolution
    z = operator(filters, x, auto_padding=[False, True, True])
    weighted = z * C.constant(random.integers(-2, 3, size=z.shape).astype(np.float32))
    data = {x: random.integers(-2, 3, size=(5, 16, 13, 14)).astype(np.float32)}
    found = [z.eval(data), *weighted.grad(data, wrt=[x, filters]).values()]
    assert used
    assert all(used)
    monkeypatch.setattr(thresholds, "convolution_compiled", NEVER)
    for function in (z, weighted):
        del function.__dict__["_programs"]  # which are bound to the loops
    for one, other in zip(found, [z.eval(data), *weighted.grad(data, wrt=[x, filters]).values()], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("rows", "maps", "is_parted"), [(1, 64, True), (1, 80, True), (2, 96, True), (1, 70, False)])
def test_threads_share_the_channels_of_few_images(
    rows: int, maps: int, is_parted: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thresholds, "winograd_shared", 0)
    g = correlation(20, maps, (6, 3), True)  # narrower than any vector
    case, found = Case(rows, g, dtype, is_whole=False), []
    for number in (1, 3):
        threads.set_max_threads(number)
        found.append(case.computed(winograd)[0])
    np.testing.assert_array_equal(*found)
    alone, shared = (len(tiling.tiling(20, maps, g.windows, dtype().itemsize, rows, number).blocks) for number in (1, 3))
    assert (alone, shared > alone) == (rows, is_parted)
