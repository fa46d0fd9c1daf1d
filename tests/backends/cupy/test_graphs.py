"""Work that is recorded and repeated, on the stand-in."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np
import pytest

from cntk.core.types.layout import Layout


def test_recorded_work_is_done_when_it_is_repeated_and_not_before(standin: Any) -> None:
    x, y = standin.asarray([1.0, 2.0], np.float32), standin.asarray([0.0, 0.0], np.float32)
    repeat = standin.record(lambda: standin.xp.add(x, y, out=y))
    assert standin.to_numpy(y).tolist() == [0, 0]
    repeat()
    standin.load(x, [10, 20])
    repeat()
    assert standin.to_numpy(y).tolist() == [11, 22]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda backend, x: float(x.sum()), id="a number is read"),
        pytest.param(lambda backend, x: backend.to_numpy(x), id="an array is read"),
        pytest.param(lambda backend, x: backend.load(x, [1, 2]), id="data of the host"),
        pytest.param(lambda backend, x: backend.synchronize(), id="the host waits"),
    ],
)
def test_what_cannot_be_repeated_is_not_recorded(call: Any, standin: Any) -> None:
    x = standin.asarray([3.0, 4.0], np.float32)
    assert standin.record(lambda: (standin.xp.multiply(x, 2, out=x), call(standin, x))) is None
    standin.load(x, [5, 6])  # the stream captures no more, and data come as before
    assert standin.to_numpy(x).tolist() == [5, 6]
    assert standin.record(lambda: standin.xp.multiply(x, 2, out=x)) is not None


def test_an_index_array_of_a_layout_is_not_recorded_though_it_is_there(standin: Any) -> None:
    layout, x = Layout(2, [1, 2]), standin.asarray([0, 0], np.intp)
    standin.index(layout, "order")
    assert standin.record(lambda: standin.xp.copyto(x, standin.index(layout, "order"))) is None


def test_another_error_is_raised_and_nothing_is_captured_any_more(standin: Any) -> None:
    def fail() -> None:
        raise KeyError("none of CUDA's")

    with pytest.raises(KeyError):
        standin.record(fail)
    x = standin.asarray([1.0], np.float32)
    assert float(x.sum()) == 1


def test_the_time_of_work_is_that_of_one_call(standin: Any) -> None:
    x, made = standin.asarray([1.0], np.float32), []

    def call() -> None:
        made.append(standin.is_recording)
        standin.xp.multiply(x, 2, out=x)

    assert 0 < standin.duration(call) < 1000
    assert made == [False] + [True] * graphs().REPEATS
    assert float(x[0]) == 2.0 ** (1 + graphs().REPEATS * graphs().RUNS)
    assert not standin.is_recording


def test_work_that_cannot_be_recorded_takes_for_ever(standin: Any) -> None:
    assert standin.duration(standin.synchronize) == np.inf


def graphs() -> Any:
    """The module, which is another for each stand-in."""
    return importlib.import_module("cntk.backends.cupy.graphs")


def test_work_of_another_thread_waits_until_all_is_recorded(standin: Any) -> None:
    x = standin.asarray([1.0], np.float32)
    began, order = threading.Event(), []

    def other() -> None:
        began.set()
        with standin.guard():
            order.append("other")

    def calls() -> None:
        thread.start()
        began.wait()
        order.append("recorded")
        standin.xp.add(x, x, out=x)

    thread = threading.Thread(target=other)
    standin.record(calls)
    order.append("done")
    standin.guard().__exit__(None, None, None)  # the fixture is within the guard
    thread.join()
    standin.guard().__enter__()
    assert order == ["recorded", "done", "other"]


def test_a_number_is_fetched_as_it_was(standin: Any) -> None:
    x = standin.asarray(2.5, np.float64)
    wait = standin.later(x)
    standin.load(x, 7.0)
    assert wait() == [2.5]
    assert standin.later(x)() == [7]
