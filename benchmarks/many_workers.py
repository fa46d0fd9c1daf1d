"""How many workers pay: simulates 2 to 1,024 of them from costs that it measures here, and checks itself on 1, 2 and 4 real ones.

    python benchmarks/many_workers.py [--latency 20e-6 --bandwidth 1.25e9] [--layers 10 --width 1000 --minibatch 128] [--plot]

Measured are steps of training of one worker, one thread each, and how long it takes to encode, decode and add gradients; latency and
bandwidth are those of the network that is asked about, or of some common ones.  Each worker of the simulation draws the time of each of its
steps from those measured, but for the slower half, so that all wait for the slowest; buckets are sent while others are computed.  --plot,
which wants matplotlib, writes the page's plot.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from machine import description

import cntk as C
from cntk.plugins.distributed.buckets import BUCKET_BYTES
from cntk.plugins.distributed.quantizer import Quantizer

PLOT = Path(__file__).parents[1] / "docs" / "many_workers.svg"
WORKERS = tuple(2**exponent for exponent in range(1, 11))
CHECKED = (1, 2, 4)
PERIOD = 10
"""Minibatches in a block of block momentum."""

STEPS = 30
"""Simulated minibatches; of blocks as many."""

BACKWARD = 0.5
"""The share of a step in which gradients become final, one layer after another."""

PAYS = 1.5
"""Twice as many workers pay where they are so many times as fast."""

DIVIDED = 64
"""The minibatch that all workers share has so many times the samples of a worker's own."""

ROUNDS = 3
"""In each all strategies take their turn, so that other work on the machine is the same for all."""

LEARNERS: dict[str, Callable[[Any, int], Any]] = {
    "data parallel": lambda learner, samples: C.data_parallel_distributed_learner(learner),
    "1 bit": lambda learner, samples: C.data_parallel_distributed_learner(learner, num_quantization_bits=1),
    "block momentum": lambda learner, samples: C.block_momentum_distributed_learner(learner, PERIOD * samples),
}
"""Learners of workers that have so many samples in a minibatch, all together."""


class Network(NamedTuple):
    """Seconds that a message takes on its way, and bytes a second of each worker in each direction."""

    latency: float
    bandwidth: float


NETWORKS = {
    "1 Gbit/s, 50 µs": Network(50e-6, 125e6),
    "10 Gbit/s, 20 µs": Network(20e-6, 1.25e9),
    "100 Gbit/s, 2 µs": Network(2e-6, 12.5e9),
}
PUBLISHED = {
    "1-bit SGD, 46 million parameters, GPUs of one machine": (8, "3.6–6.3 x"),
    "1-bit SGD, 160 million, 20 machines of two GPUs": (40, "10 x"),
}
"""Seide et al., 2014."""


class Costs(NamedTuple):
    """What one worker takes, in seconds.

    Attributes:
        steps: of training, each.
        fixed: the share of a step that does not grow with the samples in it.
        backward: the share of a step in which gradients become final.
        nbytes: size of the gradient, in bytes.
        encode, decode: one bit of each number of it.
        add: the gradient to another.
        columns: of the gradient's matrices, which carry two numbers each beside their bits.
    """

    steps: list[float]
    fixed: float
    backward: float
    nbytes: int
    encode: float
    decode: float
    add: float
    columns: int


# ---- the simulation --------------------------------------------------------------------------------


def seconds(strategy: str, workers: int, costs: Costs, network: Network, share: float = 1.0) -> float:
    """Seconds of a minibatch of all workers.

    Args:
        strategy: one of :data:`LEARNERS`.
        workers: how many.
        costs: those of one worker.
        network: what connects them.
        share: the samples of each, of those that *costs* are about.
    """
    random = np.random.default_rng(workers)
    drawn = random.choice(costs.steps, (STEPS, workers)) * (costs.fixed + (1 - costs.fixed) * share)
    if workers == 1:
        return float(drawn.mean())
    meeting = network.latency * np.ceil(np.log2(workers))
    if strategy == "1 bit":
        few = costs.nbytes / 32 + 8 * costs.columns
        coding = costs.encode * (1 + 1 / workers) + 2 * costs.decode
        moved = 2 * few * (workers - 1) / workers / network.bandwidth + 2 * (workers - 1) * network.latency
        return float(drawn.max(1).mean() + meeting + coding + moved)
    if strategy == "block momentum":
        return float(drawn.max(1).mean() + meeting + _ring(costs.nbytes, workers, costs, network) / PERIOD)
    count = max(costs.nbytes // BUCKET_BYTES, 1)
    ring = _ring(costs.nbytes / count, workers, costs, network)
    ends = [_with_buckets(step, count, costs.backward, ring) for step in drawn]
    return float(np.mean(ends) + meeting)


def _ring(nbytes: float, workers: int, costs: Costs, network: Network) -> float:
    """Seconds of a sum that goes round a ring."""
    share = (workers - 1) / workers
    return 2 * (workers - 1) * network.latency + 2 * nbytes * share / network.bandwidth + costs.add * nbytes / costs.nbytes * share


def _with_buckets(step: Any, count: int, backward: float, ring: float) -> float:
    """When a step ends in which each bucket is summed as soon as all workers have it and the one before has been."""
    end = 0.0
    slowest = float(step.max())
    for bucket in range(1, count + 1):
        end = max(end, slowest * (1 - backward * (1 - bucket / count))) + ring
    return end


def gains(strategy: str, counts: Sequence[int], costs: Costs, network: Network, divided: bool) -> list[float]:
    """How many times as fast so many workers are as one.

    Args:
        strategy, counts, costs, network: as in :func:`seconds`.
        divided: whether all workers share a minibatch of :data:`DIVIDED` times the samples, or have one of their own each.
    """
    alone = seconds(strategy, 1, costs, network, DIVIDED if divided else 1.0)
    if divided:
        return [alone / seconds(strategy, count, costs, network, DIVIDED / count) for count in counts]
    return [count * alone / seconds(strategy, count, costs, network) for count in counts]


def pays_up_to(counts: Sequence[int], found: Sequence[float]) -> int:
    """The last number of workers, of doubled ones, that is :data:`PAYS` times as fast as half as many, and faster than one; else one."""
    halves = [1.0, *found]
    return max((count for count, gain, half in zip(counts, found, halves, strict=False) if gain > max(PAYS * half, 1.0)), default=1)


# ---- what is measured ------------------------------------------------------------------------------


def work(layers: int, width: int, minibatch: int) -> dict[str, Any]:
    """Train on each worker: times of steps of each strategy, and of a worker that computes beside the others but alone."""
    workers, random = C.Communicator.num_workers(), np.random.default_rng(C.Communicator.rank())
    data, few = random.standard_normal((minibatch, width), np.float32), max(minibatch // 4, 1)
    steps = {
        "alone": step_of(layers, width, data, lambda learner, samples: learner),
        "few": step_of(layers, width, data[:few], lambda learner, samples: learner),
        **{name: step_of(layers, width, data, make) for name, make in LEARNERS.items()},
    }
    quantizer, matrix = Quantizer(np, 1, np.float32), random.standard_normal((width, width), np.float32)
    encoded, total = quantizer.encode(matrix), matrix.copy()
    steps |= {
        "encode": lambda: quantizer.encode(matrix),
        "decode": lambda: quantizer.decode(encoded, width),
        "add": lambda: np.add(matrix, total, out=total),
    }
    transport, large = C.distributed.mpi_communicator().transport, np.ones(25_000_000 // 4, np.float32)
    steps |= {"message": transport.barrier, "sum": lambda: transport.sum(large)} if workers > 1 else {}
    times: dict[str, list[list[float]]] = {name: [] for name in steps}
    for _ in range(ROUNDS + 1):
        for name, step in steps.items():
            transport.barrier()
            times[name].append([timed(step) for _ in range(PERIOD)])
    return {name: [seconds for turn in turns[1:] for seconds in turn] for name, turns in times.items()}


def step_of(layers: int, width: int, data: Any, make: Callable[[Any, int], Any]) -> Callable[[], object]:
    """A step of training of a network of its own."""
    x = C.input_variable(width)
    model = C.layers.Sequential([C.layers.Dense(width, activation=C.tanh, bias=False) for _ in range(layers)])(x)
    learner = make(C.sgd(model.parameters, 1e-6), len(data) * C.Communicator.num_workers())
    trainer = C.Trainer(model, C.reduce_mean(C.square(model)), learner)
    return lambda: trainer.train_minibatch({x: data})


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def run(workers: int, layers: int, width: int, minibatch: int) -> dict[str, Any]:
    """What the first of so many real workers has measured."""
    command = [sys.executable, "-m", "cntk", "launch", "-n", str(workers), "--with", "tcp", __file__, "worker"]
    numbers = [str(number) for number in (layers, width, minibatch)]
    lines = subprocess.run([*command, *numbers], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    found: dict[str, Any] = json.loads(next(line for line in lines if line.startswith("{")))
    return found


def costs_of(found: dict[str, Any], layers: int, width: int, minibatch: int) -> Costs:
    """The costs of a worker in a run."""
    whole, few = median(found["alone"]), median(found["few"])
    grows = (whole - few) / (1 - max(minibatch // 4, 1) / minibatch) if minibatch > 1 else 0.0
    coding = [layers * median(found[name]) for name in ("encode", "decode", "add")]
    return Costs(found["alone"], min(max(1 - grows / whole, 0.0), 1.0), BACKWARD, 4 * layers * width * width, *coding, layers * width)


# ---- tables and the plot ---------------------------------------------------------------------------


def check(sizes: tuple[int, int, int], runs: dict[int, dict[str, Any]]) -> list[str]:
    """The table of simulated and real seconds of a minibatch, with what a worker takes to compute beside so many others."""
    lines = ["| workers | strategy | computing | measured | simulated | simulated : measured |", "| --- " * 6 + "|"]
    for workers, found in runs.items():
        costs = costs_of(found, *sizes)
        network = Network(0.0, float("inf"))
        if workers > 1:  # a sum of n bytes moves 2 n (p - 1) / p of them and adds n (p - 1) / p
            share, each = (workers - 1) / workers, median(found["sum"]) / 25e6
            moving = max(each - costs.add / costs.nbytes * share, 1e-12) / (2 * share)
            network = Network(median(found["message"]) / np.ceil(np.log2(workers)), 1 / moving)
        for strategy in LEARNERS:
            real, thought = float(np.mean(found[strategy])), seconds(strategy, workers, costs, network)
            cells = f"{1e3 * median(costs.steps):.0f} ms | {1e3 * real:.0f} ms | {1e3 * thought:.0f} ms | {thought / real:.2f}"
            lines.append(f"| {workers} | {strategy} | {cells} |")
    return lines


def table(costs: Costs, networks: dict[str, Network], divided: bool) -> list[str]:
    """The table of how many times as fast workers are, and of how many pay."""
    lines = ["| network | strategy | " + " | ".join(f"{count:,}" for count in WORKERS) + " | pays up to |"]
    lines.append("| --- " * (len(WORKERS) + 3) + "|")
    for name, network in networks.items():
        for strategy in LEARNERS:
            found = gains(strategy, WORKERS, costs, network, divided)
            cells = " | ".join(f"{gain:,.1f} x" for gain in found)
            lines.append(f"| {name} | {strategy} | {cells} | {pays_up_to(WORKERS, found):,} |")
    return lines


def plot(path: Path, costs: Costs, networks: dict[str, Network]) -> None:
    """Draw how many times as fast workers are, on each network, with a minibatch of their own each and with one that they share."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "many_workers", "font.size": 8})
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(2, len(networks), figsize=(3 * len(networks), 5), layout="constrained", squeeze=False)
    for row, divided in zip(rows, (False, True), strict=True):
        for axis, (name, network) in zip(row, networks.items(), strict=True):
            for strategy in LEARNERS:
                axis.loglog(WORKERS, gains(strategy, WORKERS, costs, network, divided), marker=".", label=strategy)
            axis.loglog(WORKERS, WORKERS, ":", color="grey", label="as many times as workers")
            axis.plot([8, 8], [3.6, 6.3], color="black", linewidth=3, alpha=0.4, label="CNTK, 1 bit, published")
            axis.plot([40], [10], "k+")
            axis.set_title(name)
            axis.set_xlabel("workers")
            axis.minorticks_off()
        row[0].set_ylabel("times as fast, " + ("minibatch divided" if divided else "minibatch of their own each"))
    rows[0][0].legend(fontsize=6)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, check and print the tables."""
    parser = argparse.ArgumentParser(description="Simulate many workers from costs that are measured here.")
    parser.add_argument("--latency", type=float, help="seconds that a message takes")
    parser.add_argument("--bandwidth", type=float, help="bytes a second of each worker in each direction")
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--minibatch", type=int, default=128, help="samples of each worker")
    parser.add_argument("--plot", action="store_true", help=f"write {PLOT.name}")
    options = parser.parse_args(arguments)
    if (options.latency is None) != (options.bandwidth is None):
        parser.error("--latency and --bandwidth belong together")
    networks = {"this": Network(options.latency, options.bandwidth)} if options.latency is not None else NETWORKS
    sizes = options.layers, options.width, options.minibatch
    runs = {workers: run(workers, *sizes) for workers in CHECKED}
    costs = costs_of(runs[1], *sizes)
    costs = costs._replace(steps=sorted(costs.steps)[: len(costs.steps) // 2])  # others' work on the machine makes the rest slower
    print(f"{description()}; {options.layers} layers of {options.width}, {options.minibatch} samples for each worker\n")
    print(
        f"A step takes {1e3 * median(costs.steps):.0f} ms, {costs.fixed:.0%} of it however many samples; to encode one bit "
        f"{1e3 * costs.encode:.1f} ms, to decode {1e3 * costs.decode:.1f} ms, to add {1e3 * costs.add:.1f} ms.\n"
    )
    print("\n".join(check(sizes, runs)))
    for divided in (False, True):
        shared = f"{DIVIDED * options.minibatch:,} samples divided among all" if divided else f"{options.minibatch} samples for each worker"
        print(f"\nTimes as fast as one worker, minibatches of {shared}:\n")
        print("\n".join(table(costs, networks, divided)))
    print("\nPublished of CNTK: " + "; ".join(f"{what}: {gain} on {count}" for what, (count, gain) in PUBLISHED.items()))
    if options.plot:
        plot(PLOT, costs, networks)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        result = work(*map(int, sys.argv[2:]))
        if C.Communicator.rank() == 0:
            print(json.dumps(result), flush=True)
        C.Communicator.finalize()
    else:
        main()
