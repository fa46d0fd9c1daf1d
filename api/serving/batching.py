"""Micro-batching: requests that wait for a model at the same time are computed together."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cntk.serving.limits import Limits
from cntk.serving.refusals import Refusal

AT_ONCE = 0.001
"""Seconds up to which a batch is computed by the thread that reads requests: handing it to another takes about a tenth of that."""


class Job:
    """A request's share of a batch.

    Args:
        data: rows by input.
        rows: how many.
        kind: jobs of equal kinds can be computed together; None: with no other.
        size: number of elements, by which the time that it takes is estimated.
        result: gets the outputs' rows, or an error.
    """

    __slots__ = ("data", "kind", "result", "rows", "size")

    def __init__(self, data: Any, rows: int, kind: Hashable | None, size: int, result: asyncio.Future[Any]) -> None:
        self.data, self.rows, self.kind, self.size, self.result = data, rows, kind, size, result


class Batcher:
    """Computes jobs in the order in which they come, those together that wait together.

    Nobody waits for company: a batch has what has come while the one before was computed, so that batches grow with the load.  With a
    delay the first job of a batch waits so long, unless the batch is full before.  Batches that are known to be quick are computed by the
    event loop's own thread, others by one of their own, so that the loop goes on.

    Args:
        compute: gets data of jobs, and gives the results of each.
        limits: the most rows of a batch and of the queue, and the delay.
        observe: called with the rows of each batch, and those that wait then.
    """

    def __init__(self, compute: Callable[[Sequence[Any]], list[Any]], limits: Limits, observe: Callable[[int, int], None]) -> None:
        self._compute, self._limits, self._observe = compute, limits, observe
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Job] = deque()
        self._rows = 0
        self._is_due = False
        self._thread: ThreadPoolExecutor | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._seconds: dict[int, float] = {}

    @property
    def waiting(self) -> int:
        """Rows that wait."""
        return self._rows

    async def compute(self, data: Any, rows: int, kind: Hashable | None, size: int) -> Any:
        """Results of a job, which are computed with others.

        Raises:
            Refusal: too many rows wait already.
        """
        if self._rows + rows > self._limits.queue:
            raise Refusal(429, f"{self._rows} rows wait for this model, and {self._limits.queue} may; try again later", retry_after=1)
        job = Job(data, rows, kind, size, self._loop.create_future())
        self._waiting.append(job)
        self._rows += rows
        if not self._is_due:
            self._is_due = True
            self._idle.clear()
            self._soon()
        return await job.result

    async def drain(self) -> None:
        """Wait until nothing waits; there are to be no more jobs."""
        await self._idle.wait()
        if self._thread is not None:
            self._thread.shutdown()

    def _soon(self) -> None:
        if self._limits.delay and self._rows < self._limits.rows:
            self._loop.call_later(self._limits.delay, self._next)
        else:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        """Compute the next batch, or have a thread do so."""
        jobs = self._taken()
        if not jobs:
            self._is_due = False
            self._idle.set()
            return
        seconds = self._seconds.get(sum(job.size for job in jobs).bit_length())
        if seconds is not None and seconds < AT_ONCE:
            self._finish(jobs, self._computed(jobs))
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "cntk-serve")
        future = self._loop.run_in_executor(self._thread, self._computed, jobs)
        future.add_done_callback(lambda done: self._finish(jobs, done.result()))

    def _taken(self) -> list[Job]:
        """The first job that is still wanted, and those behind it that can be computed with it."""
        jobs: list[Job] = []
        rows = 0
        while self._waiting:
            job = self._waiting[0]
            if not job.result.done():
                if jobs and (job.kind is None or job.kind != jobs[0].kind or rows + job.rows > self._limits.rows):
                    break
                jobs.append(job)
                rows += job.rows
            self._waiting.popleft()
            self._rows -= job.rows
        return jobs

    def _computed(self, jobs: Sequence[Job]) -> list[Any]:
        """Results or errors of jobs.  If they fail together each is computed by itself, so that the others get their results."""
        begin = time.perf_counter()
        try:
            results = self._compute([job.data for job in jobs])
        except Exception as error:
            return [error] if len(jobs) == 1 else [found for job in jobs for found in self._computed([job])]
        seconds = time.perf_counter() - begin
        size = sum(job.size for job in jobs).bit_length()
        self._seconds[size] = 0.5 * (self._seconds.get(size, seconds) + seconds)
        return results

    def _finish(self, jobs: Sequence[Job], results: Sequence[Any]) -> None:
        self._observe(sum(job.rows for job in jobs), self._rows)
        for job, result in zip(jobs, results, strict=True):
            if job.result.done():  # nobody waits any more
                continue
            if isinstance(result, Exception):
                job.result.set_exception(result)
            else:
                job.result.set_result(result)
        if self._waiting:
            self._soon()
        else:
            self._is_due = False
            self._idle.set()
