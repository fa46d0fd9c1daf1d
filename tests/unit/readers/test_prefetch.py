"""Threads that read chunks and prepare minibatches ahead: when they begin and end, and how their errors arrive."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cntk.io import MinibatchSource, StreamInformation, UserDeserializer
from cntk.readers import prefetch


class Slow(UserDeserializer):
    """Ten chunks of ten numbers; some cannot be read."""

    def __init__(self, broken: int = -1, pause: float = 0) -> None:
        self.broken, self.pause = broken, pause
        self.threads: set[str] = set()
        self.reading = self.most = 0

    def stream_infos(self) -> list[StreamInformation]:
        return [StreamInformation("x", 0, "dense", np.float32, (1,))]

    def num_chunks(self) -> int:
        return 10

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        self.threads.add(threading.current_thread().name)
        self.reading += 1
        self.most = max(self.most, self.reading)
        time.sleep(self.pause)
        self.reading -= 1
        if chunk_id == self.broken:
            raise OSError(f"disk gone at chunk {chunk_id}")
        return {"x": np.arange(10 * chunk_id, 10 * chunk_id + 10, dtype=np.float32)[:, None]}


def steps(source: MinibatchSource, size: int = 7) -> list[float]:
    return list(source.next_minibatch(size)[source["x"]].asarray().ravel())


def read_on(source: MinibatchSource) -> None:
    for _ in range(100):
        steps(source)


OTHERS: set[threading.Thread] = set()
"""Threads of sources that other tests have left to the garbage collector."""


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("cntk") and thread not in OTHERS]


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads prepare every minibatch, and are gone in the end."""
    monkeypatch.setattr(prefetch, "SLOW", -1.0)
    OTHERS.update(threading.enumerate())
    yield
    gc.collect()
    deadline = time.monotonic() + 5
    while readers() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not readers()


def test_nothing_is_read_before_the_first_minibatch() -> None:
    deserializer = Slow()
    source = MinibatchSource(deserializer, randomize=False)
    assert not readers()
    assert not deserializer.threads
    assert steps(source) == list(range(7))


def test_threads_read_ahead() -> None:
    deserializer = Slow()
    source = MinibatchSource(deserializer, randomize=False)
    assert [step for _ in range(10) for step in steps(source)] == list(range(70))
    assert "cntk reader" in deserializer.threads
    assert source._reader._prefetcher._thread is not None


def test_threads_can_be_switched_off() -> None:
    deserializer = Slow()
    source = MinibatchSource(deserializer, multithreaded_deserializer=False)
    for _ in range(10):
        steps(source)
    assert deserializer.threads == {threading.current_thread().name}
    assert not readers()


@pytest.mark.parametrize(("parallel", "expected"), [(None, {1}), (True, set(range(2, 10)))])
def test_a_users_deserializer_is_called_by_several_threads_if_that_is_wanted(parallel: bool | None, expected: set[int]) -> None:
    deserializer = Slow(pause=0.02)
    source = MinibatchSource(deserializer, multithreaded_deserializer=parallel, max_sweeps=1)
    while source.next_minibatch(20):
        pass
    assert deserializer.most in expected if os.cpu_count() != 1 else deserializer.most == 1


def test_other_minibatches_than_those_prepared() -> None:
    source = MinibatchSource(Slow(), randomize=False)
    found = [step for size in (7, 7, 7, 7, 7, 3, 9, 9, 9, 9, 9, 1, 7, 7) for step in steps(source, size)]
    assert found == [i % 100 for i in range(len(found))]
    assert source.get_checkpoint_state()["minibatchSourcePosition"] == len(found)


@pytest.mark.parametrize("threaded", [True, False])
def test_an_error_arrives_with_its_place_and_traceback(threaded: bool) -> None:
    source = MinibatchSource(Slow(broken=4), randomize=False, multithreaded_deserializer=None if threaded else False)
    assert [step for _ in range(5) for step in steps(source, 8)] == list(range(40))
    for _ in range(2):  # it goes on from there, and meets it again
        with pytest.raises(OSError, match="disk gone at chunk 4") as caught:
            source.next_minibatch(8)
        assert caught.value.__notes__[0] == "raised by Slow.get_chunk(chunk_id=4)"
        assert "get_chunk" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert source.get_checkpoint_state()["minibatchSourcePosition"] == 40


def test_data_that_is_mended_is_read_on() -> None:
    deserializer = Slow(broken=4)
    source = MinibatchSource(deserializer, randomize=False)
    for _ in range(5):
        steps(source, 8)
    with pytest.raises(OSError, match="disk gone"):
        source.next_minibatch(8)
    deserializer.broken = -1
    assert steps(source, 8) == list(range(40, 48))


def test_it_can_be_interrupted() -> None:
    source = MinibatchSource(Slow(pause=0.4), randomize=False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background ignore it
    try:
        threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            read_on(source)
    finally:
        signal.signal(signal.SIGINT, before)
    position = source.get_checkpoint_state()["minibatchSourcePosition"]
    assert steps(source) == list(range(position, position + 7))


def test_threads_end_with_the_source() -> None:
    source = MinibatchSource(Slow())
    for _ in range(6):
        steps(source)
    assert readers()
    del source  # the fixture sees that they end


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_goes_on_by_itself() -> None:
    source = MinibatchSource(Slow(), randomize=False)
    for _ in range(6):
        steps(source)
    context = multiprocessing.get_context("fork")
    results: Any = context.SimpleQueue()
    child = context.Process(target=lambda: results.put([step for _ in range(6) for step in steps(source)]))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert results.get() == [i % 100 for i in range(42, 84)]
    assert steps(source) == list(range(42, 49))


def test_the_interpreter_exits_though_threads_are_reading() -> None:
    program = """
import time, numpy as np
from cntk.io import MinibatchSource, StreamInformation, UserDeserializer
class Endless(UserDeserializer):
    def stream_infos(self): return [StreamInformation("x", 0, "dense", np.float32, (1,))]
    def num_chunks(self): return 100
    def get_chunk(self, chunk_id):
        time.sleep(60 if chunk_id > 3 else 0)
        return {"x": np.zeros((10, 1), np.float32)}
source = MinibatchSource(Endless(), randomize=False)
source.next_minibatch(5)
print("done")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
@pytest.mark.parametrize("patience", [1, 10**9], ids=["ahead", "at once"])
def test_an_interrupted_call_loses_nothing(patience: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted at any moment, the next call hands out the minibatch that nobody has got."""

    armed: list[bool] = []

    def interrupt(*_: Any) -> None:
        if armed:
            raise KeyboardInterrupt

    monkeypatch.setattr(prefetch, "SLOW", 0)
    monkeypatch.setattr(prefetch, "PATIENCE", patience)
    before = signal.signal(signal.SIGALRM, interrupt)
    source, expected, interrupted = MinibatchSource(Slow(), randomize=False), 40, 0
    for _ in range(expected):
        source.next_minibatch(1)  # all threads are there: Python cannot be interrupted while it starts one without losing it
    random = np.random.default_rng(1)
    gc.disable()  # callbacks of collections, such as Hypothesis has, would swallow interrupts
    try:
        for _ in range(1500):
            found = None
            try:
                armed.append(True)
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 4e-4))
                found = source.next_minibatch(1)
                armed.clear()
            except KeyboardInterrupt:
                armed.clear()
                interrupted += 1
            if found is not None:
                assert found[source["x"]].asarray().ravel().tolist() == [expected % 100]
                expected += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
        source._reader.stop()
    assert interrupted > 30
    assert expected > 50
