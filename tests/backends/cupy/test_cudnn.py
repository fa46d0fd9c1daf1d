"""cuDNN: what is made of it and goes again, the space that calls share, and what cuDNN itself plans for the graphs of kernels."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from standin import cudnn as standins
from standin.cudnn import Cudnn as StandIn
from standin.host_backend import STREAM, HostArray, HostBackend, with_libraries

import cntk as C
from cntk.backends.cupy import libraries
from cntk.backends.cupy.cudnn import Convolution, Cudnn, Direction, Each, Graph, Kind, Pointwise, tensor_of

TESTS = Path(__file__).resolve().parents[2]


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    with with_libraries(monkeypatch, cudnn=made):
        yield made


@pytest.fixture
def library(standin: StandIn) -> Cudnn:
    return Cudnn(libraries.load(libraries.CUDNN), HostBackend())


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32).view(HostArray)


def summing(*arrays: Any) -> Graph:
    """The sum of two arrays, in a third."""
    return Graph(tuple(map(tensor_of, arrays)), (Each(Pointwise.ADD, 0, 1, 2),), "float32")


def test_a_graph_is_executed_on_the_current_stream_with_what_the_arrays_hold_then(library: Cudnn, standin: StandIn) -> None:
    arrays = [numbers(2, 3, 4, 1, seed=seed) for seed in range(3)]
    call = library.bound(summing(*arrays), arrays)
    assert call is not None
    for factor in 1, 2:
        arrays[0] *= factor
        call()
        np.testing.assert_array_equal(arrays[2], arrays[0] + arrays[1])
    assert standin.streams == [STREAM] * 2


def test_graphs_that_are_alike_have_one_plan(library: Cudnn, standin: StandIn) -> None:
    kept = [[numbers(2, 3, 64, 64, seed=seed) for seed in range(3)] for _ in range(3)]
    for arrays in kept:
        assert library.bound(summing(*arrays), arrays) is not None
    alignments = {tuple(tensor.aligned for tensor in summing(*arrays).tensors) for arrays in kept}
    assert [kind for kind, _ in standin.named("cudnnBackendCreateDescriptor")].count(Kind.EXECUTION_PLAN) == len(alignments)


def test_all_calls_share_one_space(library: Cudnn) -> None:
    small = library.space(10)
    large = library.space(1000)
    assert large.nbytes >= 1000 > small.nbytes
    assert library.space(10) is library.space(1000) is large


def test_plans_that_need_too_much_space_are_passed_over(standin: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standins, "WORKSPACE", 1 << 40)
    library = Cudnn(libraries.load(libraries.CUDNN), HostBackend())
    arrays = [numbers(2, 3, 4, 1) for _ in range(3)]
    assert library.bound(summing(*arrays), arrays) is None


def test_what_is_made_goes_with_those_who_use_it(standin: StandIn) -> None:
    library: Cudnn | None = Cudnn(libraries.load(libraries.CUDNN), HostBackend())
    assert library is not None
    arrays = [numbers(2, 3, 4, 1) for _ in range(3)]
    call = library.bound(summing(*arrays), arrays)
    made = sum(what is not None for what in standin.objects.values())
    call = None
    gc.collect()
    assert sum(what is not None for what in standin.objects.values()) == made - 1, call
    library = None
    gc.collect()
    assert all(what is None for what in standin.objects.values())


def convolving(w: Any, x: Any, y: Any, direction: Direction = Direction.RESULT) -> Graph:
    """A convolution with filters of 3 x 3 weights, or a gradient of it."""
    pairs = (1, 1), (1, 1), (1, 1), (1, 1)
    return Graph(tuple(map(tensor_of, (x, w, y))), (Convolution(direction, 0, 1, 2, *pairs),), "float32")


def halves(*shape: int, seed: int = 0) -> Any:
    """An array aligned as well as may be, of a type for which two engines are acceptable: 2, and 3 after it."""
    made = HostBackend().view(HostBackend().allocate(2 * int(np.prod(shape)) + 64), 0, shape, np.float16)
    made[...] = numbers(*shape, seed=seed)
    return made


@pytest.mark.parametrize("direction", Direction)
def test_the_fastest_engine_is_taken_if_that_is_asked_for(
    library: Cudnn, standin: StandIn, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    durations = {2: 3.0, 3: 2.0}

    def duration(self: Any, call: Any) -> float:
        call()
        return durations[standin.executed[-1][0]]

    monkeypatch.setattr(HostBackend, "duration", duration)
    w, x, y = arrays = halves(4, 3, 3, 3), halves(2, 3, 6, 5, seed=1), halves(2, 4, 6, 5, seed=2)
    before = [array.copy() for array in arrays]
    graph = convolving(*arrays, direction)

    def executed() -> list[int]:
        standin.executed.clear()
        call = library.bound(graph, [x, w, y])
        assert call is not None
        call()
        return [engine for engine, _ in standin.executed]

    assert executed() == [2]
    for array, value in zip(arrays, before, strict=True):
        array[...] = value
    C.device.set_benchmark(True)
    assert library.bound(graph, [x, w, y]) is not None
    assert [engine for engine, _ in standin.executed] == [2, 2, 3]
    for array, value in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, value)
    assert executed() == [3]  # graphs that are alike are timed once
    durations[2] = 1.0
    assert executed() == [3]
    C.cntk_py.force_deterministic_algorithms()
    assert executed() == [2]


def test_nothing_is_timed_while_work_is_recorded(library: Cudnn, standin: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    C.device.set_benchmark(True)
    w, x, y = arrays = halves(4, 3, 3, 3), halves(2, 3, 6, 5), halves(2, 4, 6, 5)
    with monkeypatch.context() as patched:
        patched.setattr(HostBackend, "is_recording", True)
        assert library.bound(convolving(*arrays), [x, w, y]) is not None
    assert standin.executed == []
    assert library.bound(convolving(*arrays), [x, w, y]) is not None
    assert {engine for engine, _ in standin.executed} == {2, 3}


@pytest.mark.slow
def test_cudnn_itself_has_plans_for_all_graphs_and_weights_where_they_are(tmp_path: Path) -> None:
    try:
        libraries.load(libraries.CUDNN)
    except libraries.Missing as error:
        pytest.skip(f"the library is not installed: {error}")
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    ran = subprocess.run(
        [sys.executable, "-m", "standin.planned", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("[")]
    assert len(found) > 200
    assert [name for name, *is_there in found if not all(is_there)] == []
