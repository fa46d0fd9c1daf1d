"""Work shared by threads."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntk.core import threads


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pieces of 8 elements, and three threads whatever the machine has."""
    monkeypatch.setattr(threads, "PIECE", 8)
    before = threads.max_threads()
    threads.set_max_threads(3)
    yield
    threads.set_max_threads(before)


def count(sizes: list[int]) -> list[Any]:
    """How often each element was worked on."""
    counts = [np.zeros(size, int) for size in sizes]

    def work(number: int, begin: int, end: int) -> None:
        assert begin % 8 == 0
        counts[number][begin:end] += 1

    threads.for_pieces(work, sizes)
    return counts


@given(st.lists(st.integers(0, 200), max_size=12))
def test_every_element_is_worked_on_once(sizes: list[int]) -> None:
    assert all((counted == 1).all() for counted in count(sizes))


def test_several_threads_take_part() -> None:
    seen, together = set(), threading.Barrier(3, timeout=10)

    def work(number: int, begin: int, end: int) -> None:
        if begin in (0, 8, 16):
            together.wait()
        seen.add(threading.get_ident())

    threads.for_pieces(work, [6 * 8])
    assert len(seen) == 3


def test_one_thread_does_all_in_order() -> None:
    threads.set_max_threads(1)
    calls: list[Any] = []
    threads.for_pieces(lambda *piece: calls.append((threading.get_ident(), *piece)), [100, 50])
    assert calls == [(threading.get_ident(), 0, 0, 100), (threading.get_ident(), 1, 0, 50)]


def test_errors_are_raised_when_all_have_finished() -> None:
    running: list[int] = []

    def work(number: int, begin: int, end: int) -> None:
        running.append(begin)
        if begin == 8:
            raise KeyError("piece")
        running.remove(begin)

    with pytest.raises(KeyError, match="piece"):
        threads.for_pieces(work, [48])
    assert running == [8]


def test_work_within_work_and_from_many_threads() -> None:
    def nested(number: int, begin: int, end: int) -> None:
        assert all((counted == 1).all() for counted in count([64, 5, 32]))

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(threads.for_pieces, nested, [48]) for _ in range(40)]:
            done.result(timeout=30)


def _in_child(answers: Any) -> None:
    answers.put(all((counted == 1).all() for counted in count([400, 30])))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    count([400])
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_child, args=(answers,))
    child.start()
    assert answers.get(timeout=20)
    child.join(20)
    assert child.exitcode == 0


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums(size: int, dtype: Any) -> None:
    array = np.random.default_rng(size).normal(size=size).astype(dtype)
    assert threads.total(np, array) == sum([float(np.sum(array[i : i + 8])) for i in range(0, size, 8)])
    assert threads.mean(np, array.reshape(1, size)) == threads.total(np, array) / size


def test_at_least_one_thread() -> None:
    with pytest.raises(ValueError, match="at least one thread, got 0"):
        threads.set_max_threads(0)
    assert threads.processors() >= 1
