"""Loops for convolution and pooling: the same as the operators' own methods, and the same bits whatever the number of threads."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.fused import convolution, pooling
from cntk.backends.fused.followers import After
from cntk.core.common import threads
from cntk.core.common.thresholds import NEVER, thresholds
from cntk.core.common.windows import correlation as geometry
from cntk.core.extension.device import backend_named
from cntk.core.run.evaluate import program_for
from cntk.core.types.context import Context
from cntk.testing import assert_close

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
correlation = pytest.importorskip("cntk.backends.fused.correlation")
plan = pytest.importorskip("cntk.backends.fused.plan")

pytestmark = pytest.mark.usefixtures("three_threads")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small images in place of large ones."""
    monkeypatch.setattr(thresholds, "convolution_compiled", 1)
    monkeypatch.setattr(thresholds, "pooling_compiled", 1)
    monkeypatch.setattr(thresholds, "convolution_shared", 1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The answers to whether loops are to be used."""
    answers: list[bool] = []
    for module in (convolution, pooling):
        monkeypatch.setattr(module, "is_for_loops", _noted(module.is_for_loops, answers))
    return answers


def _noted(function: Callable[..., bool], answers: list[bool]) -> Callable[..., bool]:
    def noted(*arguments: Any, **more: Any) -> bool:
        answers.append(function(*arguments, **more))
        return answers[-1]

    return noted


class Case:
    """A function of images, and of filters if their shape is given, with small integers as data, so that sums are exact."""

    def __init__(self, make: Callable[..., Any], filters: Any, images: Any, dtype: Any = np.float32, sequences: Any = None) -> None:
        random = np.random.default_rng(1)
        shape = images[1:]
        self.x = (C.input_variable if sequences is None else C.sequence.input_variable)(shape, dtype, needs_gradient=True)
        self.parameters = [] if filters is None else [C.parameter(init=random.integers(-3, 4, size=filters).astype(dtype), dtype=dtype)]
        self.result = make(*self.parameters, self.x)
        weights = C.constant(random.integers(-3, 4, size=self.result.shape).astype(dtype))
        self.weighted = C.element_times(self.result, weights)
        values = random.integers(-3, 4, size=images).astype(dtype)
        self.data = values if sequences is None else np.split(values, np.cumsum(sequences)[:-1])

    def compute(self) -> list[Any]:
        """The result, and the gradients of its weighted sum."""
        by = [self.x, *self.parameters]
        gradients = self.weighted.grad({self.x: self.data}, wrt=by)
        found = [self.result.eval({self.x: self.data}), *(gradients.values() if len(by) > 1 else [gradients])]
        return [np.concatenate(array) if isinstance(array, list) else array for array in found]


def agree(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with the operators' own methods."""
    fused = case.compute()
    for name in ("convolution_compiled", "pooling_compiled"):
        monkeypatch.setattr(thresholds, name, NEVER)
    for function in (case.result, case.weighted):
        del function.__dict__["_programs"]  # which are bound to the loops
    for found, expected in zip(fused, case.compute(), strict=True):
        assert_close(found, expected)


def strided(**options: Any) -> Callable[..., Any]:
    return lambda map_, x: C.convolution(map_, x, **options)


CASES = [
    pytest.param(*case, id="-".join(map(str, case)))
    for case in product(((9,), (8, 7), (6, 7, 5)), (1, 2, 3), (1, 2, 3), (1, 2), (1, 2), (False, True))
    if (case[1] - 1) * case[3] < min(case[0])
]


@pytest.mark.parametrize(("dims", "kernel", "stride", "dilation", "groups", "padded"), CASES)
def test_convolution_agrees_with_the_operator(
    dims: tuple[int, ...], kernel: int, stride: int, dilation: int, groups: int, padded: bool,
    asked: list[bool], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    rank = len(dims)
    options = {"strides": stride, "dilation": (1, *[dilation] * rank), "auto_padding": (False, *[padded] * rank), "groups": groups}
    case = Case(strided(**options), (4, 6 // groups, *[kernel] * rank), (19, 6, *dims), np.float64)
    agree(case, monkeypatch)
    assert asked[0]


SPATIAL = (False, True, True)
OTHERS = {
    "one row": Case(strided(auto_padding=SPATIAL), (8, 3, 5, 5), (1, 3, 40, 37)),
    "few rows": Case(strided(auto_padding=SPATIAL), (8, 3, 5, 5), (5, 3, 24, 22)),
    "many rows": Case(strided(auto_padding=SPATIAL), (8, 3, 3, 3), (300, 3, 5, 4)),
    "lines of an image at a time": Case(strided(auto_padding=SPATIAL, strides=2), (5, 40, 3, 3), (9, 40, 61, 60)),
    "large filters": Case(strided(auto_padding=[False]), (70, 130, 3, 3), (17, 130, 5, 5)),
    "an image as it is": Case(strided(auto_padding=[False]), (7, 30, 1, 1), (8, 30, 25, 30)),
    "an image as it is, in groups": Case(strided(auto_padding=[False], groups=3), (9, 10, 1, 1), (8, 30, 25, 30)),
    "a group for each channel": Case(strided(auto_padding=SPATIAL, groups=6), (12, 1, 3, 3), (20, 6, 9, 9)),
    "windows that leave out elements": Case(strided(auto_padding=SPATIAL, strides=4), (4, 3, 2, 2), (20, 3, 14, 13)),
    "over channels": Case(strided(), (2, 2, 2, 2), (20, 3, 6, 6)),
    "without channels": Case(lambda w, x: C.convolution(w, x, reduction_rank=0), (4, 3, 3), (20, 8, 7)),
    "four axes": Case(lambda w, x: C.convolution(w, x, reduction_rank=0, auto_padding=[False]), (2, 2, 1, 2, 2), (20, 3, 3, 4, 5)),
    "transposed": Case(lambda w, x: C.convolution_transpose(w, x, strides=2, auto_padding=[False]), (3, 4, 3, 3), (20, 3, 7, 6)),
    "sequential": Case(
        strided(sequential=True, auto_padding=(False, True, True)), (4, 3, 2, 3), (30, 3, 8), sequences=(10, 3, 17)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_convolutions_agree_with_the_operator(name: str, asked: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    agree(OTHERS[name], monkeypatch)
    assert any(asked)


POOLS = [
    pytest.param(*case, id="-".join(map(str, case)))
    for case in product(
        (C.MAX_POOLING, C.AVG_POOLING), ((9,), (8, 7), (5, 6, 7)), (1, 2, 3), (1, 2, 3), (False, True), (False, True), (False, True)
    )
]


@pytest.mark.parametrize(("kind", "dims", "window", "stride", "padded", "ceil", "include_pad"), POOLS)
def test_pooling_agrees_with_the_operator(
    kind: int, dims: tuple[int, ...], window: int, stride: int, padded: bool, ceil: bool, include_pad: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(x: Any) -> Any:
        return C.pooling(x, kind, (window,) * len(dims), stride, [padded], ceil, include_pad)

    agree(Case(make, None, (5, 2, *dims), np.float64), monkeypatch)
    if kind == C.MAX_POOLING:
        monkeypatch.setattr(thresholds, "pooling_compiled", 1)
        agree(Case(lambda x: C.relu(make(x)), None, (5, 2, *dims), np.float32), monkeypatch)


def test_pooling_takes_the_first_of_equal_maxima_and_passes_nan_on(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(lambda x: C.pooling(x, C.MAX_POOLING, (3, 3), 2, [True]), None, (20, 3, 9, 9))
    agree(case, monkeypatch)
    monkeypatch.setattr(thresholds, "pooling_compiled", 1)
    case.data[0, 0, 4, 4] = np.nan
    case.data[1] = -np.inf
    assert np.isnan(case.compute()[0][0, 0]).sum() == 1
    assert np.all(case.compute()[0][1] == -np.inf)
    cut = C.relu(case.result).eval({case.x: case.data})
    assert np.isnan(cut[0, 0]).sum() == 1
    assert np.all(cut[1] == 0)


def network(dtype: Any = np.float32) -> Case:
    def make(map_: Any, x: Any) -> Any:
        hidden = C.pooling(C.convolution(map_, x, auto_padding=SPATIAL), C.MAX_POOLING, (3, 3), 2)
        return C.pooling(hidden, C.AVG_POOLING, (2, 2), 1)

    return Case(make, (9, 4, 3, 3), (37, 4, 20, 19), dtype)


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    found = []
    for number in (1, 2, 3):
        threads.set_max_threads(number)
        found.append([array.tobytes() for array in network().compute()])
    assert found[0] == found[1] == found[2]


def test_half_precision_is_left_to_the_operators(asked: list[bool]) -> None:
    network(np.float16).compute()
    assert asked
    assert not any(asked)


def test_images_that_are_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    case = network()
    case.data.setflags(write=False)
    agree(case, monkeypatch)


def test_nothing_grows_from_step_to_step() -> None:
    case = network()
    for _ in range(3):
        case.compute()
    tracemalloc.start()
    try:
        case.compute()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(5):
            case.compute()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_small_networks_do_not_import_numba() -> None:
    program = """
import sys
import numpy as np, cntk as C
x = C.input_variable((1, 6, 6))
z = C.layers.MaxPooling((2, 2), strides=2)(C.layers.Convolution2D((3, 3), 4, pad=True)(x))
z.eval({x: np.ones((2, 1, 6, 6), np.float32)})
print("llvmlite" in sys.modules)
"""
    assert run(program).split() == ["False"]


def test_a_forked_process_computes_the_same() -> None:
    program = """
import os
import numpy as np, cntk as C
x = C.input_variable((3, 40, 40))
z = C.layers.MaxPooling((3, 3), strides=2)(C.layers.Convolution2D((3, 3), 16, pad=True)(x))
data = np.random.default_rng(0).normal(size=(32, 3, 40, 40)).astype(np.float32)
before = z.eval({x: data})
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(z.eval({x: data}), before) else 1)
print(os.waitpid(child, 0)[1])
"""
    assert run(program).split() == ["0"]


BIASES = {
    "bias and rectifier": lambda y, b: C.relu(C.plus(y, b)),
    "rectifier": lambda y, b: C.relu(y),
    "bias": lambda y, b: C.plus(b, y),
    "two biases": lambda y, b: C.relu(C.plus(C.plus(y, b), b)),
}


@pytest.mark.parametrize("least", [1, NEVER], ids=["gradients in loops", "gradients in NumPy"])
@pytest.mark.parametrize("options", [{"auto_padding": SPATIAL}, {"auto_padding": SPATIAL, "strides": 2}, {}], ids=str)
@pytest.mark.parametrize("name", BIASES)
def test_what_follows_is_done_with_the_convolution(name: str, options: dict[str, Any], least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "product_cut", least)
    random = np.random.default_rng(4)
    maps = 6 if options else 6 * 3  # without options filters slide over the channels, too
    bias = C.parameter(init=random.normal(size=(maps, 1, 1)).astype(np.float32))
    filters = C.parameter(init=random.normal(size=(6, 3, 3, 3)).astype(np.float32))
    x = C.input_variable((3, 12, 11), needs_gradient=True)
    z = BIASES[name](C.convolution(filters, x, **options), bias)
    images = random.normal(size=(9, 3, 12, 11)).astype(np.float32)
    by = [x, *z.parameters]
    fused = [z.eval({x: images}), *z.grad({x: images}, wrt=by).values()]
    C.debugging.set_passes([])
    try:
        plain = [z.eval({x: images}), *z.grad({x: images}, wrt=by).values()]
    finally:
        C.debugging.set_passes(None)
    for found, expected in zip(fused, plain, strict=True):
        assert_close(found, expected)
    assert np.array_equal(fused[0], plain[0])


def test_not_a_number_goes_through_a_rectifier() -> None:
    x = C.input_variable((1, 8, 8))
    z = C.relu(C.convolution(C.constant(np.ones((2, 1, 1, 1), np.float32)), x, auto_padding=SPATIAL))
    images = np.ones((8, 1, 8, 8), np.float32)
    images[3, 0, 4, 5] = np.nan
    assert np.argwhere(np.isnan(z.eval({x: images}))).tolist() == [[3, 0, 4, 5], [3, 1, 4, 5]]


def test_a_rectifier_behind_maxima_sends_back_what_is_positive() -> None:
    random = np.random.default_rng(5)
    x = C.input_variable((3, 9, 8), needs_gradient=True)
    z = C.relu(C.pooling(x, C.MAX_POOLING, (3, 2), 2))
    weights = C.constant(random.normal(size=z.shape).astype(np.float32))
    images = (random.normal(size=(7, 3, 9, 8)) - 1.2).astype(np.float32)
    assert [i.op.op_name for i in program_for(z, z.outputs).instructions] == ["Pooling"]
    fused = (z * weights).grad({x: images})
    C.debugging.set_passes([])
    try:
        plain = (z * weights).grad({x: images})
        pooled = z.eval({x: images})
    finally:
        C.debugging.set_passes(None)
    assert 0 < (pooled > 0).sum() < pooled.size
    np.testing.assert_array_equal(fused, plain)


@pytest.mark.parametrize("is_bound", [False, True])
def test_more_threads_share_what_was_bound_for_fewer(is_bound: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "convolution_compiled", 0)
    monkeypatch.setattr(thresholds, "convolution_shared", 0)
    pool, asked = pytest.importorskip("cntk.core.machine.pool").pool(), []
    monkeypatch.setattr(pool, "shared", lambda *arguments, share=pool.shared: asked.append(arguments[-1]) or share(*arguments))
    x = C.input_variable((3, 9, 9))
    f, data = C.layers.Convolution2D((3, 3), 4)(x), np.random.default_rng(4).random((8, 3, 9, 9), np.float32)
    threads.set_max_threads(1)
    call = f.bind(data.shape) if is_bound else lambda data: f.eval({x: data})
    before = np.array(call(data))
    assert not asked
    for number in (3, 2):
        threads.set_max_threads(number)
        np.testing.assert_array_equal(call(data), before)
        assert asked[-1] == number


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("size", "kernel", "strides"), [((5, 5), (3, 3), (1, 1)), ((20, 33), (3, 5), (1, 1)), ((7, 7), (3, 3), (2, 2))])
def test_threads_share_the_filters_of_one_image(
    size: Any, kernel: Any, strides: Any, groups: int, dtype: Any, monkeypatch: pytest.MonkeyPatch, bytes_with_an_end: Callable[[int], Any]
) -> None:
    monkeypatch.setattr(thresholds, "convolution_shared", 0)
    random, maps, channels = np.random.default_rng(7), 50, 6
    g = geometry(maps, (channels // groups, *kernel), (channels, *size), (1, *strides), (1, 1, 1), (False, True, True), groups)
    images, filters = random.standard_normal((1, channels, *size)), random.standard_normal((maps, channels // groups, *kernel))
    images, filters, bias = images.astype(dtype), filters.astype(dtype), random.standard_normal(maps).astype(dtype)
    found = []
    for number in (1, 3):
        threads.set_max_threads(number)
        shape = (1, maps, *g.windows.out)
        out = bytes_with_an_end(int(np.prod(shape)) * images.itemsize).view(dtype).reshape(shape)
        correlation.bound_correlation(Context(backend_named("numpy"), training=False), out, filters, images, g, After(bias, rectify=True))()
        found.append(out)
    np.testing.assert_array_equal(*found)
    alone, shared = (len(plan.plan_of_results(g, out.itemsize, 1, number).blocks) for number in (1, 40))
    assert shared > alone


@pytest.mark.parametrize("rows", [1, 3, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("size", "strides", "groups"), [((5, 6), (1, 1), 1), ((9, 21), (2, 1), 1), ((8, 7), (2, 2), 2)], ids=str)
def test_sums_of_many_terms_have_the_bits_of_others(
    size: Any, strides: Any, groups: int, dtype: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms, maps = 230 * 9, 66 * groups
    g = geometry(maps, (terms // 9, 3, 3), (terms // 9 * groups, *size), (1, *strides), (1, 1, 1), (False, True, True), groups)
    random = np.random.default_rng(rows)
    images, filters = (random.standard_normal(shape).astype(dtype) for shape in ((rows, g.channels, *size), (maps, terms // 9, 3, 3)))
    bias, found = random.standard_normal(maps).astype(dtype), []
    for least in (plan.LEAST_TERMS, NEVER):
        monkeypatch.setattr(plan, "LEAST_TERMS", least)
        plan.plan_of_results.cache_clear()
        assert (plan.plan_of_results(g, images.itemsize, rows).sizes[-1] > 0) == (least < NEVER)
        out = np.full((rows, maps, *g.windows.out), np.nan, dtype)
        correlation.correlate(Context(backend_named("numpy"), training=True), out, filters, images, g, After(bias, rectify=True))
        found.append(out)
    plan.plan_of_results.cache_clear()
    np.testing.assert_array_equal(*found)
