"""How many threads share work, and loops that they share."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
prange = pytest.importorskip("cntk.core.machine.language").prange
loops = pytest.importorskip("cntk.core.machine.loops")
openmp = pytest.importorskip("cntk.core.machine.openmp")
pytestmark = pytest.mark.usefixtures("three_threads")


@pytest.fixture(scope="module")
def count() -> Any:
    """A loop that counts how often each element is gone through."""

    @loops.Loop
    def add_one(counts: Any) -> None:
        for i in prange(counts.size):
            counts[i] += 1

    return add_one


def counted(loop: Any, size: int) -> Any:
    counts = np.zeros(size, np.int64)
    loop(size, counts)
    return counts


@pytest.mark.parametrize("size", [0, 1, 100, thresholds.elements_shared, 10 * thresholds.elements_shared + 3])
@pytest.mark.parametrize("number", [1, 2, 1000])
def test_every_element_is_gone_through_once(count: Any, size: int, number: int) -> None:
    threads.set_max_threads(number)
    assert (counted(count, size) == 1).all()


def test_many_callers_at_once(count: Any) -> None:
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: counted(count, 4 * thresholds.elements_shared), range(100)):
            assert (result == 1).all()


def _in_child(loop: Any, answers: Any) -> None:
    answers.put((loops.threads_available(), (counted(loop, 4 * thresholds.elements_shared) == 1).all()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_process_does_the_work_alone(count: Any) -> None:
    counted(count, 4 * thresholds.elements_shared)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_child, args=(count, answers))
    child.start()
    shared, right = answers.get(timeout=60)
    child.join(20)
    assert (child.exitcode, shared, right) == (0, False, True)


def spins_of(environment: dict[str, str]) -> list[str]:
    """What is said to OpenMP while it is loaded, and what is left in the environment afterwards."""
    program = """
import os
from cntk.core.machine import openmp
told = []
openmp._is_loaded = lambda: False
openmp.library = lambda: told.append(os.environ.get("GOMP_SPINCOUNT"))
openmp.threads_available()
print(told, os.environ.get("GOMP_SPINCOUNT"))
"""
    inherited = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=inherited | environment)
    return done.stdout.splitlines()


def test_waiting_threads_sleep_soon_unless_the_user_says_otherwise() -> None:
    assert spins_of({}) in ([f"['{spins}'] None"] for spins in (openmp.SPINS, openmp.FEW_SPINS))
    assert spins_of({"GOMP_SPINCOUNT": "5"}) == ["['5'] 5"]
    assert spins_of({"OMP_WAIT_POLICY": "passive"}) == ["[None] None"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="OpenMP has another name here")
def test_loops_are_not_shared_by_threads_that_another_library_has_brought() -> None:
    program = """
import ctypes, sys
try:
    ctypes.CDLL("libgomp.so.1")
except OSError:
    print("no OpenMP")
    sys.exit()
from cntk.core.machine import loops
print(loops.threads_available())
"""
    answers = []
    for environment in ({}, {"GOMP_SPINCOUNT": "100"}):
        inherited = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=inherited | environment)
        answers.append(done.stdout.strip())
    assert answers in (["False", "True"], ["no OpenMP"] * 2)


def test_at_least_one_thread() -> None:
    with pytest.raises(ValueError, match="at least one thread, got 0"):
        threads.set_max_threads(0)
    assert threads.processors() >= 1
