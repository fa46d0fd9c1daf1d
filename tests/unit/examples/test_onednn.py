"""The example package that computes convolutions by oneDNN: the same as the operator, where the library is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common import threads
from cntk.core.common.windows import correlation
from cntk.core.extension import plugins
from cntk.testing import assert_close

SOURCES = Path(__file__).resolve().parents[3] / "examples" / "onednn" / "src"
sys.path.append(str(SOURCES))

import cntk_onednn  # noqa: E402
from cntk_onednn import convolution, library  # noqa: E402

PLACE, PLUGIN = convolution.PLACE, "onednn of the tests"
NEEDS_LIBRARY = pytest.mark.skipif(library.find() is None, reason=f"oneDNN is not installed; {library.HOW_TO_FIX}")


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The plugin, for small images in place of large ones; on one thread, as several wait long for one another where others compute."""
    plugins.register_plugin(cntk_onednn, PLUGIN)
    monkeypatch.setattr(convolution, "is_fast", lambda g, rows: rows > 0)
    threads.set_max_threads(1)
    yield
    plugins.unregister_plugin(PLUGIN)


@pytest.fixture
def asked(plugin: None, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The answers to whether the library can do what is asked for."""
    answers: list[bool] = []
    is_possible = convolution.is_possible

    def noted(*arguments: Any) -> bool:
        answers.append(is_possible(*arguments))
        return answers[-1]

    monkeypatch.setattr(convolution, "is_possible", noted)
    return answers


class Case:
    """A convolution with small integers as data, so that sums are exact."""

    def __init__(self, make: Callable[..., Any], filters: Any, images: Any, dtype: Any = np.float32, lengths: Any = None) -> None:
        random = np.random.default_rng(1)
        self.x = (C.input_variable if lengths is None else C.sequence.input_variable)(images[1:], dtype, needs_gradient=True)
        self.filters = C.parameter(init=random.integers(-3, 4, size=filters).astype(dtype), dtype=dtype)
        self.make = make
        values = random.integers(-3, 4, size=images).astype(dtype)
        self.data = values if lengths is None else np.split(values, np.cumsum(lengths)[:-1])

    def compute(self) -> list[Any]:
        """The result, and the gradients of its weighted sum."""
        result = self.make(self.filters, self.x)
        weights = C.constant(np.random.default_rng(2).integers(-3, 4, size=result.shape).astype(result.dtype))
        gradients = C.element_times(result, weights).grad({self.x: self.data}, wrt=[self.x, self.filters])
        found = [result.eval({self.x: self.data}), *gradients.values()]
        return [np.concatenate(array) if isinstance(array, list) else array for array in found]


def agree(case: Case) -> None:
    """Compare with what there is without the plugin."""
    found = case.compute()
    plugins.unregister_plugin(PLUGIN)
    for array, expected in zip(found, case.compute(), strict=True):
        assert_close(array, expected)


def strided(**options: Any) -> Callable[..., Any]:
    return lambda filters, x: C.convolution(filters, x, **options)


CASES = [
    pytest.param(*case, id="-".join(map(str, case)))
    for case in product(((9,), (8, 7), (6, 7, 5)), (1, 2, 3), (1, 2), (1, 2), (1, 2), (False, True))
    if (case[1] - 1) * case[3] < min(case[0])
]


@NEEDS_LIBRARY
@pytest.mark.parametrize(("dims", "kernel", "stride", "dilation", "groups", "padded"), CASES)
def test_convolution_agrees_with_the_operator(
    dims: tuple[int, ...], kernel: int, stride: int, dilation: int, groups: int, padded: bool, asked: list[bool]
) -> None:
    rank = len(dims)
    options = {"strides": stride, "dilation": (1, *[dilation] * rank), "auto_padding": (False, *[padded] * rank), "groups": groups}
    agree(Case(strided(**options), (20, 6 // groups, *[kernel] * rank), (5, 6, *dims)))
    assert all(asked)
    assert asked


SPATIAL = (False, True, True)
OTHERS = {
    "blocks of channels": Case(strided(auto_padding=SPATIAL), (32, 48, 3, 3), (5, 48, 7, 6)),
    "one row": Case(strided(auto_padding=SPATIAL), (8, 3, 5, 5), (1, 3, 20, 17)),
    "one channel": Case(strided(auto_padding=SPATIAL), (17, 1, 5, 5), (4, 1, 12, 12)),
    "a group for each channel": Case(strided(auto_padding=SPATIAL, groups=6), (12, 1, 3, 3), (9, 6, 9, 9)),
    "oblong filters and strides": Case(strided(auto_padding=SPATIAL, strides=(1, 2, 1)), (16, 16, 3, 2), (4, 16, 9, 10)),
    "over channels": Case(strided(), (2, 2, 2, 2), (9, 3, 6, 6)),
    "without channels": Case(lambda w, x: C.convolution(w, x, reduction_rank=0), (4, 3, 3), (9, 8, 7)),
    "transposed": Case(lambda w, x: C.convolution_transpose(w, x, strides=2, auto_padding=[False]), (3, 4, 3, 3), (9, 3, 7, 6)),
    "sequential": Case(strided(sequential=True, auto_padding=(False, True, True)), (4, 3, 2, 3), (30, 3, 8), lengths=(10, 3, 17)),
}  # fmt: skip


@NEEDS_LIBRARY
@pytest.mark.parametrize("name", OTHERS)
def test_other_convolutions_agree_with_the_operator(name: str, asked: list[bool]) -> None:
    agree(OTHERS[name])
    assert any(asked)


LEFT = {
    "float64": Case(strided(auto_padding=SPATIAL), (8, 4, 3, 3), (5, 4, 8, 8), np.float64),
    "float16": Case(strided(auto_padding=SPATIAL), (8, 4, 3, 3), (5, 4, 8, 8), np.float16),
    "four axes": Case(lambda w, x: C.convolution(w, x, reduction_rank=0, auto_padding=[False]), (2, 2, 1, 2, 2), (9, 3, 3, 4, 5)),
    "windows that leave out elements": Case(strided(auto_padding=SPATIAL, strides=4), (4, 3, 2, 2), (9, 3, 16, 13)),
}


@NEEDS_LIBRARY
@pytest.mark.parametrize("name", LEFT)
def test_what_the_library_cannot_do_is_left_to_others(name: str, asked: list[bool]) -> None:
    agree(LEFT[name])
    assert asked
    assert not any(asked)


@NEEDS_LIBRARY
def test_the_operator_computes_where_no_other_kernel_does(asked: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins.kernels, "behind", lambda place, kernel: None)
    agree(LEFT["float64"])
    assert not any(asked)


@pytest.mark.parametrize(
    ("rows", "channels", "maps", "dims", "groups", "size", "stride", "expected"),
    [
        (64, 16, 16, (32, 32), 1, 5, 1, True),
        (1, 16, 16, (32, 32), 1, 5, 1, False),
        (64, 3, 16, (32, 32), 1, 5, 1, False),
        (64, 20, 20, (32, 32), 1, 5, 1, False),
        (64, 48, 60, (32, 32), 1, 5, 1, True),
        (64, 48, 60, (32, 32), 1, 3, 2, True),
        (64, 48, 60, (32, 32), 1, 3, 1, False),
        (64, 64, 64, (32, 32), 4, 3, 1, True),
        (64, 64, 64, (32, 32), 8, 3, 1, False),
        (64, 64, 64, (32, 32), 64, 3, 1, True),
        (64, 8, 8, (100, 100), 8, 3, 1, False),
        (64, 64, 64, (10, 10, 10), 64, 3, 1, False),
    ],
)
def test_where_the_library_is_used(
    rows: int, channels: int, maps: int, dims: tuple[int, ...], groups: int, size: int, stride: int, expected: bool
) -> None:
    rank = len(dims)
    ones, strides, padding = (1,) * (rank + 1), (1, *[stride] * rank), (False, *[True] * rank)
    g = correlation(maps, (channels // groups, *[size] * rank), (channels, *dims), strides, ones, padding, groups)
    assert convolution.is_fast(g, rows) == expected


@NEEDS_LIBRARY
def test_small_calls_are_left_to_others(plugin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    case = OTHERS["blocks of channels"]
    monkeypatch.setattr(convolution, "is_fast", lambda g, rows: False)
    for function in ("correlate", "correlate_backward"):
        monkeypatch.setattr(f"cntk_onednn.correlation.{function}", lambda *_: pytest.fail("the library is used"))
    agree(case)


@NEEDS_LIBRARY
def test_bits_are_the_same_from_call_to_call(plugin: None) -> None:
    threads.set_max_threads(2)
    case = OTHERS["blocks of channels"]
    random = np.random.default_rng(3)
    case = Case(case.make, (32, 48, 3, 3), (5, 48, 7, 6))
    case.data, case.filters.value = random.normal(size=case.data.shape).astype(np.float32), random.normal(size=case.filters.shape)
    first = case.compute()
    for _ in range(3):
        assert [array.tobytes() for array in case.compute()] == [array.tobytes() for array in first]


@NEEDS_LIBRARY
@pytest.mark.parametrize("number", [2, 3])
def test_any_number_of_threads(plugin: None, number: int) -> None:
    threads.set_max_threads(number)
    agree(OTHERS["blocks of channels"])


@NEEDS_LIBRARY
def test_callers_in_several_threads(plugin: None) -> None:
    case = OTHERS["blocks of channels"]
    expected = case.compute()
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: case.compute(), range(12)):
            for array, wanted in zip(found, expected, strict=True):
                assert_close(array, wanted)


@NEEDS_LIBRARY
def test_nothing_grows_from_step_to_step(plugin: None) -> None:
    case = OTHERS["blocks of channels"]
    result = case.make(case.filters, case.x)
    for _ in range(3):
        result.grad({case.x: case.data}, wrt=[case.x, case.filters])
    tracemalloc.start()
    try:
        result.grad({case.x: case.data}, wrt=[case.x, case.filters])
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(5):
            result.grad({case.x: case.data}, wrt=[case.x, case.filters])
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000


def test_nothing_is_registered_where_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cntk_onednn, "find", lambda: None)
    before = plugins.kernels.get(PLACE) if PLACE in plugins.kernels else None
    plugins.register_plugin(cntk_onednn, PLUGIN)
    try:
        assert (plugins.kernels.get(PLACE) if PLACE in plugins.kernels else None) is before
    finally:
        plugins.unregister_plugin(PLUGIN)


def test_a_variable_that_names_no_file_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.VARIABLE, "/nowhere/libdnnl.so.3")
    with pytest.raises(FileNotFoundError, match=r"CNTK_ONEDNN=/nowhere/libdnnl.so.3 is not a file; install it with: pip install"):
        plugins.register_plugin(cntk_onednn, PLUGIN)
    assert not plugins.manager.has_plugin(PLUGIN)


@pytest.mark.parametrize(
    ("name", "message"),
    [(None, "is not to be found; install it with"), ("libnosuch.so.3", "cannot be loaded: libnosuch"), ("libc.so.6", "is no oneDNN")],
)
def test_a_library_that_cannot_be_used_is_an_error(name: str | None, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "find", lambda: name)
    with pytest.raises(library.OneDNNError, match=message):
        library.load.__wrapped__()


@NEEDS_LIBRARY
def test_what_the_library_refuses_is_an_error(plugin: None) -> None:
    known = library.load()
    with pytest.raises(library.OneDNNError, match="dnnl_engine_create failed: invalid arguments"):
        library.created(known.dnnl_engine_create, library.CPU, 5)


def run(program: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCES), *sys.path])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@NEEDS_LIBRARY
def test_a_small_network_does_not_load_the_library() -> None:
    program = """
import numpy as np, cntk as C, cntk_onednn
from cntk.core.extension import plugins
plugins.register_plugin(cntk_onednn, "onednn")
x = C.input_variable((16, 8, 8))
z = C.layers.Convolution2D((3, 3), 16, pad=True)(x)
z.eval({x: np.ones((2, 16, 8, 8), np.float32)})
print(any("dnnl" in line for line in open("/proc/self/maps")))
"""
    assert run(program).split() == ["False"]


@NEEDS_LIBRARY
def test_a_forked_process_computes_the_same() -> None:
    program = """
import os
import numpy as np, cntk as C, cntk_onednn
from cntk.core.common import threads
from cntk.core.extension import plugins
from cntk.core.common.windows import correlation
plugins.register_plugin(cntk_onednn, "onednn")
threads.set_max_threads(2)
x = C.input_variable((16, 40, 40))
z = C.layers.Convolution2D((5, 5), 16, pad=True)(x)
data = np.random.default_rng(0).normal(size=(32, 16, 40, 40)).astype(np.float32)
before = z.eval({x: data})
print(any("dnnl" in line for line in open("/proc/self/maps")), flush=True)
child = os.fork()
if child == 0:
    os._exit(0 if np.allclose(z.eval({x: data}), before, atol=1e-5) else 1)
print(os.waitpid(child, 0)[1])
"""
    assert run(program).split() == ["True", "0"]
