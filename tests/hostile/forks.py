"""Processes forked while other threads compute, read and compile: the child computes the same, and waits for nobody."""

from __future__ import annotations

import concurrent.futures
import faulthandler
import multiprocessing
import os
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from networks import NETWORKS, trained
from threads import CLOSE, SIZES, compare, inputs_of, known_training, known_values, network, saved_and_loaded

import cntk as C
from cntk.io import MinibatchSource, StreamDef, StreamDefs

LIMIT = 150
PATIENCE = 60
"""Seconds that a child may take."""
LINES = 4000


def trial(random: np.random.Generator) -> str:
    """Fork while threads compute, and have the child do the same."""
    seeds = [int(seed) for seed in random.integers(2**60, size=int(random.integers(1, 4)))]
    how = HOW[random.integers(len(HOW))]
    source = text_source()
    taken = [source.next_minibatch(100) for _ in range(int(random.integers(0, 8)))]  # the thread that reads ahead is at work
    with computing(seeds):
        for _ in range(3):
            time.sleep(random.exponential(0.01))
            seed, what = int(random.integers(2**60)), f"child-{random.integers(2**60)}"
            how(child(seed, source, what), what)
    assert source.next_minibatch(100), f"the source is at its end after {len(taken)} minibatches"
    return how.__name__


@contextmanager
def computing(seeds: list[int]) -> Iterator[None]:
    """Threads evaluate, train and make networks for which loops are compiled again."""
    ended = threading.Event()

    def compute(seed: int) -> None:
        random = np.random.default_rng(seed)
        while not ended.is_set():
            name = str(random.choice([*NETWORKS]))
            if random.random() < 0.7:
                fed, _, _ = known_values(name, int(random.choice(SIZES)))
                network(name).model.eval(inputs_of(network(name).model, fed))
            else:
                trained(NETWORKS[name](), "adam", 1, 1, 64)

    threads = [threading.Thread(target=compute, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def child(seed: int, source: Any, what: str) -> Callable[[], None]:
    """What a child does: it raises where anything is not as in the parent."""
    threads = blas_threads()

    def act() -> None:
        random = np.random.default_rng(seed)
        with Path(f"{what}.stacks").open("w") as stacks:
            faulthandler.dump_traceback_later(PATIENCE - 10, file=stacks)
            for name in random.permutation([*NETWORKS])[:1]:
                fed, right, _ = known_values(str(name), int(random.choice(SIZES)))
                made = network(str(name))
                tolerance = 0 if blas_threads() == threads else CLOSE
                compare(made.model.eval(inputs_of(made.model, fed)), right, tolerance)
                losses, known = trained(NETWORKS[name](), "adam", 3, 3, 64), known_training(str(name), "adam", 64)
                assert losses == known or tolerance, f"{name}: a training differs"
            copy = saved_and_loaded(made.model)
            compare(copy.eval(dict(zip(copy.arguments, inputs_of(made.model, fed).values(), strict=True))), right, tolerance)
            assert source.next_minibatch(100), "the source is at its end"
            new = C.layers.Dense(int(random.integers(2, 50)))(C.input_variable(int(random.integers(2, 50))))
            new.eval(np.ones(new.arguments[0].shape, np.float32))
            faulthandler.cancel_dump_traceback_later()

    return act


@cache
def blas_finder() -> Any:
    """What tells how many threads the BLAS has."""
    try:
        from cntk.core.machine.blas import find
    except ImportError:
        return None
    return find()


def blas_threads() -> int:
    """How many threads the BLAS has: one in a child that was forked in the midst of a long product."""
    return blas_finder().get_threads() if blas_finder() else 0


def by_fork(act: Callable[[], None], what: str) -> None:
    """``os.fork``."""
    process = os.fork()
    if not process:
        status = 1
        try:
            act()
            status = 0
        except BaseException:
            Path(f"{what}.error").write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(status)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            assert status == 0, f"the child ended with {status}: {said(what)}"
            return
        time.sleep(0.005)
    os.kill(process, 9)
    os.waitpid(process, 0)
    raise AssertionError(f"the child hangs: {said(what)}")


def by_fork_in_thread(act: Callable[[], None], what: str) -> None:
    """``os.fork`` in another thread than the main one."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(by_fork, act, what).result()


def by_multiprocessing(act: Callable[[], None], what: str) -> None:
    """``multiprocessing`` with ``fork``."""
    process = multiprocessing.get_context("fork").Process(target=noting, args=(act, what))
    process.start()
    process.join(PATIENCE)
    hangs = process.is_alive()
    if hangs:
        process.kill()
        process.join()
    assert not hangs, f"the child hangs: {said(what)}"
    assert process.exitcode == 0, f"the child ended with {process.exitcode}: {said(what)}"


def noting(act: Callable[[], None], what: str) -> None:
    """Do it, and write down what it raises."""
    try:
        act()
    except BaseException:
        Path(f"{what}.error").write_text(traceback.format_exc(), encoding="utf-8")
        raise


def said(what: str) -> str:
    """What a child has left behind."""
    return " ".join(path.read_text(encoding="utf-8")[-1500:] for path in map(Path, (f"{what}.error", f"{what}.stacks")) if path.exists())


HOW = (by_fork, by_fork_in_thread, by_multiprocessing)


@cache
def text_file() -> str:
    """A text of sequences."""
    path = Path(tempfile.mkdtemp(), "lines.ctf")
    random = np.random.default_rng(0)
    path.write_text("".join(f"{line // 3} |a {' '.join(map(str, random.integers(9, size=50)))}\n" for line in range(LINES)))
    return str(path)


def text_source() -> MinibatchSource:
    """A source that reads it."""
    return MinibatchSource(C.io.CTFDeserializer(text_file(), StreamDefs(a=StreamDef(field="a", shape=50))), randomize=True)


def begin() -> None:
    """Compute what is right, of which children have a copy."""
    warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)
    for name in NETWORKS:
        for samples in SIZES:
            known_values(name, samples)
        known_training(name, "adam", 64)
