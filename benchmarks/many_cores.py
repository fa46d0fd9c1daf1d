"""What more processors than there are would gain: a training step, with each shared call's pieces measured apart.

    python benchmarks/many_cores.py [--only mlp ...] [--steps 8] [--wake 5]

Calls are cut into as many pieces as 64 threads would have, and one thread does them one after another while its own time is taken.  Then
each piece goes to the processor that is free first.  What no call shares, and what the BLAS computes, takes as long as it does on one
thread.  A shared call costs so many microseconds more for waking threads; memory is taken to be as fast for many as for one, so that what
is bound by memory stops sooner: the table has the bytes and multiplications of a step beside it.
"""

from __future__ import annotations

import argparse
import ctypes
import heapq
import importlib
import itertools
import statistics
import time

import numpy as np
from worker import data_of, step_of

import cntk as C
from cntk.core.machine.blas import find
from cntk.core.machine.pool import PIECES, pool

WORKLOADS = ("mlp", "convolution", "tagger", "bidirectional", "resnet", "sequence_to_sequence", "transformer", "learners:adam")
PROCESSORS = (2, 4, 8, 16, 32, 64)
CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Pieces:
    """Stands in for the pool: the pieces of each shared call, in seconds."""

    def __init__(self, threads: int) -> None:
        self._pieces, self._share = PIECES * threads, pool()._share
        self.calls: list[list[float]] = []
        self._cost = min(self._times(CALL(lambda _: None), None))

    def share(self, call: int, argument: object, threads: int) -> None:
        self.calls.append([max(0.0, seconds - self._cost) for seconds in self._times(CALL(call), argument)])

    def shared(self, call: int, argument: object, threads: int) -> tuple[object, object]:
        return CALL(lambda _: self.share(call, argument, threads)), argument

    def offered(self, call: int, argument: object, threads: int) -> tuple[object, object]:
        return CALL(call), argument

    def _times(self, call: object, argument: object) -> list[float]:
        times: list[float] = []

        def piece(argument: int) -> None:
            start = time.thread_time()
            call(argument)
            times.append(time.thread_time() - start)

        self._share(CALL(piece), argument, self._pieces, 0)
        return times


def ends_after(pieces: list[float], processors: int) -> float:
    """Seconds until all pieces have ended, where each goes to the processor that is free first."""
    free = [0.0] * processors
    for seconds in pieces:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def measured(workload: str, steps: int, wake: float) -> tuple[float, float, list[float]]:
    """Seconds of a step on one thread, the part of it that calls share, and how many times as fast it is on more processors."""
    C.device.set_threads(1)
    step, minibatches = step_of(workload, "cntk"), data_of(workload, "cntk")
    data = itertools.cycle(minibatches)
    for _ in range(steps):
        step(*next(data))
    alone = [_seconds(step, minibatches[i % len(minibatches)]) for i in range(2 * steps)]
    C.device.set_threads(max(PROCESSORS))
    limit_blas()
    stand_in = Pieces(max(PROCESSORS))
    for name in ("share", "shared", "offered"):
        setattr(pool(), name, getattr(stand_in, name))
    for i in range(steps):  # programs are bound anew for as many threads
        step(*minibatches[i % len(minibatches)])
    shared: list[float] = []
    ends: dict[int, list[float]] = {count: [] for count in PROCESSORS}
    for i in range(steps):
        stand_in.calls.clear()
        step(*minibatches[i % len(minibatches)])
        shared.append(sum(map(sum, stand_in.calls)))
        for count in PROCESSORS:
            ends[count].append(sum(ends_after(pieces, count) + wake for pieces in stand_in.calls))
    whole, part = statistics.median(alone), min(statistics.median(shared), statistics.median(alone))
    return whole, part, [whole / (whole - part + statistics.median(ends[count])) for count in PROCESSORS]


def limit_blas() -> None:
    """Leave the BLAS one thread: more, which `set_threads` has given it, would wait for one another on the processors that there are."""
    library = find()
    limit = library and library.function("openblas_set_num_threads")
    if limit:
        limit(1)


def _seconds(step: object, minibatch: tuple) -> float:
    start = time.thread_time()
    step(*minibatch)
    return time.thread_time() - start


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="What more processors than there are would gain.")
    parser.add_argument("--only", nargs="*", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--wake", type=float, default=5.0, help="microseconds that a shared call takes more")
    options = parser.parse_args()
    print("| training step | one thread, ms | shared | " + " | ".join(map(str, PROCESSORS)) + " | MFLOP | MB |")
    print("| --- " * (len(PROCESSORS) + 5) + "|")
    for workload in options.only:
        module = importlib.import_module(workload.partition(":")[0])
        whole, part, gains = measured(workload, options.steps, options.wake * 1e-6)
        floors = [f"{getattr(module, name) / 1e6:.3g}" if np.isscalar(getattr(module, name, None)) else "" for name in ("FLOP", "BYTES")]
        cells = [workload, f"{1e3 * whole:.3g}", f"{part / whole:.0%}", *(f"{gain:.1f}" for gain in gains), *floors]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
