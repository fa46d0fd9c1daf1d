"""Micro-batches: what is computed together, what is not, and what becomes of the others when one fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="what serving needs is not installed")

from cntk.serving.batching import AT_ONCE, Batcher
from cntk.serving.limits import Limits
from cntk.serving.refusals import Refusal


class Doubling:
    """Computes twice each job's data, and notes what it computed together."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.batches: list[list[Any]] = []
        self._seconds = seconds

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        self.batches.append(list(data))
        time.sleep(self._seconds)
        if "bad" in data:
            raise ValueError("bad data")
        return [2 * one for one in data]


def run(compute: Doubling, jobs: Sequence[tuple[Any, int, Any]], limits: Limits | None = None) -> list[Any]:
    """Results or errors of jobs, given as data, rows and kind, that come at the same time."""

    async def together() -> list[Any]:
        batcher = Batcher(compute, limits or Limits(), lambda rows, waiting: None)
        found = await asyncio.gather(*(batcher.compute(data, rows, kind, 1) for data, rows, kind in jobs), return_exceptions=True)
        await batcher.drain()
        return found

    return asyncio.run(together())


def test_jobs_of_one_kind_are_computed_together() -> None:
    compute = Doubling()
    assert run(compute, [(1, 1, "a"), (2, 1, "a"), (3, 1, "b"), (4, 1, "b")]) == [2, 4, 6, 8]
    assert compute.batches == [[1, 2], [3, 4]]


def test_jobs_of_no_kind_are_computed_alone() -> None:
    compute = Doubling()
    run(compute, [(1, 1, None), (2, 1, None)])
    assert compute.batches == [[1], [2]]


def test_batches_have_so_many_rows_at_most() -> None:
    compute = Doubling()
    run(compute, [(1, 3, "a"), (2, 3, "a"), (3, 4, "a"), (4, 20, "a")], Limits(rows=7))
    assert compute.batches == [[1, 2], [3], [4]]


def test_one_that_fails_takes_no_other_with_it() -> None:
    first, bad, last = run(Doubling(), [(1, 1, "a"), ("bad", 1, "a"), (3, 1, "a")])
    assert (first, str(bad), last) == (2, "bad data", 6)


def test_more_than_may_wait_are_refused() -> None:
    *taken, refused = run(Doubling(), [(1, 4, "a"), (2, 4, "a"), (3, 1, "a")], Limits(queue=8))
    assert taken == [2, 4]
    assert isinstance(refused, Refusal)
    assert (refused.status, refused.retry_after) == (429, 1)


def test_what_nobody_waits_for_is_not_computed() -> None:
    compute = Doubling(0.05)

    async def given_up() -> None:
        batcher = Batcher(compute, Limits(), lambda rows, waiting: None)
        first = asyncio.create_task(batcher.compute(1, 1, None, 1))
        second = asyncio.create_task(batcher.compute(2, 1, None, 1))
        await asyncio.sleep(0.01)
        second.cancel()
        assert await first == 2
        await batcher.drain()
        assert batcher.waiting == 0

    asyncio.run(given_up())
    assert compute.batches == [[1]]


def test_a_delay_gathers_what_comes_later() -> None:
    compute = Doubling()

    async def one_after_another() -> None:
        batcher = Batcher(compute, Limits(delay=0.1), lambda rows, waiting: None)
        first = asyncio.create_task(batcher.compute(1, 1, "a", 1))
        await asyncio.sleep(0.02)
        assert await asyncio.gather(first, batcher.compute(2, 1, "a", 1)) == [2, 4]

    asyncio.run(one_after_another())
    assert compute.batches == [[1, 2]]


@pytest.mark.parametrize("seconds", [0.0, 20 * AT_ONCE])
def test_what_takes_long_leaves_the_loop_free(seconds: float) -> None:
    async def ticks_meanwhile() -> int:
        batcher = Batcher(Doubling(seconds), Limits(), lambda rows, waiting: None)
        await batcher.compute(1, 1, "a", 1)
        job = asyncio.create_task(batcher.compute(2, 1, "a", 1))
        ticks = 0
        while not job.done():
            await asyncio.sleep(0)
            ticks += 1
        await batcher.drain()
        return ticks

    assert (asyncio.run(ticks_meanwhile()) > 5) == (seconds > AT_ONCE)
