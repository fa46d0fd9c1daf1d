"""Pinned blocks: each is used again when its data have arrived, and not before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cntk.backends.cupy.backend import CupyBackend


class Arriving:
    """An event that happens when it is waited for."""

    def __init__(self, **options: Any) -> None:
        self.done = False

    def record(self, stream: Any) -> None:
        self.done = False

    def synchronize(self) -> None:
        self.done = True


def sent(standin: CupyBackend, count: int, times: int) -> Any:
    """The way of data that have been sent so many times."""
    for _ in range(times):
        standin.load(standin.empty((count,), np.float32), np.arange(count))
    return standin._staging


def test_a_block_is_used_again(standin: CupyBackend) -> None:
    assert len(sent(standin, 10, 20)._blocks) == 1


def test_a_block_on_its_way_is_left_alone(standin: CupyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standin.xp.cuda, "Event", Arriving)
    staging = sent(standin, 10, 3)
    assert len(staging._blocks) == 3
    staging._blocks[1].sent.synchronize()
    assert len(sent(standin, 10, 1)._blocks) == 3


def test_the_host_waits_where_much_is_on_its_way(standin: CupyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standin.xp.cuda, "Event", Arriving)
    module = __import__("cntk.backends.cupy.memory", fromlist=["AT_ONCE"])
    monkeypatch.setattr(module, "AT_ONCE", 3 * module.SMALLEST)
    staging = sent(standin, 10, 10)
    assert sum(block.nbytes for block in staging._blocks) <= 3 * module.SMALLEST


def test_nothing_is_sent_of_nothing(standin: CupyBackend) -> None:
    assert len(sent(standin, 0, 1)._blocks) == 0
