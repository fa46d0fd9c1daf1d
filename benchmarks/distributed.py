"""What it costs several workers to learn together from gradients of 10 million numbers.

    python benchmarks/distributed.py

starts itself on 1, 2, 4 and 8 workers of this machine and prints three tables: what a step sends and takes, how close a sum of 25 MB comes
to MPI's own, and from latency and bandwidth of networks what is to be expected of up to 64 workers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from machine import description

import cntk as C
from cntk.core.values.minibatch import Minibatch
from cntk.plugins.distributed.base import sum_over_workers
from cntk.plugins.distributed.quantizer import Quantizer

SHAPES = [(1000, 1000)] * 10
NUMBERS = 10_000_000
WORKERS = (1, 2, 4, 8)
PERIOD = 10
"""Minibatches in a block of block momentum."""

LEARNERS: dict[str, Callable[[Any], Any]] = {
    "data parallel": C.data_parallel_distributed_learner,
    "1 bit": lambda learner: C.data_parallel_distributed_learner(learner, num_quantization_bits=1),
    "block momentum": lambda learner: C.block_momentum_distributed_learner(learner, PERIOD * C.Communicator.num_workers()),
}

NETWORKS = {"1 Gbit/s, 50 µs": (50e-6, 125e6), "10 Gbit/s, 20 µs": (20e-6, 1.25e9), "100 Gbit/s, 2 µs": (2e-6, 12.5e9)}
"""Assumed latency of a message in seconds, and bytes a second of each worker in each direction."""

COMPUTING = 0.2
"""Seconds that a worker is assumed to compute the gradients of its part of a minibatch."""


# ---- on each worker --------------------------------------------------------------------------------


def measure() -> dict[str, Any]:
    """What this worker sends and how long it takes, by strategy; bytes and messages are means over a block of minibatches."""
    found: dict[str, Any] = {name: step_of(make) for name, make in LEARNERS.items()}
    transport = C.distributed.mpi_communicator().transport
    if transport.size > 1:
        from mpi4py import MPI

        message, small = np.ones(25_000_000 // 4, np.float32), np.ones(1)
        learner = C.data_parallel_distributed_learner(C.sgd([C.parameter(message.size)], 0.0))
        gradients = [message.copy()]

        def aggregate() -> None:
            minibatch = Minibatch(1, 0.0, 0.0)
            sum_over_workers(transport, minibatch)
            learner.strategy._sum(gradients)

        pairs = [(timed(lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, message)), timed(aggregate)) for _ in range(15)]
        found["raw"], found["ours"] = (min(times) for times in zip(*pairs[1:], strict=True))
        found["small"] = min(timed(lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, small)) for _ in range(200))
    return found


def step_of(make: Callable[[Any], Any]) -> dict[str, float]:
    learner = make(C.sgd([C.parameter(shape) for shape in SHAPES], 0.0))
    transport, random = learner.strategy.transport, np.random.default_rng(C.Communicator.rank())
    gradients = [random.standard_normal(shape, np.float32) for shape in SHAPES]

    def step() -> None:
        minibatch = Minibatch(1, 0.0, 0.0)
        sum_over_workers(transport, minibatch)
        learner.update([gradient.copy() for gradient in gradients], minibatch)

    steps = PERIOD if learner.strategy.averages_models else 3
    for _ in range(steps):
        step()
    messages, sent = transport.messages, transport.bytes_sent
    times = [timed(step) for _ in range(steps)]
    return {
        "bytes": (transport.bytes_sent - sent) / steps,
        "messages": (transport.messages - messages) / steps,
        "seconds": sum(times) / steps if learner.strategy.averages_models else median(times),
    }


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


# ---- tables ----------------------------------------------------------------------------------------


def run(workers: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "cntk", "launch", "-n", str(workers), __file__, "worker"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    found: dict[str, Any] = json.loads(next(line for line in lines if line.startswith("{")))
    return found


def coding_seconds() -> tuple[float, float]:
    """Time to encode and to decode all numbers with one bit."""
    quantizer, matrix = Quantizer(np, 1, np.float32), np.random.default_rng(0).standard_normal((NUMBERS // 1000, 1000), np.float32)
    encoded = quantizer.encode(matrix)
    encoding, decoding = (lambda: quantizer.encode(matrix)), (lambda: quantizer.decode(encoded, 1000))
    return min(timed(encoding) for _ in range(5)), min(timed(decoding) for _ in range(5))


def predicted(strategy: str, workers: int, latency: float, bandwidth: float, coding: tuple[float, float], buckets: float = 5) -> float:
    """Seconds of a step's exchange: sums go round a ring, quantised pieces directly to their owners and from these to all.

    Each worker sends n bytes' sum as 2 (p - 1) messages, 2 n (p - 1) / p bytes in all; the sums of loss and samples that come first take
    the latency of a tree's steps.
    """
    if workers == 1:
        return 0.0
    dense, few, hops = 4 * NUMBERS, NUMBERS / 8 + 8 * NUMBERS / 1000, 2 * (workers - 1)
    share = 2 * (workers - 1) / workers / bandwidth
    first = latency * 2 * np.log2(workers)
    if strategy == "1 bit":
        encode, decode = coding
        return float(first + 2 * hops * latency + few * share + encode * (1 + 1 / workers) + 2 * decode)
    whole = buckets * hops * latency + dense * share
    return float(first + (whole / PERIOD if strategy == "block momentum" else whole))


def main() -> None:
    found = {workers: run(workers) for workers in WORKERS}
    print(f"{description()}; {NUMBERS:,} float32 numbers in {len(SHAPES)} parameters, blocks of {PERIOD} minibatches\n")
    print("| workers | strategy | bytes that a worker sends in a step | exchanges | seconds |\n| --- | --- | --- | --- | --- |")
    for workers, result in found.items():
        for name in LEARNERS:
            step = result[name]
            print(f"| {workers} | {name} | {step['bytes']:,.0f} | {step['messages']:.1f} | {step['seconds']:.3f} |")
    print("\n| workers | Allreduce of 25 MB | its aggregation here | ratio | Allreduce of 8 bytes |\n| --- | --- | --- | --- | --- |")
    for workers, result in found.items():
        if workers > 1:
            raw, ours = result["raw"], result["ours"]
            print(f"| {workers} | {1e3 * raw:.1f} ms | {1e3 * ours:.1f} ms | {raw / ours:.2f} | {1e6 * result['small']:.0f} µs |")
    coding = coding_seconds()
    print(f"\nOne bit: {1e3 * coding[0]:.0f} ms to encode all numbers, {1e3 * coding[1]:.0f} ms to decode them.")
    here = found[2]["small"] / 2, 25e6 / found[2]["raw"]
    networks = {f"this machine's memory, {here[1] / 1e9:.1f} GB/s, {1e6 * here[0]:.0f} µs": here, **NETWORKS}
    counts = [2**exponent for exponent in range(1, 7)]
    print(f"\nPredicted exchange of a step, in ms, and speed-up where computing takes {1e3 * COMPUTING:.0f} ms:\n")
    print("| network | strategy | " + " | ".join(f"{workers} workers" for workers in counts) + " |\n" + "| --- " * (len(counts) + 2) + "|")
    for network, (latency, bandwidth) in networks.items():
        for name in LEARNERS:
            times = [predicted(name, workers, latency, bandwidth, coding, found[2]["data parallel"]["messages"] - 1) for workers in counts]
            gains = [workers * COMPUTING / (COMPUTING + t) for workers, t in zip(counts, times, strict=True)]
            cells = (f"{1e3 * t:.0f}, {gain:.1f} x" for t, gain in zip(times, gains, strict=True))
            print(f"| {network} | {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        result = measure()
        if C.Communicator.rank() == 0:
            print(json.dumps(result), flush=True)
        C.Communicator.finalize()
    else:
        main()
