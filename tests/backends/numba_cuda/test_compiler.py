"""Kernels: all become code for a GPU, which nobody runs here; under the simulator turns and numbers are as they should be."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from importlib import import_module
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from recurrent_models import MODELS, gradients, sequences
from simulated import on_the_simulator

from cntk.backends import numba_cuda
from cntk.backends.numpy.times import TimesKernel
from cntk.backends.recurrences.operations import Reader
from cntk.backends.recurrences.plan import Plan, Wait
from cntk.core.machine.language import prange
from cntk.core.machine.signatures import kinds_of
from cntk.core.run.recurrence import LoopSchedule

AMPERE, HOPPER = (8, 0), (9, 0)


@pytest.fixture
def schedules(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The schedules of recurrences, as they are made."""
    made: list[Any] = []
    close = LoopSchedule.close

    def noted(schedule: Any, passing: Any) -> None:
        close(schedule, passing)
        made.append(schedule)

    monkeypatch.setattr(LoopSchedule, "close", noted)
    return made


def all_kernels() -> Iterator[Any]:
    for module in iter_modules(numba_cuda.__path__):
        if module.name != "backend":
            import_module(f"{numba_cuda.__name__}.{module.name}")
    from cntk.backends.numba_cuda.compiler import Kernel

    yield from {id(found): found for found in gc.get_objects() if issubclass(type(found), Kernel)}.values()


def ptx_of(kernel: Any, kinds: list[str], architecture: tuple[int, int] = HOPPER) -> str:
    """What the kernel becomes for arguments of some kinds."""
    import numba
    from numba import cuda

    arrays = [kind.split(":") for kind in kinds if ":" in kind]
    arguments = [numba.types.Array(numba.from_dtype(np.dtype(dtype)), int(axes), layout) for dtype, axes, layout in arrays]
    if len(arrays) < len(kinds):
        arguments.append(numba.types.Array(numba.float64, 1, "C"))
    text: str = cuda.compile_ptx(kernel.launcher.py_func, tuple(arguments), cc=architecture)[0]
    return text


def test_every_kernel_becomes_code_for_a_gpu(no_driver: None) -> None:
    kernels = list(all_kernels())
    assert len(kernels) > 20
    for kernel in kernels:
        for is_double in (False, True):
            text = ptx_of(kernel, kinds_of(kernel.signature, is_double))
            assert ".visible .entry" in text
            assert "atom" not in text, f"{kernel.body.__qualname__} depends on the order in which threads come"


def test_random_numbers_of_half_precision_become_code_for_a_gpu(no_driver: None) -> None:
    from cntk.backends.numba_cuda.random import HALVES_KERNEL

    kinds = [kind.replace("<f4", "<f2") for kind in kinds_of(HALVES_KERNEL.signature, False)]
    assert "cvt.rn.f16.f32" in ptx_of(HALVES_KERNEL, kinds)


def test_products_with_parts_of_matrices_become_code_for_a_gpu(no_driver: None) -> None:
    from cntk.backends.numba_cuda.csr import MULTIPLY

    kinds = [kind.replace("<i4", "<i8").replace(":2:C", ":2:A") for kind in kinds_of(MULTIPLY.signature, False)]
    assert ".visible .entry" in ptx_of(MULTIPLY, kinds)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype", "architecture"), [("LSTM", np.float32, HOPPER), ("GRU", np.float64, AMPERE)])
def test_recurrences_become_code_for_a_gpu(no_driver: None, name: str, dtype: Any, architecture: Any, schedules: list[Any]) -> None:
    """Calls of the backend ``numpy`` are operations on rows too."""
    from cntk.backends.numba_cuda.recurrence import DTYPES
    from cntk.backends.numba_cuda.recurrence_text import kernel

    gradients(MODELS[name], sequences(3, dtype, (2, 1)), dtype)
    assert len(schedules) == 2
    for schedule in schedules:
        reader = Reader(schedule, DTYPES, TimesKernel)
        operations = [one for call in schedule.calls for one in reader.operations(call)]
        plan = Plan(operations)
        made = kernel(np.dtype(dtype), plan, plan.within(schedule.passing))
        text = ptx_of(made, kinds_of(made.signature, dtype is np.float64), architecture)
        assert ".visible .entry" in text
        assert text.count("bar.sync") == sum(phase.wait != Wait.NOBODY for phase in plan.phases)
        has_doubles = re.search(r"\b(add|sub|mul|fma|div|sqrt)\S*\.f64", text) is not None
        assert has_doubles is (dtype is np.float64)


def _noted(x: Any, seen: Any, count: int, factor: Any) -> None:
    for i in prange(count):
        x[i] += x.dtype.type(i) * factor
        seen[i] += 1


@on_the_simulator
@pytest.mark.parametrize("count", [1, 7, 8, 16, 17, 101])
def test_each_turn_is_one_threads(count: int) -> None:
    from cntk.backends.numba_cuda.compiler import Kernel

    x, seen = np.zeros(count, np.float32), np.zeros(count, np.int64)
    launch = Kernel(_noted, "R1 I1 q r").bound(count, x, seen)
    launch(count, 0.1)
    launch(count, 3)
    np.testing.assert_array_equal(x, np.arange(count, dtype=np.float32) * np.float32(0.1) + np.arange(count, dtype=np.float32) * 3)
    np.testing.assert_array_equal(seen, 2)


@on_the_simulator
def test_arrays_of_others_are_bound_anew() -> None:
    from cntk.backends.numba_cuda.compiler import once

    first, second = np.zeros(2), np.zeros(2)
    held = once(None, (first,), lambda: "first")
    assert once(held, (first,), lambda: "again") is held
    assert once(held, (second,), lambda: "second")[1] == "second"


def test_launches_are_on_the_stream_that_is_current_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a card would be given, of which there is none."""
    compiler = pytest.importorskip("cntk.backends.numba_cuda.compiler", reason="compiled loops are switched off", exc_type=ImportError)
    streams, launched = iter([7, 7, 0]), []

    class Dispatcher:
        def __getitem__(self, configuration: Any) -> Any:
            return lambda *arguments: launched.append((configuration, arguments))

    monkeypatch.setattr(compiler, "backend_of", lambda array: SimpleNamespace(guard=nullcontext))
    cuda = SimpleNamespace(as_cuda_array=lambda array, sync: (array, sync), external_stream=lambda address: f"stream {address}")
    monkeypatch.setattr(compiler, "SIMULATED", False)
    monkeypatch.setattr(compiler, "cuda", cuda)
    monkeypatch.setattr(compiler, "_current_stream", lambda: next(streams))
    monkeypatch.setattr(compiler, "_launcher", lambda *_: Dispatcher())
    x = np.zeros(40_000)
    launch = compiler.Kernel(_noted, "D1").bound(len(x), x)
    for _ in range(3):
        launch()
    assert [configuration for configuration, _ in launched] == [(157, 256, "stream 7")] * 2 + [(157, 256, 0)]
    assert all(argument is x and not sync for _, ((argument, sync),) in launched)


@pytest.mark.parametrize(("turns", "of_a_block", "blocks"), [(1, 256, 128), (129 * 256, 256, 129), (150, 1, 150), (10**9, 1, 2048)])
def test_grids_are_as_large_as_there_is_to_do(turns: int, of_a_block: int, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = pytest.importorskip("cntk.backends.numba_cuda.compiler", reason="compiled loops are switched off", exc_type=ImportError)
    monkeypatch.setattr(compiler, "SIMULATED", False)
    assert compiler._grid(turns, of_a_block) == (blocks, 256)


@on_the_simulator
def test_threads_may_launch_at_the_same_time() -> None:
    from cntk.backends.numba_cuda.compiler import Kernel

    kernel = Kernel(_noted, "R1 I1 q r")
    arrays = [(np.zeros(count, np.float32), np.zeros(count, np.int64)) for count in (3, 40, 5, 60)]
    launches = [kernel.bound(len(x), x, seen) for x, seen in arrays]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(launch, len(x), 1) for launch, (x, _) in zip(launches, arrays, strict=True) for _ in range(3)]:
            done.result()
    assert [seen.tolist() for _, seen in arrays] == [[3] * len(x) for x, _ in arrays]
