"""Pinned blocks: each is used again when its data have arrived, and not before; numbers that are fetched together."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest

from cntk.backends.cupy.backend import CupyBackend


class Arriving:
    """An event that happens when it is waited for."""

    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self, **options: Any) -> None:
        self.done = False
        self.counts["made"] += 1

    def record(self, stream: Any) -> None:
        self.done = False
        self.counts["recorded"] += 1

    def synchronize(self) -> None:
        self.done = True


@pytest.fixture
def arriving(standin: CupyBackend, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many events are made and recorded; none happens by itself."""
    monkeypatch.setattr(standin.xp.cuda, "Event", Arriving)
    Arriving.counts.clear()
    return Arriving.counts


def sent(standin: CupyBackend, count: int, times: int) -> Any:
    """The way of data that have been sent so many times."""
    for _ in range(times):
        standin.load(standin.empty((count,), np.float32), np.arange(count))
    return standin._staging


def blocks_of(staging: Any) -> int:
    return len(staging._busy) + sum(map(len, staging._free.values()))


def test_a_block_is_used_again(standin: CupyBackend) -> None:
    assert blocks_of(sent(standin, 10, 20)) <= 2


def test_a_block_on_its_way_is_left_alone(standin: CupyBackend, arriving: Counter[str]) -> None:
    staging = sent(standin, 10, 3)
    assert blocks_of(staging) == 3
    staging._mark[1].synchronize()  # made by the second: the first has arrived
    assert blocks_of(sent(standin, 10, 1)) == 3
    assert blocks_of(sent(standin, 10, 1)) == 4


def test_numbers_that_arrive_tell_of_all_that_was_sent_before(standin: CupyBackend, arriving: Counter[str]) -> None:
    total = standin.asarray([3.5], np.float32)[0:1].reshape(())
    for _ in range(50):
        sent(standin, 10, 2)
        assert standin.later(total)() == [3.5]
    assert blocks_of(standin._staging) <= 4
    assert arriving["made"] <= 3
    assert arriving["recorded"] <= 50 + 3  # for each fetch one, and hardly any for what is sent


def test_numbers_side_by_side_are_one_copy(standin: CupyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    line = standin.asarray([1.5, 2.5, 4.0], np.float64)
    places = [line[at : at + 1].reshape(()) for at in range(3)]
    copies: list[int] = []
    copy = standin.xp.cuda.runtime.memcpyAsync

    def noted(to: int, source: int, nbytes: int, *more: Any) -> None:
        copies.append(nbytes)
        copy(to, source, nbytes, *more)

    monkeypatch.setattr(standin.xp.cuda.runtime, "memcpyAsync", noted)
    first, second = standin.later(*places), standin.later(places[2], places[0])
    assert copies == [3 * 8, 8, 8]
    line.fill(7)
    assert (first(), second(), first()) == ([1.5, 2.5, 4.0], [4.0, 1.5], [1.5, 2.5, 4.0])


def test_the_host_waits_where_much_is_on_its_way(standin: CupyBackend, arriving: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = __import__("cntk.backends.cupy.memory", fromlist=["AT_ONCE"])
    monkeypatch.setattr(module, "AT_ONCE", 3 * module.SMALLEST)
    staging = sent(standin, 10, 10)
    assert blocks_of(staging) <= 3


def test_nothing_is_sent_of_nothing(standin: CupyBackend) -> None:
    assert blocks_of(sent(standin, 0, 1)) == 0
