"""Threads of one work keep to processors of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("numba", reason="loops are compiled by Numba")
apart = pytest.importorskip("cntk.backends.fused.apart")

PREPARE = """
import os, sys, time, ctypes
from cntk.backends.fused import apart, openmp
if not openmp.are_shared():
    sys.exit("loops are not shared")
number = apart.thread_number(openmp.library())
seen = {}

@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def note(_):
    seen[number()] = os.sched_getaffinity(0), processor()

processor = ctypes.CDLL(None).sched_getcpu
def region():
    openmp.library().GOMP_parallel(note, None, 2, 0)
region()
first = os.getpid()
(second,) = (int(task) for task in os.listdir("/proc/self/task") if int(task) != first)
here, there, *_ = sorted(os.sched_getaffinity(0))
"""

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not say where threads run"),
    pytest.mark.skipif(hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) < 2, reason="there is one processor"),
]


def run(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PREPARE + program], capture_output=True, text=True, timeout=60)
    if done.returncode:
        pytest.skip(done.stderr) if len(done.stderr.splitlines()) == 1 else pytest.fail(done.stderr)
    return done.stdout.split()


def test_a_thread_leaves_the_processor_of_the_first() -> None:
    program = """
os.sched_setaffinity(first, {here})
os.sched_setaffinity(second, {here})
region()
met = seen[0][1] == seen[1][1] == here
os.sched_setaffinity(second, {here, there})  # it stays where it is until it has a reason to leave
places = []
for _ in range(8 * apart.MEETINGS):
    region()
    places.append(seen[1][1])
print(met, there in places, seen[1][0] == {here, there}, seen[0][0] == {here})
"""
    assert run(program) == ["True"] * 4


def test_a_thread_stays_that_may_run_nowhere_else() -> None:
    program = """
os.sched_setaffinity(first, {here})
os.sched_setaffinity(second, {here})
for _ in range(4 * apart.MEETINGS):
    region()
print(seen[1] == ({here}, here))
"""
    assert run(program) == ["True"]


def test_threads_have_their_numbers() -> None:
    assert run("print(sorted(seen))") == ["[0,", "1]"]


def test_a_system_that_does_not_tell_has_openmps_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SYSTEM", ("sched_getcpu", "no_such_function"))

    class OpenMP:
        omp_get_thread_num: Any = staticmethod(int)

    assert apart.thread_number(OpenMP) is OpenMP.omp_get_thread_num
