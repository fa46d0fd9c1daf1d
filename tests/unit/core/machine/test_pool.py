"""How many threads share work, and loops that they share."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
language = pytest.importorskip("cntk.core.machine.language")
prange, share, slot = language.prange, language.share, language.slot
loops = pytest.importorskip("cntk.core.machine.loops")
pool = pytest.importorskip("cntk.core.machine.pool")
pool_code = pytest.importorskip("cntk.core.machine.pool_code")
pytestmark = pytest.mark.usefixtures("three_threads")
needs_threads = pytest.mark.skipif(bool(pool._lacking()), reason="threads cannot share work here")


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


@pytest.mark.parametrize("is_offered", [False, True])
@pytest.mark.parametrize("helpers", [0, 1, 2])
def test_a_loop_has_another_one_shared(helpers: int, is_offered: bool) -> None:
    turns = 50

    @loops.Loop
    def add_one(counts: Any, slots: Any) -> None:
        for i in prange(len(counts)):
            counts[i] += 1
            slots[i] = slot()

    @loops.Loop
    def repeat(code: int, arguments: int, helpers: int, is_offered: bool, times: int) -> None:
        for _ in range(times):
            share(code, arguments, helpers, is_offered)

    counts, slots = np.zeros(1000, np.int64), np.full(1000, -1)
    callee = add_one.callee(counts, slots)
    repeat.run(False, callee.code, callee.arguments, min(helpers, pool.helpers_of(3)), is_offered, turns)
    assert (counts == turns).all()
    assert slots.min() >= 0
    assert slots.max() <= helpers


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


def shared(threads: int, does: Callable[[], Any] = lambda: None) -> list[tuple[int, int, int, int]]:
    """For each piece of a call that so many threads share: its number, of how many, the thread's number, and what the system calls it."""
    functions = [ctypes.CFUNCTYPE(ctypes.c_int32)(pool.pool().functions[name]) for name in ("number", "count", "slot")]
    seen: list[Any] = []

    def note(_: Any) -> None:
        does()
        seen.append((*(function() for function in functions), threading.get_native_id()))

    pool.pool().share(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(note), None, threads)
    return seen


def offered(threads: int, does: Callable[[], Any] = lambda: None) -> list[int]:
    """For each piece of a call that is offered to so many threads the number of the one that does it."""
    slot, seen = ctypes.CFUNCTYPE(ctypes.c_int32)(pool.pool().functions["slot"]), []

    def note(_: Any) -> None:
        does()
        seen.append(slot())

    run, packed = pool.pool().offered(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(note), None, threads)
    run(packed)
    return seen


@needs_threads
def test_no_thread_is_woken_for_a_call_that_comes_alone() -> None:
    for _ in range(5):
        time.sleep(0.1)  # all sleep by then
        assert offered(3) == [0]


@needs_threads
def test_threads_help_with_calls_that_follow_one_another() -> None:
    time.sleep(0.1)
    seen = [offered(3) for _ in range(2 * pool_code.IN_A_ROW)]
    assert all(call == [0] for call in seen[: pool_code.IN_A_ROW])
    seen += [offered(3) for _ in range(5000)]
    assert any(len(call) > 1 for call in seen)
    assert all(len(call) in (1, 3 * pool.OFFERED_PIECES) for call in seen)


@needs_threads
def test_nothing_is_offered_for_a_while_once_a_caller_has_waited_long() -> None:
    def wait() -> None:
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.02)

    seen: list[int] = []
    begin = time.monotonic()
    while max(seen, default=0) == 0 and time.monotonic() < begin + 30:
        seen = offered(2, wait)
    assert max(seen) == 1
    assert all(offered(2) == [0] for _ in range(100))


@needs_threads
@pytest.mark.parametrize("number", [1, 2, 5])
def test_each_piece_is_done_once(number: int) -> None:
    for _ in range(50):
        seen = shared(number)
        assert sorted(piece for piece, *_ in seen) == list(range(number * pool.PIECES))
        assert {count for _, count, *_ in seen} == {number * pool.PIECES}
        assert {slot for *_, slot, _ in seen} <= set(range(number))


@needs_threads
def test_several_threads_do_pieces_and_each_has_one_number() -> None:
    shared(3)
    seen = shared(3, lambda: time.sleep(0.02))
    by_thread = {thread: {slot for *_, slot, one in seen if one == thread} for *_, thread in seen}
    assert 1 < len(by_thread) <= 3
    assert all(len(slots) == 1 for slots in by_thread.values())
    assert by_thread[threading.get_native_id()] == {0}


@needs_threads
def test_no_more_threads_help_than_may() -> None:
    shared(5)
    seen = shared(2, lambda: time.sleep(0.002))
    assert len({thread for *_, thread in seen}) <= 2


@needs_threads
def test_a_caller_waits_for_no_thread_that_has_begun_nothing() -> None:
    """As where other programs have the other processors."""
    seen: list[int] = []
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.append(threading.get_native_id()))
    pool.pool()._share(call, None, 8, 0)
    assert seen == [threading.get_native_id()] * 8


@needs_threads
def test_a_call_within_a_shared_one_is_not_shared() -> None:
    within: list[Any] = []
    outside = shared(2, lambda: within.extend(shared(2)))
    assert len(outside) == 2 * pool.PIECES
    assert {(number, count, slot) for number, count, slot, _ in within} == {(0, 1, 0)}
    assert len(within) == len(outside)
    assert {count for _, count, *_ in outside} == {2 * pool.PIECES}  # as told after the call within


@needs_threads
def test_threads_sleep_when_there_is_nothing_to_do() -> None:
    shared(3)
    time.sleep(0.2)
    before, begin = time.process_time(), time.perf_counter()
    time.sleep(0.5)
    assert time.process_time() - before < 0.1 * (time.perf_counter() - begin)
    assert len(shared(3)) == 3 * pool.PIECES


@needs_threads
def test_threads_take_no_signals() -> None:
    shared(3)
    for folder in Path("/proc/self/task").iterdir() if sys.platform == "linux" else []:
        if int(folder.name) in {thread for *_, thread in shared(3, lambda: time.sleep(0.01))} - {threading.get_native_id()}:
            blocked = next(line for line in (folder / "status").read_text().splitlines() if line.startswith("SigBlk"))
            assert int(blocked.split()[1], 16) & 1 << signal.SIGINT - 1


def test_places_of_loops_that_nothing_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool.assembly, "why_not", lambda: "LLVM 15 is older than 17")
    assert pool._lacking.__wrapped__() == "LLVM 15 is older than 17"
    monkeypatch.setattr(pool, "_lacking", lambda: "LLVM 15 is older than 17")
    addresses = pool.places.__wrapped__()
    of_call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
    ways = [of_call(addresses.pop(name)) for name in (pool.SHARE, pool.OFFER)]
    functions = {name: ctypes.CFUNCTYPE(ctypes.c_int32)(address) for name, address in addresses.items()}
    assert {name: function() for name, function in functions.items()} == pool.PLACES
    seen: list[int] = []
    for number, way in enumerate(ways):
        way(ctypes.cast(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append), ctypes.c_void_p), 7 + number, 8, 1)
    assert seen == [7, 8]
    assert pool.why_alone() == "LLVM 15 is older than 17"
    assert pool._started_once.__wrapped__() is None


def test_what_a_system_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SYSTEM", ("pthread_create", "pthread_no_such_function"))
    assert pool._lacking.__wrapped__().endswith("the system has no pthread_no_such_function") or os.name != "posix"


def test_at_least_one_thread() -> None:
    with pytest.raises(ValueError, match="at least one thread, got 0"):
        threads.set_max_threads(0)
    assert threads.processors() >= 1


@needs_threads
def test_threads_are_started_once_by_callers_that_come_at_once() -> None:
    program = """
import threading
from concurrent.futures import ThreadPoolExecutor
from cntk.core.common import threads
from cntk.core.machine import loops, pool

threads.set_max_threads(5)
ready = threading.Barrier(8)

def ask(_):
    ready.wait()
    return loops.threads_available() and pool.pool().helpers.value

with ThreadPoolExecutor(8) as callers:
    print(set(callers.map(ask, range(8))))
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.stderr) == ("{4}\n", "")
