"""NumPy's BLAS on the threads that share loops."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
blas = pytest.importorskip("cntk.core.machine.blas")
blas_threads = pytest.importorskip("cntk.core.machine.blas_threads")

PREPARE = """
import ctypes, os, sys
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from cntk.core.machine import blas, blas_threads, pool

def results(number=0):
    random = np.random.default_rng(number)
    a, b, c = (random.standard_normal(shape) for shape in ((210, 190), (190, 230), (200, 200)))
    single = [x.astype(np.float32) for x in (a, b)]
    return [a @ b, a @ a.T, single[0] @ single[1], np.tile(a, (3, 3)) @ b[:, 0].repeat(3), np.linalg.solve(c, a[:200])]

def same(found, wanted):
    return all(np.array_equal(x, y) for x, y in zip(found, wanted, strict=True))

wanted = results()
regions = []

def share_threads(helpers=None, counting=True):
    "Let the BLAS use the threads of the pool, and count its products; with as many threads as wanted, if that is said."
    pool.share_threads = lambda threads: None
    if not pool.threads_available():
        sys.exit("loops are not shared")
    if blas.find() is None:
        sys.exit("NumPy has no OpenBLAS")
    mine = pool.pool()
    if helpers is not None:
        mine.helpers = ctypes.c_int32(helpers)
    if counting:
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
        run = kind(mine.functions["share_in_turn"])

        @kind
        def counted(call, argument, pieces, helpers):
            regions.append(pieces)
            run(call, argument, pieces, helpers)

        mine.counted = counted
        mine.functions = {**mine.functions, "share_in_turn": ctypes.cast(counted, ctypes.c_void_p).value}
    if not blas_threads.share_threads(mine):
        sys.exit("the BLAS has no use for threads")
    return mine
"""


def run(program: str, **environment: str) -> list[str]:
    """What a program prints in a process whose BLAS shares products."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS_", "OMP_", "GOMP_", "GOTO_"))}
    done = subprocess.run(
        [sys.executable, "-c", PREPARE + program],
        capture_output=True,
        text=True,
        env=inherited | {"OPENBLAS_NUM_THREADS": "2"} | environment,
        timeout=120,
    )
    if done.returncode:
        pytest.skip(done.stderr) if len(done.stderr.splitlines()) == 1 else pytest.fail(done.stderr)
    return done.stdout.split()


def test_results_do_not_depend_on_whose_threads_run_the_jobs() -> None:
    program = """
share_threads()
print(same(results(), wanted), bool(regions), set(regions))
"""
    if (os.cpu_count() or 1) > 1:
        assert run(program) == ["True", "True", "{2}"]


def test_the_blas_has_its_own_threads_where_the_pool_has_too_few() -> None:
    program = """
share_threads(helpers=0)
print(same(results(), wanted), bool(regions))
"""
    if (os.cpu_count() or 1) > 1:
        assert run(program) == ["True", "False"]


def test_products_within_a_shared_call() -> None:
    program = """
mine = share_threads()
answers = []
turn = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: answers.append(same(results(), wanted)))
regions.clear()
mine.share(turn, None, 2)
print(set(answers), len(answers) == 2 * pool.PIECES, regions)
"""
    assert run(program) == ["{True}", "True", "[]"]


def test_many_callers_at_once() -> None:
    program = """
expected = [results(number) for number in range(4)]
share_threads()
with ThreadPoolExecutor(4) as pool:
    answers = pool.map(lambda turn: same(results(turn % 4), expected[turn % 4]), range(32))
    print(all(answers))
"""
    assert run(program) == ["True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_has_the_own_threads_of_the_blas() -> None:
    program = """
share_threads()
first = same(results(), wanted)

def in_child(check):
    child = os.fork()
    if not child:
        os._exit(not check())
    return os.waitpid(child, 0)[1] == 0

def has_own():
    regions.clear()
    return same(results(), wanted) and not regions

print(first, in_child(lambda: has_own() and in_child(has_own) and has_own()), in_child(has_own), same(results(), wanted), bool(regions))
"""
    assert run(program) == ["True"] * 5


def test_processes_are_forked_between_products() -> None:
    program = """
share_threads(counting=False)  # counting takes Python's lock, which the thread that forks keeps until products under way have ended
np.linalg.solve = lambda a, b: 0  # its jobs run on threads of the BLAS in any case
wanted = results()
with ThreadPoolExecutor(3) as pool:
    answers = pool.map(lambda _: same(results(), wanted), range(30))
    for _ in range(10):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    print(all(answers))
"""
    assert run(program, PYTHONWARNINGS="ignore::DeprecationWarning") == ["True"]


@pytest.fixture
def library() -> Any:
    """NumPy's BLAS."""
    found = blas.find()
    if found is None:
        pytest.skip("NumPy has no OpenBLAS")
    return found


def test_a_blas_without_the_function_is_left_alone(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Older:
        """An OpenBLAS that lacks a function."""

        def __init__(self, lacks: str) -> None:
            self.lacks = lacks

        def __getattr__(self, name: str) -> Any:
            if self.lacks in name:
                raise AttributeError(name)
            return getattr(library.library, name)

    names = "openblas_set_threads_callback_function", "openblas_get_parallel", "openblas_get_config", "exec_blas"
    others = [None, *(library._replace(library=Older(name)) for name in names)]
    for other in others:
        monkeypatch.setattr(blas_threads, "find", lambda other=other: other)
        assert not blas_threads.share_threads.__wrapped__(None)


def test_places_for_the_own_threads_are_kept(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    most = blas_threads._most_threads(library)
    monkeypatch.setattr(blas_threads, "find", lambda: library._replace(get_threads=lambda: most // 2 + 1))
    assert not blas_threads.share_threads.__wrapped__(None)
